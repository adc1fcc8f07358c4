package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/fault"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// tortureCmd tries faults on stores of its own and checks what is left of them.
type tortureCmd struct {
	For     time.Duration `min:"0s" max:"8760h" help:"How long to go on. Without it and --kills: 10 minutes." placeholder:"TIME"`
	Kills   int           `min:"0" max:"1000000000" help:"Faults of each trial on each engine and layout after which to stop." placeholder:"N"`
	Trials  []string      `help:"Trials to make; all when not given: ${trials}." placeholder:"NAME"`
	Power   bool          `help:"Only the trials of power cuts, which need root and a loop device."`
	Flips   int           `min:"0" max:"1000000000" help:"Only the trial that damages files: so many faults on each engine and layout, on stores in memory." placeholder:"N"`
	Engines []string      `help:"Engines to torture." default:"${engines}"`
	Layouts []string      `help:"Layouts of entities, and events." default:"arkiv,compact,events"`
	Turn    int           `min:"1" max:"1000000" help:"Faults on one store before a new one is made." default:"25"`
	Seed    uint64        `any:"" help:"Of everything that is drawn but the moment at which the system does what it is told; drawn and printed when not given." placeholder:"N"`
	Dir     string        `help:"Directory for the stores; they are removed. The system's for temporary files when not given." type:"path" placeholder:"DIR"`
	Keep    bool          `help:"Keep the directory of a turn that found a violation and print its path."`
	Out     string        `help:"File to write the report to as JSON." type:"path" placeholder:"FILE"`
	JSON    bool          `help:"Print the report as JSON."`
}

// tortureDefault is how long torture goes on when nobody says.
const tortureDefault = 10 * time.Minute

// flipsTurn is how many faults the copies of one store take.
const flipsTurn = 400

// trials returns all trials. Each is an entry of this list and nothing else.
func trials() []crashtest.Trial {
	worker := func(ctx context.Context, config string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		return exec.CommandContext(ctx, self, "crash-worker", config)
	}
	return []crashtest.Trial{
		&crashtest.Crash{Worker: worker},
		&crashtest.Crash{Worker: worker, Level: driver.Relaxed},
		&crashtest.Crash{Worker: worker, Level: driver.Unsafe},
		&crashtest.Power{Worker: worker, Level: driver.Durable},
		&crashtest.Power{Worker: worker, Level: driver.Relaxed},
		&crashtest.Power{Worker: worker, Level: driver.Unsafe},
		&crashtest.Syncs{Worker: worker},
		&crashtest.Full{Worker: worker},
		&fault.Flips{},
	}
}

// trialNames returns the names of all trials.
func trialNames() (names []string) {
	for _, t := range trials() {
		names = append(names, t.Name())
	}
	return names
}

// Run tortures. It fails when a promise was broken.
func (c *tortureCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	var here, there []string
	for _, engine := range c.Engines {
		if linked(engine, false) {
			here = append(here, engine)
		} else {
			there = append(there, engine)
		}
	}
	fmt.Fprintf(e.stderr, "torture: seed %d\n", c.Seed)
	report := &crashtest.Report{}
	err := c.share(e, here, len(c.Engines), func(o crashtest.Options) error {
		return crashtest.Torture(e.ctx, o, report)
	})
	for _, engine := range there {
		if err == nil && e.ctx.Err() == nil {
			err = c.share(e, []string{engine}, len(c.Engines), func(o crashtest.Options) error {
				return c.sibling(e, o, report)
			})
		}
	}
	err = errors.Join(err, c.finish(e, report))
	if err == nil && e.ctx.Err() != nil {
		err = fmt.Errorf("torture: the report is of what was done: %w", e.ctx.Err())
	}
	return err
}

// check fills in what depends on other flags.
func (c *tortureCmd) check() error {
	for _, name := range c.Engines {
		if !slices.Contains(engine.Names(), name) {
			return fmt.Errorf("unknown engine %q; known are %s", name, strings.Join(engine.Names(), ", "))
		}
	}
	for _, name := range c.Layouts {
		if name != crashtest.EventsLayout && !slices.Contains(store.Layouts(), name) {
			return fmt.Errorf("unknown layout %q; known are %s and events", name, strings.Join(store.Layouts(), ", "))
		}
	}
	if c.For < 0 || c.Kills < 0 || c.Turn < 1 {
		return errors.New("--for, --kills and --turn must be positive")
	}
	if c.Flips > 0 {
		c.Trials, c.Kills, c.Turn = []string{"flips"}, c.Flips, max(c.Turn, flipsTurn)
	}
	if c.Power {
		c.Trials = slices.DeleteFunc(trialNames(), func(name string) bool { return !strings.HasPrefix(name, "power") })
	}
	if len(c.Trials) == 0 {
		c.Trials = trialNames()
	}
	for _, name := range c.Trials {
		if !slices.Contains(trialNames(), name) {
			return fmt.Errorf("unknown trial %q; known are %s", name, strings.Join(trialNames(), ", "))
		}
	}
	if c.For == 0 && c.Kills == 0 {
		c.For = tortureDefault
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) + 1
	}
	return nil
}

// share runs f with the options for some of the engines, which get their part of the
// time.
func (c *tortureCmd) share(e *env, engines []string, of int, f func(crashtest.Options) error) error {
	if len(engines) == 0 {
		return nil
	}
	return f(crashtest.Options{
		Trials:  c.chosen(),
		Engines: engines,
		Layouts: c.Layouts,
		For:     c.For * time.Duration(len(engines)) / time.Duration(of),
		Kills:   c.Kills,
		Turn:    c.Turn,
		Seed:    c.Seed,
		Dir:     c.Dir,
		Keep:    c.Keep,
		Log:     func(format string, args ...any) { fmt.Fprintf(e.stderr, "torture: "+format+"\n", args...) },
	})
}

func (c *tortureCmd) chosen() []crashtest.Trial {
	return slices.DeleteFunc(trials(), func(t crashtest.Trial) bool { return !slices.Contains(c.Trials, t.Name()) })
}

// sibling lets the other command torture an engine that this one does not link.
func (c *tortureCmd) sibling(e *env, o crashtest.Options, report *crashtest.Report) error {
	args := []string{"torture", "--json", fmt.Sprintf("--keep=%t", o.Keep),
		"--engines=" + strings.Join(o.Engines, ","), "--layouts=" + strings.Join(o.Layouts, ","), "--trials=" + strings.Join(c.Trials, ","),
		fmt.Sprintf("--for=%s", o.For), fmt.Sprintf("--kills=%d", o.Kills), fmt.Sprintf("--turn=%d", o.Turn),
		fmt.Sprintf("--seed=%d", o.Seed)}
	if o.Keep {
		args = append(args, "--dir="+cmp.Or(o.Dir, os.TempDir())) // what is kept outlives the child's directory
	}
	var theirs crashtest.Report
	other := child{of: bench.Engine{Name: o.Engines[0]}, args: args, dir: o.Dir, into: &theirs}
	err := other.run(e)
	report.Merge(&theirs)
	if theirs.Broken() > 0 || e.ctx.Err() != nil {
		return nil
	}
	return err
}

// finish prints the report and says by its error what was broken.
func (c *tortureCmd) finish(e *env, report *crashtest.Report) error {
	var err error
	if c.Out != "" {
		err = c.write(report)
	}
	if c.JSON {
		err = errors.Join(err, printJSON(e.stdout, report))
	} else {
		err = errors.Join(err, report.Print(e.stdout))
	}
	if n := report.Broken(); n > 0 {
		return errors.Join(err, fmt.Errorf("torture: %d violations; the report says how to see each again", n))
	}
	return err
}

func (c *tortureCmd) write(report *crashtest.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Out), 0o755); err != nil {
		return err
	}
	return filesync.Replace(c.Out, append(text, '\n'), 0o644)
}

// victimCmd is a process that torture kills.
type victimCmd struct {
	Config string `arg:""`
}

// Run runs it. Its exit code is part of what it says.
func (c *victimCmd) Run(e *env) error {
	if code := crashtest.WorkerMain(e.ctx, c.Config, e.stdout); code != 0 {
		return exitStatus(code)
	}
	return nil
}

// exitStatus is an error that is said already and is only an exit code.
type exitStatus int

// Error implements error.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
