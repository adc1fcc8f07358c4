package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
	"github.com/varvedb/varve/internal/memlimit"
	"github.com/varvedb/varve/store"
)

// runner runs experiments into a result set, each on each engine in a process of its
// own, block after block: in a block everything is measured once. What the set has
// already is not measured again.
type runner struct {
	found   []experiment.Experiment
	engines []string
	options experiment.Options
	blocks  int
	aa      bool // in each block one configuration of each experiment is measured again, to see the noise
	out     string
	child   child // of an experiment on an engine, but for engine and arguments

	here     string         // this machine
	machines map[int]string // of the blocks that the set has something of
}

// task is what one process measures: an experiment on an engine, or one
// configuration of it again.
type task struct {
	of     experiment.Experiment
	engine string
	again  bool
}

func (t task) String() string {
	if t.again {
		return t.of.ID + " on " + t.engine + " again"
	}
	return t.of.ID + " on " + t.engine
}

func (r *runner) run(e *env) error {
	if err := r.claim(); err != nil {
		return err
	}
	start, done, total := time.Now(), 0, len(r.tasks(0))*r.blocks
	for block := range r.blocks {
		tasks := r.tasks(block)
		if other := r.machines[block]; other != "" && other != r.here {
			fmt.Fprintf(e.stderr, "run: block %d is of another machine, and stays as it is; --blocks %d measures one more here\n", block+1, r.blocks+1)
			total -= len(tasks)
			continue
		}
		for _, t := range tasks {
			fmt.Fprintf(e.stderr, "run: block %d of %d, %s (%d of %d, %s so far%s)\n", block+1, r.blocks, t, done+1, total,
				time.Since(start).Round(time.Second), eta(start, done, total))
			if err := r.measure(e, block, t); err != nil {
				return err
			}
			done++
		}
	}
	return nil
}

// tasks returns those of a block: experiments in random order, and within each the
// engines, so that what is compared is measured at nearly the same time.
func (r *runner) tasks(block int) (list []task) {
	found := slices.Clone(r.found)
	experiment.Shuffle(found, r.options.Seed, block)
	if r.options.InPlace {
		experiment.ReadersFirst(found)
	}
	for _, x := range found {
		engines := slices.Clone(r.engines)
		experiment.Shuffle(engines, r.options.Seed, block, x.ID)
		first := len(list)
		for _, engine := range engines {
			list = append(list, task{x, engine, false})
		}
		if r.aa {
			list = append(list, task{x, engines[0], true})
		}
		experiment.Shuffle(list[first:], r.options.Seed, block, x.ID, result.AAKey)
	}
	return list
}

// measure runs a task in its process, and keeps how that ended.
func (r *runner) measure(e *env, block int, t task) error {
	o := r.options
	o.Block, o.Again = block, t.again
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	lab := r.child
	lab.engine, lab.memory, lab.timeout = t.engine, o.Memory, cmp.Or(lab.timeout, t.of.Timeout(o))
	lab.args = []string{"lab", "--experiment=" + t.of.ID, "--engine=" + t.engine, "--out=" + r.out, "--options=" + string(text)}
	if !lab.cache {
		lab.args = append(lab.args, "--own")
	}
	err = lab.run(e)
	if err := e.ctx.Err(); err != nil {
		return fmt.Errorf("%w; run the same command again to go on", err)
	}
	return r.keepEnd(block, t, err)
}

// keepEnd makes a record of a process that did not end well, and of one that did
// where an earlier one had not.
func (r *runner) keepEnd(block int, t task, cause error) (err error) {
	set, err := result.Open(r.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	rec := &result.Record{Experiment: t.of.ID, Name: "Run", Config: result.Config{{Key: "engine", Value: t.engine}}, Repeat: block, Started: time.Now().UTC()}
	if t.again {
		rec.Config = rec.Config.With(result.AAKey, "2")
	}
	switch {
	case cause != nil:
		rec.Error = cause.Error()
	case !set.Has(rec.Key(), block):
		return nil
	}
	m, err := bench.DescribeEngine(t.engine, &store.Options{Durability: r.options.Durability, Memory: memlimit.Cache(r.options.Memory)}, r.out)
	if err != nil {
		return err
	}
	if rec.Manifest, err = set.Manifest(m); err != nil {
		return err
	}
	return set.Append(rec)
}

// setOptions is what a result set is of, so that a resumed run cannot mix what its
// records do not say.
type setOptions struct {
	Revision string             `json:"revision"`
	Options  experiment.Options `json:"options"`
}

const optionsFile = "options.json"

// claim records what a new result set is of and compares that of an old one. More
// blocks, layouts, sizes and rates are welcome: their records say so.
func (r *runner) claim() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	s := setOptions{Options: r.options}
	s.Revision, _ = bench.ReadRevision().Name()
	o := &s.Options
	o.Scale, o.Retry, o.InPlace, o.Layouts, o.Sizes, o.Rates, o.Social = 0, false, false, nil, nil, nil, nil
	if o.Permissions != nil {
		o.Permissions = &experiment.PermissionOptions{Batch: o.Permissions.Batch}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(r.out, optionsFile)
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = os.WriteFile(path, text, 0o644)
	case err == nil && string(old) != string(text):
		err = usageError{fmt.Errorf("%s holds results of another source or of other options, %s and not %s; give another --out, or the same to go on", r.out, old, text)}
	}
	if err != nil {
		return err
	}
	return r.readMachines()
}

// readMachines finds out which machine the blocks of the set are of.
func (r *runner) readMachines() error {
	host, err := bench.ReadHost(r.out)
	if err != nil {
		return err
	}
	r.here, r.machines = host.Machine, make(map[int]string)
	results, err := result.Read(r.out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range results.Records {
		rec := &results.Records[i]
		if _, known := r.machines[rec.Repeat]; known || rec.Manifest == "" {
			continue // results of earlier versions have some without
		}
		var m bench.Manifest
		if err := results.Manifest(rec, &m); err != nil {
			return err
		}
		r.machines[rec.Repeat] = m.Host.Machine
	}
	return nil
}

func eta(start time.Time, done, total int) string {
	if done == 0 {
		return ""
	}
	left := time.Since(start) / time.Duration(done) * time.Duration(total-done)
	return ", about " + left.Round(time.Second).String() + " left"
}
