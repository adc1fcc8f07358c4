package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/scaler"
)

// runCmd runs experiments on engines, each pair in a process of its own, and keeps every result
// as it is made. A run that was interrupted goes on when the same command is given again.
type runCmd struct {
	engineFlags
	lab.Options
	IDs     []string      `arg:"" optional:"" name:"experiment" help:"Experiments (A5) or sections (A) of the catalogue; all when none is given."`
	List    bool          `help:"List the experiments and stop."`
	Engines []string      `help:"Engines to measure, or URLs of servers of yours." default:"${engines}"`
	Out     string        `help:"Directory of the results." default:"results/latest" type:"path"`
	Repeats int           `min:"1" max:"1000" help:"How often everything is measured: in turns over the engines, each time in another order with other questions." default:"3"`
	Empty   bool          `help:"Before anything is measured, remove the data sets that earlier runs have left, for their room."`
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
	if c.List {
		return listExperiments(e.stdout, found)
	}
	engines, err := c.check()
	if err != nil {
		return err
	}
	r := &runner{found: found, engines: engines, options: c.Options, repeats: c.Repeats, empty: c.Empty, out: c.Out, kept: true, timeout: c.Timeout}
	failed := r.run(e)
	if e.ctx.Err() != nil {
		return failed
	}
	return errors.Join(failed, c.finish(e))
}

func listExperiments(out io.Writer, found []lab.Experiment) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, x := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", x.ID, x.Title, x.Question)
	}
	return w.Flush()
}

// check refuses what cannot be measured.
func (c *runCmd) check() ([]bench.Engine, error) {
	if c.Loaded >= 1 {
		return nil, usageError{errors.New("--loaded: want less than 1, so that something is left to commit")}
	}
	for _, size := range c.Sizes {
		if c.Source != "" {
			break
		}
		if whole := size / c.Loaded; whole < scaler.MinScale || whole > scaler.MaxScale {
			return nil, usageError{fmt.Errorf("--sizes %v: with --loaded %v that is of a base profile at scale %.6g, which there is from %v to %v", size, c.Loaded, whole, scaler.MinScale, scaler.MaxScale)}
		}
	}
	return c.set(&c.Options, c.Engines)
}

// finish says what there is and what to do next.
func (c *runCmd) finish(e *env) error {
	set, err := lab.OpenSet(c.Out)
	if err != nil {
		return err
	}
	if set.Len() == 0 {
		return nil // why, has been said
	}
	fmt.Fprintf(e.stdout, "%d lines in %s; varve report %s makes a page of them, varve answer --from %s answers,\nbenchstat -col /engine %s/*.txt a table\n", set.Len(), c.Out, c.Out, c.Out, c.Out)
	failed := set.Failed()
	for _, run := range failed {
		fmt.Fprintf(e.stderr, "run: failed: %s\n", run)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d runs did not end well; their errors are in the results, and --retry does them again", len(failed))
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

// Run runs it and appends its results.
func (c *labCmd) Run(e *env) error {
	var o lab.Options
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		return usageError{err}
	}
	found, err := lab.Find([]string{c.Experiment})
	if err != nil {
		return usageError{err}
	}
	err = measureHere(e, measuredHere(c.Engine), c.Out, o, found[0], renew)
	if e.ctx.Err() != nil {
		return exitStatus(ExitInterrupted) // which the command that started this one says
	}
	return err
}

// renew replaces this process by one with the same command.
func renew() error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return become(path, os.Args[1:], os.Environ())
}
