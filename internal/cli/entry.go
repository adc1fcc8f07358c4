package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// engineFlags are what all that is measured has in common.
type engineFlags struct {
	Durability string `help:"What a commit promises: durable, relaxed or unsafe." default:"durable"`
	Memory     string `help:"Memory of an engine's process and all that it starts, with the page cache; half is for its own caches." default:"1GiB"`
}

// labFlags are what commands that run one experiment of the catalogue have in common.
type labFlags struct {
	engineFlags
	JSON bool `help:"Print the records as JSON."`
}

// options begins the experiment's.
func (f *engineFlags) options(seed uint64) (o experiment.Options, err error) {
	o = experiment.Options{Scale: 1, Loaded: 0.6, Seed: seed}
	if o.Durability, err = driver.ParseDurability(f.Durability); err != nil {
		return o, usageError{err}
	}
	if o.Memory, err = store.ParseBytes(f.Memory); err != nil {
		return o, usageError{fmt.Errorf("--memory: %w", err)}
	}
	return o, nil
}

// entry is a command's run of one experiment of the catalogue, on each engine in a
// process of its own, which is shown as a table of its records.
type entry struct {
	labFlags
	id      string
	engines []string
	options experiment.Options
	timeout time.Duration // of an engine; 0 is none

	out string // result set that keeps the records, and from which a run goes on; one of its own when empty
	own bool   // data sets and databases are in a directory of the run's own, not in the cache
	dir string // in which that is; the system's for temporary files when empty
}

// run measures and prints. It prints what it has when an engine fails, and fails then.
func (x *entry) run(e *env) (results *result.Results, err error) {
	if err := knownEngines(x.engines); err != nil {
		return nil, err
	}
	found, err := experiment.Find([]string{x.id})
	if err != nil {
		return nil, err
	}
	return x.into(e, func() error {
		r := runner{found: found, engines: x.engines, options: x.options, blocks: 1, out: x.out, child: child{cache: !x.own, dir: x.dir, timeout: x.timeout}}
		return r.run(e)
	})
}

// runHere measures in this process, what needs no engine, and prints.
func (x *entry) runHere(e *env, found experiment.Experiment) (*result.Results, error) {
	return x.into(e, func() error { return measureHere(e, "service", "", x.out, x.options, found) })
}

// measureHere runs an experiment in this process, its data sets in a cache.
func measureHere(e *env, engine, cache, out string, o experiment.Options, found experiment.Experiment) (err error) {
	l := &experiment.Lab{
		Options: o, Engine: bench.Engine{Name: engine},
		Log: func(format string, args ...any) { fmt.Fprintf(e.stderr, "  "+format+"\n", args...) },
	}
	if l.Cache, err = bench.OpenCache(cache); err != nil {
		return err
	}
	if l.Set, err = result.Open(out); err != nil {
		return err
	}
	err = errors.Join(l.Run(e.ctx, found), l.Set.Close())
	return cmp.Or(e.ctx.Err(), err) // a server may put what was cancelled in words of its own
}

// into prints what measure puts into the result set, or into one for this time only.
func (x *entry) into(e *env, measure func() error) (results *result.Results, err error) {
	if x.out == "" {
		if x.out, err = os.MkdirTemp("", "varve-"+x.id+"-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(x.out)) }()
	}
	if err := measure(); err != nil {
		return nil, err
	}
	return x.print(e)
}

// print prints the records of the experiment.
func (x *entry) print(e *env) (*result.Results, error) {
	results, err := finished(x.out)
	if err != nil {
		return nil, err
	}
	var failed error
	for i := range results.Records {
		r := &results.Records[i]
		if r.Error != "" && r.Experiment == x.id {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", r.Config, r.Error))
		}
		if x.JSON {
			failed = errors.Join(failed, json.NewEncoder(e.stdout).Encode(r))
		}
	}
	if x.JSON {
		return results, failed
	}
	err = report.WriteText(e.stdout, &report.Input{Results: results}, x.id)
	return results, errors.Join(err, failed)
}

// finished reads a result set and derives the benchmark format of it.
func finished(dir string) (*result.Results, error) {
	results, err := result.Read(dir)
	if err != nil {
		return nil, err
	}
	return results, result.WriteBenchFile(dir, results)
}
