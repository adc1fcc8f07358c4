package crashtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// eventWorker appends from several goroutines, whose appends share commits.
type eventWorker struct {
	*worker
	evs   *store.Events
	every int // EventOptions.IndexEvery

	mu     sync.Mutex // guards ledger
	ledger *ledger
	bursts int

	stored map[string][]uint64 // positions of the appends, as found by compare
	known  []event.Sequenced   // the events before the files were damaged; see Contents
}

// maxAppenders is the usual maximum of concurrent appenders. Now and then there
// are crowd of them, so that some are judged while others wait for their sync.
const (
	maxAppenders = 4
	crowd        = 16
)

func (w *eventWorker) open(ctx context.Context) (err error) {
	w.evs, err = w.db.Events(ctx, &store.EventOptions{IndexEvery: w.every})
	return err
}

func (w *eventWorker) phases() []phase {
	return []phase{{phaseAppend, 85}, {phaseCheckpoint, 8}, {phaseReopen, 3}, {phaseBetween, 4}}
}

func (w *eventWorker) step(ctx context.Context, phase string) error {
	switch phase {
	case phaseCheckpoint:
		return w.checkpoint(ctx)
	case phaseBetween:
		w.pause()
		return nil
	}
	return w.burst(ctx)
}

func (w *eventWorker) grow(ctx context.Context) error {
	w.bursts++
	return w.append(ctx, record{Step: phaseAppend, Name: fmt.Sprint("alone-", w.bursts), Seed: w.rng.Uint64()})
}

// burst appends from several goroutines, while another one reads the last
// event.
func (w *eventWorker) burst(ctx context.Context) error {
	w.bursts++
	n := 1 + w.rng.IntN(maxAppenders)
	if w.rng.IntN(3) == 0 {
		n = crowd
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for g := range errs {
		rng := newRand(w.rng.Uint64())
		wg.Go(func() {
			for i := range 1 + rng.IntN(6) {
				name := fmt.Sprintf("%x-%d-%d-%d", w.Seed, w.bursts, g, i)
				if errs[g] = w.append(ctx, record{Step: phaseAppend, Name: name, Seed: rng.Uint64()}); errs[g] != nil {
					return
				}
			}
		})
	}
	done := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- w.watch(ctx, done) }()
	wg.Wait()
	close(done)
	return errors.Join(append(errs, <-watched)...)
}

// watch reads the last event repeatedly, and records it in the journal.
func (w *eventWorker) watch(ctx context.Context, done <-chan struct{}) error {
	for last := uint64(0); ; {
		for e, err := range w.evs.Read(ctx, event.All(), &event.ReadOptions{Backwards: true, Limit: 1}) {
			if err != nil {
				return err
			}
			if e.Position == last {
				continue
			}
			last = e.Position
			if err := w.journal.announce(record{Read: last, Name: appendOf(&e.Event)}); err != nil {
				return err
			}
		}
		select {
		case <-done:
			return nil
		default:
		}
	}
}

// appendOf returns the name of the append that an event belongs to.
func appendOf(e *event.Event) string {
	name, _, _ := strings.Cut(string(e.Data), " ")
	return name
}

func (w *eventWorker) append(ctx context.Context, r record) error {
	if err := w.journal.announce(r); err != nil {
		return err
	}
	w.mu.Lock()
	e := w.ledger.announce(r)
	w.mu.Unlock()
	done := record{Ack: true, Name: r.Name}
	if w.EarlyAck {
		if err := w.journal.acknowledge(done); err != nil {
			return err
		}
	}
	var err error
	done.Positions, err = w.evs.Append(ctx, e.events, e.cond)
	if done.Conflict = errors.Is(err, store.ErrConflict); err != nil && (!done.Conflict || e.cond == nil) {
		return err
	}
	if w.EarlyAck && !done.Conflict {
		return nil
	}
	if err := w.journal.acknowledge(done); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger.acknowledge(done)
	return nil
}
