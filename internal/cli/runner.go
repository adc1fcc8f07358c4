package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store/driver"
)

// runner runs experiments into a directory of results, each experiment on each
// engine in a separate process. Data sets are loaded once, on the cache's disk,
// and each repeat is a new process on them. The engines alternate, so that a
// drift of the machine affects all alike. Results that the directory already
// has are not measured again.
type runner struct {
	stages  []stage
	engines []bench.Engine
	options lab.Options
	repeats int
	empty   bool // empty the cache of data sets first
	out     string
	kept    bool   // the results stay after the command has ended
	dir     string // of the temporary files of processes; the system's when empty
	apart   bool   // each process has a separate cache of data sets
	timeout time.Duration
	verbose bool // all messages of processes are printed
}

// stage is a list of experiments at one scale; a scale of 0 means the scale of
// the options. In a stage with a scale, everything is measured once before
// anything is repeated.
type stage struct {
	found []lab.Experiment
	scale float64
}

// sittingForm is the time format of a sitting's name.
const sittingForm = "20060102T150405Z"

// task is the unit that one process measures: an experiment on an engine, once.
type task struct {
	of      lab.Experiment
	engine  bench.Engine
	repeat  int
	options lab.Options
}

func (t task) String() string {
	return fmt.Sprintf("%s on %s, repeat %d", t.of.ID, t.engine.Label(), t.repeat+1)
}

// words describes the task for readers.
func (t task) words(repeats int) string {
	return fmt.Sprintf("%s (%s) on %s at scale %v, repeat %d of %d", t.of.Title, t.of.ID, t.engine.Label(), t.options.Scale, t.repeat+1, repeats)
}

// tasks returns all tasks: experiment after experiment, and within each the
// repeats, in which the engines alternate around the reference (lab.Alternate).
// Without a results directory the engines keep the given order, so that the
// first answer comes soonest.
func (r *runner) tasks() (list []task) {
	for _, s := range r.stages {
		o, begin := r.options, len(list)
		if s.scale > 0 {
			o.Scale, o.Sizes = s.scale, []float64{s.scale}
		}
		for _, x := range s.found {
			for repeat := range r.repeats {
				o.Repeat = repeat
				first := len(list)
				for _, e := range r.engines {
					list = append(list, task{x, e, repeat, o})
				}
				if r.kept || repeat > 0 {
					reference := func(t task) bool { return t.engine.Label() == engine.Reference() }
					lab.Alternate(list[first:], repeat, reference, o.Seed, o.Sitting, x.ID)
				}
			}
		}
		if s.scale > 0 {
			slices.SortStableFunc(list[begin:], func(a, b task) int { return a.repeat - b.repeat })
		}
	}
	return list
}

func (r *runner) run(e *env) error {
	set, err := lab.OpenSet(r.out)
	if err != nil {
		return err
	}
	held, err := filelease.Open(filepath.Join(r.out, ".lock"), 0o600)
	if err != nil {
		if errors.Is(err, driver.ErrLocked) {
			err = fmt.Errorf("another command measures into %s; wait for its end, or give another --out", r.out)
		}
		return err
	}
	defer held.Close()
	if r.empty && set.Len() == 0 {
		if err := bench.EmptyCache(); err != nil {
			return err
		}
	}
	if err := r.prepare(e); err != nil {
		return err
	}
	r.options.Sitting = cmp.Or(r.options.Sitting, time.Now().UTC().Format(sittingForm))
	tasks, failed := r.tasks(), error(nil)
	guesses := make([]time.Duration, len(tasks))
	for i, t := range tasks {
		guesses[i] = takes(t.of, t.options, []bench.Engine{t.engine}, 1)
	}
	shown := newParts(e, guesses, r.verbose)
	for _, t := range tasks {
		shown.begin(t.words(r.repeats))
		err := r.measure(e, t, shown)
		shown.end()
		if err := e.ctx.Err(); err != nil {
			if r.kept {
				return fmt.Errorf("%w; run the same command again to go on", err)
			}
			return err
		}
		if err != nil {
			fmt.Fprintf(e.stderr, "run: %s: %v\n", t, err)
			failed = errors.Join(failed, fmt.Errorf("%s: %w", t, err), r.keepFailure(t, err))
		}
	}
	return failed
}

// prepare writes the source to a block tar, which all processes read.
func (r *runner) prepare(e *env) error {
	if r.options.Source == "" {
		return nil
	}
	cache, err := bench.OpenCache("")
	if err != nil {
		return err
	}
	cache.Progress = showProgress(e)
	r.options.Source, err = source.Prepare(e.ctx, r.options.Source, cache)
	return cmp.Or(e.ctx.Err(), err)
}

// measure runs a task in a process.
func (r *runner) measure(e *env, t task, shown *parts) error {
	o := t.options
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	c := child{of: t.engine, dir: r.dir, apart: r.apart, memory: o.Memory, timeout: cmp.Or(r.timeout, patience(t.of, o, t.engine)), messages: shown, quiet: !r.verbose}
	c.args = []string{"lab", "--experiment=" + t.of.ID, "--engine=" + t.engine.Label(), "--out=" + r.out, "--options=" + string(text)}
	if r.verbose {
		c.args = append(c.args, "--verbose")
	}
	return c.run(e)
}

// keepFailure records in the results that a process failed, and keeps the lines
// that it had measured before.
func (r *runner) keepFailure(t task, cause error) error {
	m, err := bench.DescribeHost(r.out)
	if err != nil {
		return err
	}
	set, err := lab.OpenSet(r.out) // with the lines that the process has added
	if err != nil {
		return err
	}
	m.Set("sitting", r.options.Sitting)
	m.Set("repeat", strconv.Itoa(t.repeat+1))
	keys := lab.Keys{{Name: "engine", Value: t.engine.Label()}}
	return set.Add(t.of.ID, t.engine.Label(), r.options.Sitting, &lab.Record{Name: "Run", Keys: keys, Manifest: m, Err: cause})
}
