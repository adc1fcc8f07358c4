package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
)

// runCmd runs experiments on engines, each pair in a process of its own, and
// keeps every record as it is made. A run that was interrupted goes on when the
// same command is given again.
type runCmd struct {
	engineFlags
	IDs     []string      `arg:"" optional:"" name:"experiment" help:"Experiments (A5) or sections (A) of the catalogue; all when none is given."`
	List    bool          `help:"List the experiments and stop."`
	Engines []string      `help:"Engines to measure." default:"${engines}"`
	Out     string        `help:"Directory of the results." default:"results/latest" type:"path"`
	Scale   float64       `help:"Part of the sizes of the user's documents; 1 is theirs." default:"0.05"`
	Phase   time.Duration `help:"Length of a timed phase." default:"10s"`
	Blocks  int           `help:"Blocks of the run: in each, everything is measured once, in random order." default:"1"`
	AA      bool          `name:"aa" help:"Measure one configuration of each experiment twice in each block, to see the noise." default:"true" negatable:""`
	Seed    uint64        `help:"Of data and of the order of operations." default:"1"`
	Layouts []string      `help:"Layouts to measure instead of each experiment's own."`
	Sizes   []float64     `help:"Scales of the growth experiment D5; a quarter, once and four times --scale when not given."`
	Rates   []float64     `help:"Rows a second of the sustained writes D1, 0 for as fast as possible; 6000 and 0 when not given."`
	Loaded  float64       `help:"Part of the base profile that a store holds before commits begin: with less, more is left to commit." default:"0.6"`
	Bare    bool          `help:"Give the base profile the smallest payloads, for sizes that would not fit."`
	Retry   bool          `help:"Do again what an earlier run of the same command has failed at."`
	Timeout time.Duration `help:"Time after which an experiment on one engine is ended; its records so far are kept. When not given it follows from the phase and the size."`
	InPlace bool          `help:"Use data sets themselves and no copies, which takes half of the disk: those that were changed are built again."`
	JSON    bool          `help:"Print the list, or the records when done, as JSON."`
}

// Run runs the experiments.
func (c *runCmd) Run(e *env) error {
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
	o, err := c.options()
	if err != nil {
		return usageError{err}
	}
	r := runner{found: found, engines: c.Engines, options: o, blocks: c.Blocks, aa: c.AA, out: c.Out, child: child{cache: true, timeout: c.Timeout}}
	if err := r.run(e); err != nil {
		return err
	}
	return c.finish(e)
}

func listExperiments(out io.Writer, found []experiment.Experiment) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, x := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", x.ID, x.Title, x.Question)
	}
	return w.Flush()
}

func (c *runCmd) options() (o experiment.Options, err error) {
	if err := knownEngines(c.Engines); err != nil {
		return o, err
	}
	if err := knownLayouts(c.Layouts...); err != nil {
		return o, err
	}
	if c.Scale <= 0 || c.Phase <= 0 || c.Blocks < 1 {
		return o, errors.New("--scale, --phase and --blocks must be positive")
	}
	if c.Loaded <= 0 || c.Loaded >= 1 || slices.ContainsFunc(c.Rates, func(rate float64) bool { return rate < 0 }) {
		return o, errors.New("--loaded must be between 0 and 1, and --rates not below 0")
	}
	o, err = c.engineFlags.options(c.Seed)
	o.Scale, o.Phase, o.Layouts, o.Sizes, o.Rates, o.Loaded = c.Scale, c.Phase, c.Layouts, c.Sizes, c.Rates, c.Loaded
	o.Bare, o.Retry, o.InPlace = c.Bare, c.Retry, c.InPlace
	return o, err
}

// finish derives the benchmark format and says what to do next.
func (c *runCmd) finish(e *env) error {
	results, err := finished(c.Out)
	if err != nil {
		return err
	}
	if c.JSON {
		for i := range results.Records {
			if err := json.NewEncoder(e.stdout).Encode(&results.Records[i]); err != nil {
				return err
			}
		}
	} else {
		fmt.Fprintf(e.stdout, "%d records in %s; varve report %s makes a page of them, varve decide %s a verdict,\nbenchstat -col /engine %s a table\n",
			len(results.Records), c.Out, c.Out, c.Out, filepath.Join(c.Out, result.BenchFile))
	}
	failed := 0
	for i := range results.Records {
		if r := &results.Records[i]; r.Error != "" {
			failed++
			fmt.Fprintf(e.stderr, "run: %s: %s\n", r.Key(), r.Error)
		}
	}
	if failed > 0 {
		return fmt.Errorf("run: %d runs did not end well; their errors are in the results, and --retry does them again", failed)
	}
	return nil
}

// labCmd runs one experiment on one engine in this process.
type labCmd struct {
	Experiment string `required:""`
	Engine     string `required:""`
	Out        string `required:""`
	Options    string `required:""`
	Own        bool   // data sets and databases are temporary files, which the parent removes
}

// Run runs it and appends its records.
func (c *labCmd) Run(e *env) error {
	var o experiment.Options
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		return usageError{err}
	}
	found, err := experiment.Find([]string{c.Experiment})
	if err != nil {
		return usageError{err}
	}
	cache := ""
	if c.Own {
		cache = filepath.Join(os.TempDir(), "cache")
	}
	for _, x := range found {
		if err := measureHere(e, c.Engine, cache, c.Out, o, x); err != nil {
			return err
		}
	}
	return nil
}
