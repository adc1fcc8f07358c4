package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// The phases of a worker's life, by which faults are counted.
const (
	phaseOpen       = "open"
	phaseCheck      = "check"
	phaseAppend     = "append"
	phaseCheckpoint = "checkpoint"
	phaseMerge      = "merge"
	phaseReopen     = "reopen"
	phaseBetween    = "between steps"
)

// Exit codes of a worker that ends by itself.
const (
	exitDone      = 0
	exitViolation = 3 // a promise was broken; the last line on stdout describes it
	exitTrouble   = 4 // an operation failed, as expected when the store's server was killed
)

// workerConfig describes a worker's task.
type workerConfig struct {
	URL     string `json:"url"`
	Layout  string `json:"layout"`  // as Cell.Layout
	Journal string `json:"journal"` // path; "": in memory
	Seed    uint64 `json:"seed"`    // of the order of steps

	// Target is a phase that the worker enters after After steps; empty means
	// none in particular.
	Target string `json:"target,omitempty"`
	After  int    `json:"after,omitempty"`

	CheckOnly bool `json:"check_only,omitempty"` // end after the check
	Lossy     bool `json:"lossy,omitempty"`      // the last acknowledged steps may be missing
	NoPrune   bool `json:"no_prune,omitempty"`   // keep the history, so that the digest can be computed

	// EarlyAck breaks the worker: it acknowledges before it commits. With it
	// tests show that a store which loses commits is detected.
	EarlyAck bool `json:"early_ack,omitempty"`

	// Syncs makes the worker, after its check, commit this many times and end.
	// It marks the beginning and the end for a tracer of system calls.
	Syncs int `json:"syncs,omitempty"`
}

// ErrViolation: a store has broken a promise.
var ErrViolation = errors.New("violation")

func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrViolation, fmt.Sprintf(format, args...))
}

// workerMain runs a worker until it is killed or finds a violation, and returns
// its exit code. Config is a workerConfig as JSON. Progress goes to stdout, one
// line each, for the parent process.
func workerMain(ctx context.Context, config string, stdout io.Writer) int {
	w := &worker{out: stdout}
	if err := json.Unmarshal([]byte(config), &w.workerConfig); err != nil {
		w.tellParent("trouble", "configuration: %v", err)
		return exitTrouble
	}
	w.rng = newRand(w.Seed)
	err := w.run(ctx)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, ErrViolation):
		w.tellParent("violation", "%v", err)
		return exitViolation
	}
	w.tellParent("trouble", "%v", err)
	return exitTrouble
}

// worker has the common state of entity and event workers.
type worker struct {
	workerConfig
	out     io.Writer
	rng     *rand.Rand
	journal *journal
	db      *store.DB
	checked bool // the store's check has run; see Contents
}

// subject is the store that a worker writes to: entities or events.
type subject interface {
	open(ctx context.Context) error // the store in the worker's database
	step(ctx context.Context, phase string) error
	phases() []phase

	// compare compares the store with the journal. It returns the record that
	// closes the unacknowledged steps, and how many steps were found and lost.
	// resume then writes the record.
	compare(ctx context.Context) (r record, found, lost int, err error)
	resume(ctx context.Context, r record) error

	grow(ctx context.Context) error // runs one step, which is one commit, while no other step runs
}

// phase is a kind of step and how often it is chosen.
type phase struct {
	name   string
	weight int
}

func (w *worker) run(ctx context.Context) (err error) {
	var records []record
	if w.journal, records, err = openJournal(w.Journal); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.journal.close()) }()
	s, err := w.subject(records)
	if err != nil {
		return err
	}
	if err := w.in(phaseOpen, func() error { return w.open(ctx, s) }); err != nil {
		return err
	}
	defer func() {
		if w.db != nil { // nil if reopening failed
			err = errors.Join(err, w.db.Close())
		}
	}()
	stats, err := w.db.Engine().Stats(ctx)
	if err != nil {
		return err
	}
	w.tellParent("processes", "%s", strings.Trim(fmt.Sprint(stats.EnginePIDs), "[]"))
	// Compare the store with the journal, and record the result in the journal.
	err = w.in(phaseCheck, func() error {
		r, found, lost, err := s.compare(ctx)
		if err != nil {
			return err
		}
		w.tellParent("found", "%d %d", found, lost)
		if len(records) == 0 {
			return nil
		}
		return s.resume(ctx, r)
	})
	if err != nil {
		return err
	}
	switch {
	case w.CheckOnly:
		return nil
	case w.Syncs > 0:
		return w.commitMarked(ctx, s)
	}
	return w.steps(ctx, s)
}

// subject returns the worker's store with the state that a journal describes.
func (w *worker) subject(records []record) (subject, error) {
	if w.Layout == EventsLayout {
		l, err := newLedger(records)
		return &eventWorker{worker: w, ledger: l, every: 1 + w.rng.IntN(60)}, err
	}
	h, err := newHistory(records)
	return &entityWorker{worker: w, history: h}, err
}

func (w *worker) open(ctx context.Context, s subject) (err error) {
	if w.db, err = store.Open(ctx, w.URL, nil); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return errors.Join(err, w.db.Close())
	}
	return nil
}

// steps runs steps until the worker is killed.
func (w *worker) steps(ctx context.Context, s subject) error {
	w.tellParent("running", "")
	for n := 0; ctx.Err() == nil; n++ {
		name := w.choose(s.phases())
		if w.Target != "" && n == w.After {
			name = w.Target
		}
		err := w.in(name, func() error {
			if name != phaseReopen {
				return s.step(ctx, name)
			}
			if err := w.db.Close(); err != nil {
				return err
			}
			return w.open(ctx, s)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return ctx.Err()
}

func (w *worker) choose(phases []phase) string {
	total := 0
	for _, p := range phases {
		total += p.weight
	}
	n := w.rng.IntN(total)
	for _, p := range phases {
		if n -= p.weight; n < 0 {
			return p.name
		}
	}
	return ""
}

// in reports the beginning and the end of a phase to the parent.
func (w *worker) in(phase string, f func() error) error {
	w.tellParent("begin", "%s", phase)
	if err := f(); err != nil {
		return err
	}
	w.tellParent("end", "%s", phase)
	return nil
}

// tellParent writes a line to the parent. Errors are ignored, because a missing
// parent is noticed elsewhere.
func (w *worker) tellParent(what, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	_, _ = io.WriteString(w.out, what+" "+text+"\n")
}

// checkpoint checkpoints the log, or empties it, if the engine lets callers do
// so.
func (w *worker) checkpoint(ctx context.Context) error {
	_, err := driver.Checkpoint(ctx, w.db.Engine(), w.rng.IntN(2) == 0)
	if errors.Is(err, store.ErrUnsupported) {
		return nil
	}
	return err
}

// pause leaves time for background work.
func (w *worker) pause() { time.Sleep(time.Duration(w.rng.IntN(30)) * time.Millisecond) }
