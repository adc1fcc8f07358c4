package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	_ "github.com/varvedb/varve/internal/lab/network" // H1, H3 and J1
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// runCmd runs experiments on engines, each pair in a separate process, and
// stores every result at once. The same command resumes an interrupted run.
type runCmd struct {
	engineFlags
	lab.Options
	IDs     []string      `arg:"" optional:"" name:"experiment" help:"Experiments (A5) or sections (A) of the catalogue; all when none is given."`
	List    bool          `help:"List the experiments and stop."`
	Engines []string      `help:"Engines to measure, or URLs of your own servers." default:"${engines}"`
	Out     string        `help:"Directory of the results." default:"results/latest" type:"path"`
	Repeats int           `min:"1" max:"1000" help:"How often everything is measured, each time with other questions. Two are a round: SQLite, the others, the others backwards, SQLite." default:"4"`
	Empty   bool          `help:"First remove the data sets that earlier runs have left, to free the disk."`
	Timeout time.Duration `min:"0s" max:"720h" help:"Time after which an experiment on one engine is ended; its results so far are kept. When not given it follows from the phase and the size."`
}

// Run runs the experiments.
func (c *runCmd) Run(e *env) error {
	find := lab.Find
	if c.Source != "" {
		find = lab.FindOwn
	}
	found, err := find(c.IDs)
	if err != nil {
		return usageError{err}
	}
	engines, err := c.set(&c.Options, c.Engines)
	if err != nil {
		return err
	}
	if c.Only != nil {
		for _, x := range found {
			if _, err := x.Variants(c.Options, engines[0]); err != nil && !errors.Is(err, lab.ErrSkip) {
				return usageError{fmt.Errorf("%s: %w", x.ID, err)}
			}
		}
	}
	if c.List {
		return c.list(e.stdout, found, engines)
	}
	r := &runner{stages: []stage{{found: found}}, engines: engines, options: c.Options, repeats: c.Repeats, empty: c.Empty, out: c.Out, kept: true, timeout: c.Timeout, verbose: c.Verbose}
	failed := r.run(e)
	if e.ctx.Err() != nil {
		return failed
	}
	return errors.Join(failed, c.finish(e))
}

// list prints experiments with their estimated durations.
func (c *runCmd) list(out io.Writer, found []lab.Experiment, engines []bench.Engine) error {
	for _, x := range found {
		long := formatMinutes(takes(x, c.Options, engines, c.Repeats))
		if _, err := fmt.Fprintf(out, "%-4s %-50s %5s\n     %s\n", x.ID, x.Title, long, x.Question); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\nTimes are guesses for an idle machine: %d engines, %d times each, scale %v, phases of %s.\n", len(engines), c.Repeats, c.Scale, c.Phase)
	return err
}

// finish prints where the results are, and the next command.
func (c *runCmd) finish(e *env) error {
	set, err := lab.OpenSet(c.Out)
	if err != nil {
		return err
	}
	if set.Len() == 0 {
		return nil // the reason was printed
	}
	if _, err := loadSet(e, c.Out); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%d results in %s. Next:\n  varve report %s\n  varve answer --from %s\n", set.Len(), c.Out, c.Out, c.Out)
	failed := set.Failed()
	for _, run := range failed {
		fmt.Fprintf(e.stderr, "run: failed: %s\n", run)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d runs failed; their errors are in %s; run the same command again to repeat them", len(failed), c.Out)
	}
	return nil
}

// labCmd runs one experiment on one engine in this process.
type labCmd struct {
	Experiment string `required:""`
	Engine     string `required:""`
	Out        string `required:""`
	Options    string `required:""`
	Verbose    bool
}

// Run runs the experiment and appends its results.
func (c *labCmd) Run(e *env) error {
	var o lab.Options
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		return usageError{err}
	}
	found, err := lab.Find([]string{c.Experiment})
	if err != nil {
		return usageError{err}
	}
	l := &lab.Lab{
		Options: o, Engine: measuredHere(c.Engine), Renew: e.renew,
		Log: func(format string, args ...any) {
			if c.Verbose {
				fmt.Fprintf(e.stderr, "  "+format+"\n", args...)
			}
		},
	}
	if l.Cache, err = bench.OpenCache(""); err != nil {
		return err
	}
	l.Cache.Progress = showProgress(e)
	set, err := lab.OpenSet(c.Out)
	if err == nil {
		err = l.Run(e.ctx, found[0], set)
	}
	if e.ctx.Err() != nil {
		return exitStatus(ExitInterrupted) // set by the command that started this one
	}
	return err
}

// renew replaces this process by a new one with the same command.
func (e *env) renew() error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return e.become(path, os.Args[1:], os.Environ())
}

// engineFlags are the flags that all measuring commands share.
type engineFlags struct {
	Durability string `help:"Durability of a commit: durable, relaxed or unsafe." default:"durable"`
	Memory     string `help:"Memory of an engine's process and its children, with the page cache. Half of it is for the engine's own caches." default:"1GiB"`
	Verbose    bool   `short:"v" help:"Print the full name and the figures of each line that is measured, and at the end all tables."`
}

// set applies the flags to options, checks the names of layouts, and returns
// the engines for names and URLs.
func (f *engineFlags) set(o *lab.Options, engines []string) (list []bench.Engine, err error) {
	o.Durability, err = driver.ParseDurability(f.Durability)
	memory, fault := driver.ParseBytes(f.Memory)
	if o.Memory = memory; fault != nil {
		fault = fmt.Errorf("--memory: %w", fault)
	}
	list, unknown := toMeasure(engines)
	err = cmp.Or(unknown, known("layout", o.Layouts, schemas.EntityLayouts()), err, fault)
	if err != nil {
		err = usageError{err}
	}
	return list, err
}

// labels returns the names of engines in results.
func labels(engines []bench.Engine) string {
	list := make([]string, len(engines))
	for i, engine := range engines {
		list[i] = engine.Label()
	}
	return strings.Join(list, ", ")
}

// known refuses unknown names of a kind, and lists the known ones.
func known(kind string, names, all []string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("unknown %s %q; known are %s", kind, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// excluded returns the errors of a set's failed runs.
func excluded(set *report.Set, of func(l *benchfmt.Result) bool) error {
	var failed []error
	for _, l := range set.Excluded {
		if of(l) {
			failed = append(failed, fmt.Errorf("%s of %s, repeat %s: %s", l.Name, l.GetConfig("experiment"), l.GetConfig("repeat"), l.GetConfig("excluded")))
		}
	}
	return errors.Join(failed...)
}

// failure returns the error of an experiment's failed runs, and of stores with
// different contents from the same input; nil if there is none.
func failure(set *report.Set, experiment string) error {
	of := func(l *benchfmt.Result) bool { return l.GetConfig("experiment") == experiment }
	failed := excluded(set, of)
	first := map[string]*benchfmt.Result{}
	for _, l := range set.Lines {
		digest := l.GetConfig(lab.DigestKey)
		if !of(l) || digest == "" {
			continue
		}
		given := storeKeys.ReplaceAllString(string(l.Name), "")
		other := first[given]
		if other == nil {
			first[given] = l
		} else if want := other.GetConfig(lab.DigestKey); digest != want {
			failed = errors.Join(failed, fmt.Errorf("%w: %s holds %s, %s holds %s", bench.ErrMismatch, l.Name, digest, other.Name, want))
		}
	}
	return failed
}

// storeKeys are the keys that may differ between stores with the same input.
var storeKeys = regexp.MustCompile(`/(engine|layout)=[^/]*`)

// showProgress returns a function that shows the progress of building data
// sets.
func showProgress(e *env) func(name, unit string, total int64) bench.Progress {
	return func(name, unit string, total int64) bench.Progress {
		return startBar(e.stderr, name, unit, total)
	}
}
