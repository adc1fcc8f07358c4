package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
	"github.com/varvedb/varve/internal/progress"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// engineFlags are what all that is measured has in common.
type engineFlags struct {
	Durability string `help:"What a commit promises: durable, relaxed or unsafe." default:"durable"`
	Memory     string `help:"Memory of an engine's process and all that it starts, with the page cache; half is for its own caches." default:"1GiB"`
}

// recordFlags are what commands that run one experiment of the catalogue have in common.
type recordFlags struct {
	Out  string `help:"Directory of a result set that keeps the records, for report, decide and benchstat, and from which a run goes on; none are kept when not given." type:"path"`
	JSON bool   `help:"Print the records as JSON."`
}

// set gives options what the flags say, checks the names of layouts, and returns the
// engines of names and URLs.
func (f *engineFlags) set(o *experiment.Options, engines []string) (list []bench.Engine, err error) {
	o.Durability, err = driver.ParseDurability(f.Durability)
	memory, fault := store.ParseBytes(f.Memory)
	if o.Memory = memory; fault != nil {
		fault = fmt.Errorf("--memory: %w", fault)
	}
	list, unknown := toMeasure(engines)
	err = cmp.Or(unknown, known("layout", o.Layouts, store.Layouts()), err, fault)
	if err != nil {
		err = usageError{err}
	}
	return list, err
}

// known refuses names of a kind that are not among all of it.
func known(kind string, names, all []string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("unknown %s %q; known are %s", kind, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// entry is a command's run of one experiment of the catalogue, on each engine in a
// process of its own, which is shown as a table of its records.
type entry struct {
	engineFlags
	recordFlags
	id      string
	engines []string
	options experiment.Options
	child   child
	lead    func(io.Writer, *result.Results) error // writes what stands before the table, which stays on the screen; nil for nothing
}

// run measures and prints. It prints what it has when an engine fails, and fails then.
func (x *entry) run(e *env) (*result.Results, error) {
	x.options.Scale, x.options.Loaded = 1, 0.6
	engines, err := x.set(&x.options, x.engines)
	if err != nil {
		return nil, err
	}
	found, err := experiment.Find([]string{x.id})
	if err != nil {
		return nil, err
	}
	kept := x.Out != ""
	return x.into(e, func() error {
		r := runner{found: found, engines: engines, options: x.options, blocks: 1, out: x.Out, kept: kept, child: x.child}
		return r.run(e)
	})
}

// measureHere runs an experiment in this process, and returns the keys of the records that
// the set has of it then.
func measureHere(e *env, engine bench.Engine, out string, o experiment.Options, found experiment.Experiment) (keys []string, err error) {
	l := &experiment.Lab{
		Options: o, Engine: engine,
		Log: func(format string, args ...any) { fmt.Fprintf(e.stderr, "  "+format+"\n", args...) },
	}
	if l.Cache, err = bench.OpenCache(""); err != nil {
		return nil, err
	}
	l.Cache.Progress = func(name, unit string, total int64) bench.Progress {
		return progress.Start(e.stderr, name, unit, total)
	}
	if l.Set, err = result.Open(out); err != nil {
		return nil, err
	}
	keys, err = l.Run(e.ctx, found)
	return keys, cmp.Or(e.ctx.Err(), errors.Join(err, l.Set.Close())) // a server may put what was cancelled in words of its own
}

// into prints the records of the experiment, which measure puts into the result set, or
// into one for this time only.
func (x *entry) into(e *env, measure func() error) (results *result.Results, err error) {
	if x.Out == "" {
		if x.Out, err = os.MkdirTemp("", "varve-"+x.id+"-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(x.Out)) }()
	}
	if err := measure(); err != nil {
		return nil, err
	}
	if results, err = finished(e, x.Out, x.JSON); err != nil {
		return nil, err
	}
	if !x.JSON && x.lead != nil {
		err = x.lead(e.stdout, results)
	}
	if !x.JSON {
		err = errors.Join(err, printTables(e, filepath.Join(x.Out, result.BenchFile), x.id))
	}
	for i := range results.Records {
		if r := &results.Records[i]; r.Error != "" && r.Experiment == x.id {
			err = errors.Join(err, fmt.Errorf("%s: %s", r.Config, r.Error))
		}
	}
	return results, err
}

// printTables prints the tables of an experiment from a result file.
func printTables(e *env, path, id string) error {
	set, err := report.Load(path)
	if err != nil {
		return err
	}
	return report.WriteText(e.stdout, set, id)
}

// finished reads a result set, derives the benchmark format of it, and prints its
// records if that is asked for.
func finished(e *env, dir string, asJSON bool) (*result.Results, error) {
	results, err := result.Read(dir)
	if err != nil {
		return nil, err
	}
	err = result.WriteBenchFile(dir, results)
	for i := range results.Records {
		if asJSON && err == nil {
			err = json.NewEncoder(e.stdout).Encode(&results.Records[i])
		}
	}
	return results, err
}
