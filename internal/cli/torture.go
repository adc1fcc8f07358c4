package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/fault"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// tortureCmd injects faults into new stores and checks the result.
type tortureCmd struct {
	For     time.Duration `min:"0s" max:"8760h" help:"How long to run. Without it and --kills: 10 minutes." placeholder:"TIME"`
	Kills   int           `min:"0" max:"1000000000" help:"Faults of each trial on each engine and layout after which to stop." placeholder:"N"`
	Trials  []string      `help:"Trials to make; by default all: ${trials}. Trials of power cuts need root and a loop device; the trial full needs root." placeholder:"NAME"`
	Engines []string      `help:"Engines to torture; engines that only the other program has are skipped." default:"${engines}"`
	Layouts []string      `help:"Layouts of entities, and events." default:"arkiv,compact,events"`
	Seed    uint64        `any:"" help:"Seed of all random choices; random and printed when not given. The timing of the system is not repeated." placeholder:"N"`
	Dir     string        `help:"Directory for the stores, which are removed afterwards; by default the system's temporary directory." type:"path" placeholder:"DIR"`
	Keep    bool          `help:"Keep the directory of a trial that found a violation and print its path."`
	JSON    bool          `help:"Print the report as JSON."`
}

// tortureDefault is the default duration of torture.
const tortureDefault = 10 * time.Minute

// trials returns all trials. To add a trial, add it to this list.
func trials() []crashtest.Trial {
	return []crashtest.Trial{
		crashtest.Crash(driver.Durable), crashtest.Crash(driver.Relaxed), crashtest.Crash(driver.Unsafe),
		crashtest.Power(driver.Durable), crashtest.Power(driver.Relaxed), crashtest.Power(driver.Unsafe),
		crashtest.Full(), fault.Flips(false),
	}
}

// trialNames returns the names of all trials.
func trialNames() (names []string) {
	for _, t := range trials() {
		names = append(names, t.Name)
	}
	return names
}

// Run runs the trials. It fails when a promise was broken.
func (c *tortureCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	var here []string
	for _, name := range c.Engines {
		if linked(name, false) {
			here = append(here, name)
		} else {
			fmt.Fprintf(e.stderr, "torture: skipped %s: run %s torture --engines %s\n", name, commandFor(name, false), name)
		}
	}
	if len(here) == 0 {
		return usageError{errors.New("this program has none of these engines")}
	}
	fmt.Fprintf(e.stderr, "torture: seed %d\n", c.Seed)
	report, err := crashtest.Torture(e.ctx, crashtest.Options{
		Trials:  slices.DeleteFunc(trials(), func(t crashtest.Trial) bool { return !slices.Contains(c.Trials, t.Name) }),
		Engines: here,
		Layouts: c.Layouts,
		For:     c.For,
		Kills:   c.Kills,
		Seed:    c.Seed,
		Dir:     c.Dir,
		Keep:    c.Keep,
		Log:     func(format string, args ...any) { fmt.Fprintf(e.stderr, "torture: "+format+"\n", args...) },
	})
	if c.JSON {
		err = errors.Join(err, printJSON(e.stdout, report))
	} else {
		err = errors.Join(err, report.Print(e.stdout))
	}
	switch n := report.Broken(); {
	case n > 0:
		return errors.Join(err, fmt.Errorf("%d violations; the report says how to see each again", n))
	case err == nil && e.ctx.Err() != nil:
		return fmt.Errorf("the report covers the trials so far: %w", e.ctx.Err())
	}
	return err
}

// check sets the defaults that depend on other flags.
func (c *tortureCmd) check() error {
	layouts := append(slices.Clone(schemas.Layouts()), crashtest.EventsLayout)
	err := errors.Join(known("engine", c.Engines, engine.Names()), known("layout", c.Layouts, layouts), known("trial", c.Trials, trialNames()))
	if len(c.Trials) == 0 {
		c.Trials = trialNames()
	}
	if c.For == 0 && c.Kills == 0 {
		c.For = tortureDefault
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) + 1
	}
	return err
}
