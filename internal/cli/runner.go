package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
	"github.com/varvedb/varve/internal/filesync"
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
	empty   bool // the cache of data sets is emptied, unless something was measured already
	out     string
	kept    bool   // the result set stays when the command has ended
	child   child  // of an experiment on an engine, but for engine and arguments
	watch   *watch // of the machine; nil is none

	about time.Duration // that all of it takes; 0 is not known
	until time.Time     // when it is to end, before a task that takes longer; zero is never

	*past // nil until it is looked for
}

// past is what the set had when the run began.
type past struct {
	here     string              // this machine
	machines map[place]string    // that the set has something of
	failed   map[recordID]bool   // its records, and whether each is of a failure
	ended    map[string][]string // tasks that ended well, with the keys of their records
	looks    []*result.Record    // at machines
}

// place is an experiment in a block, which is of one machine.
type place struct {
	experiment string
	block      int
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

// left returns the tasks that the set does not have, and how many it has.
func (r *runner) left(e *env) (left []task, done int, err error) {
	if r.past == nil {
		if r.past, err = recall(r.out); err != nil {
			return nil, 0, err
		}
	}
	var elsewhere []string
	for block := range r.blocks {
		for _, t := range r.tasks(block) {
			switch other := r.machines[place{t.of.ID, block}]; {
			case r.has(t):
				done++
			case other != "" && other != r.here:
				if what := fmt.Sprintf("block %d of %s", block+1, t.of.ID); !slices.Contains(elsewhere, what) {
					elsewhere = append(elsewhere, what)
				}
			default:
				left = append(left, t)
			}
		}
	}
	if len(elsewhere) > 0 {
		fmt.Fprintf(e.stderr, "run: %s: of another machine, and stays as it is; --blocks %d measures one more here\n", strings.Join(elsewhere, ", "), r.blocks+1)
	}
	return left, done, nil
}

// errUntil: the time that a run may take is too short for what is left.
var errUntil = errors.New("the time is up; the same command goes on")

func (r *runner) run(e *env) error {
	if err := r.claim(); err != nil {
		return err
	}
	left, done, err := r.left(e)
	if err != nil {
		return err
	}
	total := done + len(left)
	if done > 0 {
		fmt.Fprintf(e.stderr, "run: %d of %d are done already\n", done, total)
	}
	if len(left) == 0 {
		return nil
	}
	if r.empty && done == 0 {
		if err := bench.EmptyCache(); err != nil {
			return err
		}
	}
	for _, look := range r.looks {
		if r.watch != nil {
			r.watch.recall(look)
		}
	}
	start := time.Now()
	return r.watch.through(e, left, func(i int, off string, over bool) error {
		t, took, about := left[i], time.Since(start), ""
		if each := r.about / time.Duration(total); !r.until.IsZero() && time.Now().Add(each).After(r.until) {
			return errUntil
		}
		if i > 0 { // by what was measured in this process
			about = fmt.Sprintf(", about %s left", (took / time.Duration(i) * time.Duration(len(left)-i)).Round(time.Second))
		}
		fmt.Fprintf(e.stderr, "run: block %d of %d, %s (%d of %d, %s so far%s)\n", t.block+1, r.blocks, t, done+i+1, total, took.Round(time.Second), about)
		return r.measure(e, t, off, over)
	})
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

// name is a task with all that its records depend on.
func (r *runner) name(t task) string {
	o := r.options
	o.Block, o.Again, o.Retry, o.InPlace = t.block, t.again, false, false
	return fmt.Sprintf("%s: %s", t, asJSON(o))
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
func (r *runner) measure(e *env, t task, off string, over bool) error {
	o := r.options
	o.Block, o.Again, o.Off, o.Over = t.block, t.again, off, over
	well := ended{Task: r.name(t)}
	lab := r.child
	lab.of, lab.memory, lab.timeout, lab.into = t.engine, o.Memory, cmp.Or(lab.timeout, t.of.Timeout(o)), &well.Keys
	lab.args = []string{"lab", "--experiment=" + t.of.ID, "--engine=" + t.engine.Label(), "--out=" + r.out, "--options=" + string(asJSON(o))}
	err := lab.run(e)
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

// claims are what all records of a set have in common and do not say themselves.
type claims struct {
	Revision string             `json:"revision"`
	Options  experiment.Options `json:"options"`

	// Phases are those of each experiment whose records do not say how long one was.
	Phases map[string]time.Duration `json:"phases,omitempty"`
}

// claim records what a new result set is of and compares that of an old one, so that a run
// cannot mix what its records do not say. More blocks, layouts, sizes and rates are
// welcome: their records say so. So are other phases, of other experiments.
func (r *runner) claim() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	s := claims{Options: r.options, Phases: map[string]time.Duration{}}
	s.Revision, _ = bench.ReadRevision().Name()
	o := &s.Options
	o.Scale, o.Phase, o.Bare, o.Retry, o.InPlace, o.Layouts, o.Sizes, o.Rates, o.Social = 0, 0, false, false, false, nil, nil, nil, nil
	if o.Permissions != nil {
		o.Permissions = &experiment.PermissionOptions{Batch: o.Permissions.Batch}
	}
	for _, x := range r.found {
		if !x.SaysPhase {
			s.Phases[x.ID] = r.options.Phase
		}
	}
	path := filepath.Join(r.out, optionsFile)
	text, err := os.ReadFile(path)
	var old claims
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	default:
		was, is := claims{old.Revision, old.Options, nil}, claims{s.Revision, s.Options, nil}
		if !reflect.DeepEqual(was, is) {
			return usageError{fmt.Errorf("%s holds results of another source or of other options, %s and not %s; give another --out, or the same to go on", r.out, asJSON(was), asJSON(is))}
		}
	}
	for id, phase := range old.Phases {
		if now, again := s.Phases[id]; again && now != phase {
			return usageError{fmt.Errorf("%s holds results of %s with --phase %s and not %s; give another --out, or the same to go on", r.out, id, phase, now)}
		}
		s.Phases[id] = phase
	}
	return filesync.Replace(path, asJSON(s), 0o644)
}

// asJSON is of options, which JSON can write.
func asJSON(of any) []byte {
	text, _ := json.Marshal(of)
	return text
}

// recall finds out what a set has, once: machines, records, and tasks
// that ended well.
func recall(out string) (*past, error) {
	r := &past{here: bench.ReadHost(out).Machine, machines: map[place]string{}, failed: map[recordID]bool{}, ended: map[string][]string{}}
	results, err := result.Read(out)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range results.Records {
		rec := &results.Records[i]
		if rec.Experiment == experiment.Machine.ID {
			r.looks = append(r.looks, rec)
			continue // its repetitions are no blocks
		}
		r.failed[recordID{rec.Key(), rec.Repeat}] = rec.Error != ""
		at := place{rec.Experiment, rec.Repeat}
		if r.machines[at] != "" || rec.Manifest == "" {
			continue // results of earlier versions have some without
		}
		var m bench.Manifest
		if err := results.Manifest(rec, &m); err != nil {
			return nil, err
		}
		r.machines[at] = m.Host.Machine
	}
	lines, err := os.ReadFile(filepath.Join(out, endedFile))
	for line := range bytes.Lines(lines) {
		var of ended
		if json.Unmarshal(line, &of) == nil { // else it is torn
			r.ended[of.Task] = of.Keys
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return r, err
}
