package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
	"github.com/varvedb/varve/scaler"
)

// runCmd runs experiments on engines, each pair in a process of its own, and
// keeps every record as it is made. A run that was interrupted goes on when the
// same command is given again.
type runCmd struct {
	engineFlags
	experiment.Options
	IDs     []string      `arg:"" optional:"" name:"experiment" help:"Experiments (A5) or sections (A) of the catalogue; all when none is given."`
	List    bool          `help:"List the experiments and stop."`
	Engines []string      `help:"Engines to measure, or URLs of servers of yours." default:"${engines}"`
	Out     string        `help:"Directory of the results." default:"results/latest" type:"path"`
	Blocks  int           `min:"1" max:"1000" help:"Blocks of the run: in each, everything is measured once, in random order." default:"1"`
	AA      bool          `name:"aa" help:"Measure one configuration of each experiment twice in each block, to see the noise." default:"true" negatable:""`
	Empty   bool          `help:"Before anything is measured, remove the data sets that earlier runs have left, for their room."`
	Probe   bool          `help:"Look at the machine before each experiment on an engine, and note in the records where it is not as it was; with --plan, wait while it is not." default:"true" negatable:""`
	Timeout time.Duration `min:"0s" max:"720h" help:"Time after which an experiment on one engine is ended; its records so far are kept. When not given it follows from the phase and the size."`
	Plan    string        `help:"Do the commands of a plan instead, in order: the lines that begin with varve run in the sh blocks of a Markdown file, each with the time that it takes after #." type:"existingfile" placeholder:"FILE"`
	Until   time.Duration `min:"0s" max:"8760h" help:"With --plan: stop before what would not end within this time, by the times of the plan."`
	JSON    bool          `help:"Print the list, or the records when done, as JSON."`
}

// Run runs the experiments.
func (c *runCmd) Run(e *env) error {
	if c.Plan != "" {
		return c.through(e)
	}
	found, err := experiment.Find(c.IDs)
	if err != nil {
		return usageError{err}
	}
	switch {
	case c.List && c.JSON:
		return printJSON(e.stdout, found)
	case c.List:
		return listExperiments(e.stdout, found)
	}
	r, err := c.runner()
	if err == nil {
		err = r.run(e)
	}
	if err != nil {
		return err
	}
	return c.finish(e)
}

// runner returns what does the command.
func (c *runCmd) runner() (*runner, error) {
	found, err := experiment.Find(c.IDs)
	if err != nil {
		return nil, usageError{err}
	}
	engines, err := c.check()
	if err != nil {
		return nil, err
	}
	r := &runner{found: found, engines: engines, options: c.Options, blocks: c.Blocks, aa: c.AA, empty: c.Empty, out: c.Out, kept: true, child: child{cache: true, timeout: c.Timeout}}
	if c.Probe {
		r.watch, err = newWatch(c.Out)
	}
	return r, err
}

func listExperiments(out io.Writer, found []experiment.Experiment) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, x := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", x.ID, x.Title, x.Question)
	}
	return w.Flush()
}

// check refuses what cannot be measured.
func (c *runCmd) check() ([]bench.Engine, error) {
	if c.Scale <= 0 || c.Phase <= 0 || c.Blocks < 1 {
		return nil, usageError{errors.New("--scale, --phase and --blocks must be positive")}
	}
	if c.Loaded <= 0 || c.Loaded >= 1 || slices.ContainsFunc(c.Rates, func(rate float64) bool { return rate < 0 }) {
		return nil, usageError{errors.New("--loaded must be between 0 and 1, and --rates not below 0")}
	}
	for _, size := range c.Sizes {
		if whole := size / c.Loaded; whole < scaler.MinScale || whole > scaler.MaxScale {
			return nil, usageError{fmt.Errorf("--sizes %v: with --loaded %v that is of a base profile at scale %.6g, which there is from %v to %v", size, c.Loaded, whole, scaler.MinScale, scaler.MaxScale)}
		}
	}
	return c.set(&c.Options, c.Engines)
}

// finish derives the benchmark format and says what to do next.
func (c *runCmd) finish(e *env) error {
	results, err := finished(e, c.Out, c.JSON)
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(e.stdout, "%d records in %s; varve report %s makes a page of them, varve decide %s a verdict,\nbenchstat -col /engine %s a table\n",
			len(results.Records), c.Out, c.Out, c.Out, filepath.Join(c.Out, result.BenchFile))
	}
	failed := slices.DeleteFunc(results.Records, func(r result.Record) bool { return r.Error == "" })
	for i := range failed {
		fmt.Fprintf(e.stderr, "run: %s: %s\n", failed[i].Key(), failed[i].Error)
	}
	if len(failed) > 0 {
		return fmt.Errorf("run: %d runs did not end well; their errors are in the results, and --retry does them again", len(failed))
	}
	return nil
}

// labCmd runs one experiment on one engine in this process.
type labCmd struct {
	Experiment string `required:""`
	Engine     string `required:""`
	Out        string `required:""`
	Options    string `required:""`
}

// Run runs it, appends its records, and prints the keys of all that the set has of it.
func (c *labCmd) Run(e *env) error {
	var o experiment.Options
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		return usageError{err}
	}
	found, err := experiment.Find([]string{c.Experiment})
	if err != nil {
		return usageError{err}
	}
	keys, err := measureHere(e, measuredHere(c.Engine), c.Out, o, found[0])
	if e.ctx.Err() != nil {
		return exitStatus(ExitInterrupted) // which the command that started this one says
	}
	if err != nil {
		return err
	}
	return printJSON(e.stdout, keys)
}
