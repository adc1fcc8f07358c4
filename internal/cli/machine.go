package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
)

// watch looks at the machine between tasks and keeps what it sees as records of the set.
type watch struct {
	look   func(ctx context.Context) (probe.Machine, error)
	pauses []time.Duration // after looks at a machine that is off; none goes on at once
	out    string
	host   bench.Host
	before []*result.Record // of this machine
	next   int              // number of a look in the set
}

// offPauses are those of a plan, which has hours. They end after some eight minutes: what is
// slow for longer is how the machine is now.
var offPauses = []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}

// newWatch looks at the machine with the disk that the data sets are on.
func newWatch(out string) (*watch, error) {
	cache, err := bench.OpenCache("")
	if err != nil {
		return nil, err
	}
	look := func(ctx context.Context) (probe.Machine, error) { return probe.Look(ctx, cache.Root()) }
	return &watch{look: look, out: out, host: bench.ReadHost(cache.Root())}, nil
}

// recall takes an earlier look from the set, at this machine or another.
func (w *watch) recall(r *result.Record) {
	w.next = max(w.next, r.Repeat+1)
	if r.Config.Get("machine") == w.host.Machine {
		w.before = append(w.before, r)
	}
}

// through measures tasks with a look before each and one after the last. While the machine
// is off it waits; where it stays off, the next is told why. A task after which the machine
// was off for longer than a pause is measured again, once, when it is as before.
func (w *watch) through(e *env, tasks []task, measure func(i int, off string, over bool) error) error {
	off, _, err := w.settled(e, "before the first")
	for i := 0; i < len(tasks) && err == nil; i++ {
		if err = measure(i, off, false); err != nil {
			break
		}
		after := fmt.Sprintf("after %s, block %d", tasks[i], tasks[i].block+1)
		var disturbed bool
		if off, disturbed, err = w.settled(e, after); err == nil && disturbed && off == "" {
			fmt.Fprintf(e.stderr, "run: %s is measured again: the machine was off %s\n", tasks[i], after)
			if err = measure(i, "", true); err == nil {
				off, _, err = w.settled(e, after+", again")
			}
		}
	}
	return err
}

// settled looks at the machine until it is as it was, or has been off for long, of which
// it returns why. A first look that is off may see what the task has left to the disk;
// with a second one the machine was disturbed.
func (w *watch) settled(e *env, when string) (off string, disturbed bool, err error) {
	if w == nil {
		return "", false, e.ctx.Err()
	}
	for looks := 0; ; looks++ {
		if err := e.ctx.Err(); err != nil {
			return "", false, err
		}
		m, err := w.look(e.ctx)
		if err != nil {
			return "", false, err
		}
		off = m.Off(w.before)
		if err := w.keep(&m, when, off); err != nil {
			return "", false, err
		}
		disturbed = disturbed || off != "" && looks > 0
		if off == "" || looks == len(w.pauses) {
			return off, disturbed, nil
		}
		fmt.Fprintf(e.stderr, "run: the machine is off %s: %s; looking again in %s\n", when, off, w.pauses[looks])
		select {
		case <-e.ctx.Done():
			return "", false, e.ctx.Err()
		case <-time.After(w.pauses[looks]):
		}
	}
}

// keep makes a record of a look: all of a machine are repetitions of one.
func (w *watch) keep(m *probe.Machine, when, off string) (err error) {
	set, err := result.Open(w.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	host := w.host
	host.Fsync = m.Fsync
	r := &result.Record{
		Experiment: experiment.Machine.ID, Name: "Machine", Config: result.Config{{Key: "machine", Value: host.Machine}}, Repeat: w.next,
		Started: time.Now().UTC(), Metrics: m.Metrics(), Marks: []result.Mark{{Label: when}},
	}
	if off != "" {
		r.Marks = append(r.Marks, result.Mark{Label: "off: " + off})
	}
	if r.Manifest, err = set.Manifest(bench.Manifest{Varve: bench.ReadRevision(), Host: host}); err != nil {
		return err
	}
	w.recall(r)
	return set.Append(r)
}
