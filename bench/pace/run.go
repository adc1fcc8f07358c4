package pace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// next hands out the number and the start of an operation, the scheduled one
// in an open loop; false when there is none left. Halt ends its wait.
type next func(halt context.Context) (n int64, start time.Duration, ok bool)

// run is what both loops share: workers, their end, and what they record.
type run struct {
	origin  time.Time
	warmUp  time.Duration
	onError func(error) bool

	complete atomic.Bool // the configured end was reached

	mu  sync.Mutex
	out *Outcome
	err error
	cut bool // an operation failed with the context
}

func newRun(start time.Time, warmUp time.Duration, onError func(error) bool) *run {
	return &run{origin: start, warmUp: warmUp, onError: onError, out: newOutcome(start.Add(warmUp))}
}

// now returns the time since the loop began; before it, below 0.
func (r *run) now() time.Duration { return time.Since(r.origin) }

// workers runs n of them to their end. Operations get ctx; halt is derived from
// it and ends earlier, so that operations in flight are finished.
func (r *run) workers(ctx context.Context, n int, seed uint64, next next, op Op) error {
	halt, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			w := worker{run: r, step: newStep(i, r.now), samples: make([]sample, 0, batch)}
			defer func() { r.record(w.samples) }()
			for {
				n, start, ok := next(halt)
				if !ok {
					return
				}
				w.step.reset(seed, n)
				if !w.do(ctx, start, op) {
					cancel()
					return
				}
			}
		})
	}
	group.Wait()
	r.out.sort()
	if r.err == nil && ctx.Err() != nil && (r.cut || !r.complete.Load()) {
		return context.Cause(ctx)
	}
	return r.err
}

type worker struct {
	run     *run
	step    *Step
	samples []sample // not yet recorded
}

// do runs one operation; false ends the loop.
func (w *worker) do(ctx context.Context, scheduled time.Duration, op Op) bool {
	s := sample{scheduled: scheduled, started: w.run.now()}
	err := op(ctx, w.step)
	s.ended = w.run.now()
	if err != nil && !w.run.tolerate(ctx, err) {
		return false
	}
	if scheduled < w.run.warmUp {
		return true
	}
	s.kind, s.failed = w.step.Kind, err != nil
	if w.step.stopped {
		s.ended, s.untimed = w.step.ended, s.ended-w.step.ended
	}
	w.samples = append(w.samples, s)
	if len(w.samples) == batch {
		w.run.record(w.samples)
		w.samples = w.samples[:0]
	}
	return true
}

// tolerate tells whether the loop goes on after an error, and keeps the error
// if not.
func (r *run) tolerate(ctx context.Context, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, ErrDone):
		r.complete.Store(true)
	case ctx.Err() != nil:
		// What fails after the context has ended fails because of it.
		r.cut = true
	case r.onError != nil && r.onError(err):
		return true
	case r.err == nil:
		r.err = err
	}
	return false
}

// record adds samples to the outcome.
func (r *run) record(samples []sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range samples {
		r.out.add(&samples[i], r.warmUp)
	}
}
