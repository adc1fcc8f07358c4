package cli

import (
	"bytes"
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
	engines []bench.Engine
	options experiment.Options
	blocks  int
	aa      bool // in each block one configuration of each experiment is measured again, to see the noise
	out     string
	kept    bool  // the result set stays when the command has ended
	child   child // of an experiment on an engine, but for engine and arguments

	// What the set had when the run began.
	here     string              // this machine
	machines map[int]string      // of the blocks that the set has something of
	failed   map[recordID]bool   // its records, and whether each is of a failure
	ended    map[string][]string // tasks that ended well, with the keys of their records
}

// recordID is what no two records of a set share.
type recordID struct {
	key   string
	block int
}

// task is what one process measures: an experiment on an engine in a block, or one
// configuration of it again.
type task struct {
	of     experiment.Experiment
	engine bench.Engine
	block  int
	again  bool
}

func (t task) String() string {
	if t.again {
		return t.of.ID + " on " + t.engine.Label() + " again"
	}
	return t.of.ID + " on " + t.engine.Label()
}

func (r *runner) run(e *env) error {
	if err := r.claim(); err != nil {
		return err
	}
	if err := r.recall(); err != nil {
		return err
	}
	done, left := 0, []task(nil)
	for block := range r.blocks {
		if other := r.machines[block]; other != "" && other != r.here {
			fmt.Fprintf(e.stderr, "run: block %d is of another machine, and stays as it is; --blocks %d measures one more here\n", block+1, r.blocks+1)
			continue
		}
		for _, t := range r.tasks(block) {
			if r.has(t) {
				done++
			} else {
				left = append(left, t)
			}
		}
	}
	total := done + len(left)
	if done > 0 {
		fmt.Fprintf(e.stderr, "run: %d of %d are done already\n", done, total)
	}
	start := time.Now()
	for i, t := range left {
		took, about := time.Since(start), ""
		if i > 0 { // by what was measured in this process
			about = fmt.Sprintf(", about %s left", (took / time.Duration(i) * time.Duration(len(left)-i)).Round(time.Second))
		}
		fmt.Fprintf(e.stderr, "run: block %d of %d, %s (%d of %d, %s so far%s)\n", t.block+1, r.blocks, t, done+i+1, total, took.Round(time.Second), about)
		if err := r.measure(e, t); err != nil {
			return err
		}
	}
	return nil
}

// tasks returns those of a block: experiments in random order, and within each the
// engines, so that what is compared is measured at nearly the same time. What is not kept is a
// look, in the order of its engines: the quickest answer first.
func (r *runner) tasks(block int) (list []task) {
	if !r.kept {
		for _, x := range r.found {
			for _, engine := range r.engines {
				list = append(list, task{x, engine, block, false})
			}
		}
		return list
	}
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
			list = append(list, task{x, engine, block, false})
		}
		if r.aa {
			list = append(list, task{x, engines[0], block, true})
		}
		experiment.Shuffle(list[first:], r.options.Seed, block, x.ID, result.AAKey)
	}
	return list
}

// ended is a task that ended well, as the set remembers it.
type ended struct {
	Task string   `json:"task"` // with all that its records depend on
	Keys []string `json:"keys"` // of the records that the set had of it then
}

// name is a task with all that its records depend on. That of options which JSON cannot
// write is that of no task.
func (r *runner) name(t task) string {
	o := r.options
	o.Block, o.Again, o.Retry, o.InPlace = t.block, t.again, false, false
	text, _ := json.Marshal(o)
	return fmt.Sprintf("%s: %s", t, text)
}

// has tells whether the set has all of a task, and no failure of it that is to be done
// again. A record may have been taken out of the set by hand.
func (r *runner) has(t task) bool {
	keys, well := r.ended[r.name(t)]
	return well && !slices.ContainsFunc(keys, func(key string) bool {
		failed, has := r.failed[recordID{key, t.block}]
		return !has || failed && r.options.Retry
	})
}

// measure runs a task in its process, and keeps how that ended.
func (r *runner) measure(e *env, t task) error {
	o := r.options
	o.Block, o.Again = t.block, t.again
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	well := ended{Task: r.name(t)}
	lab := r.child
	lab.of, lab.memory, lab.timeout, lab.into = t.engine, o.Memory, cmp.Or(lab.timeout, t.of.Timeout(o)), &well.Keys
	lab.args = []string{"lab", "--experiment=" + t.of.ID, "--engine=" + t.engine.Label(), "--out=" + r.out, "--options=" + string(text)}
	err = lab.run(e)
	if err := e.ctx.Err(); err != nil {
		if r.kept {
			return fmt.Errorf("%w; run the same command again to go on", err)
		}
		return err
	}
	if err == nil {
		if err := well.keep(filepath.Join(r.out, endedFile)); err != nil {
			return err
		}
	}
	return r.keepEnd(t, err)
}

// keep adds a line to a file. One that is torn says nothing: the task is looked at again.
func (w *ended) keep(path string) error {
	line, err := json.Marshal(w)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// keepEnd makes a record of a process that did not end well, and of one that did
// where an earlier one had not.
func (r *runner) keepEnd(t task, cause error) (err error) {
	rec := &result.Record{Experiment: t.of.ID, Name: "Run", Config: result.Config{{Key: "engine", Value: t.engine.Label()}}, Repeat: t.block, Started: time.Now().UTC()}
	if t.again {
		rec.Config = rec.Config.With(result.AAKey, "2")
	}
	if cause != nil {
		rec.Error = cause.Error()
	} else if _, before := r.failed[recordID{rec.Key(), t.block}]; !before {
		return nil
	}
	set, err := result.Open(r.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	m, err := bench.DescribeEngine(t.engine.Name, &store.Options{Durability: r.options.Durability, Memory: memlimit.Cache(r.options.Memory)}, r.out)
	if err != nil {
		return err
	}
	if rec.Manifest, err = set.Manifest(m); err != nil {
		return err
	}
	return set.Append(rec)
}

// What a run keeps in its result set beside the records.
const (
	optionsFile = "options.json"
	endedFile   = "ended.jsonl"
)

// claim records what a new result set is of and compares that of an old one, so that a run
// cannot mix what its records do not say. More blocks, layouts, sizes and rates are
// welcome: their records say so.
func (r *runner) claim() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	s := struct {
		Revision string             `json:"revision"`
		Options  experiment.Options `json:"options"`
	}{Options: r.options}
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
		return os.WriteFile(path, text, 0o644)
	case err == nil && string(old) != string(text):
		return usageError{fmt.Errorf("%s holds results of another source or of other options, %s and not %s; give another --out, or the same to go on", r.out, old, text)}
	}
	return err
}

// recall finds out what the set has, once: another machine's blocks, records, and tasks
// that ended well.
func (r *runner) recall() error {
	host, err := bench.ReadHost(r.out)
	if err != nil {
		return err
	}
	r.here, r.machines, r.failed, r.ended = host.Machine, map[int]string{}, map[recordID]bool{}, map[string][]string{}
	results, err := result.Read(r.out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range results.Records {
		rec := &results.Records[i]
		r.failed[recordID{rec.Key(), rec.Repeat}] = rec.Error != ""
		if _, known := r.machines[rec.Repeat]; known || rec.Manifest == "" {
			continue // results of earlier versions have some without
		}
		var m bench.Manifest
		if err := results.Manifest(rec, &m); err != nil {
			return err
		}
		r.machines[rec.Repeat] = m.Host.Machine
	}
	lines, err := os.ReadFile(filepath.Join(r.out, endedFile))
	for line := range bytes.Lines(lines) {
		var of ended
		if json.Unmarshal(line, &of) == nil { // else it is torn
			r.ended[of.Task] = of.Keys
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
