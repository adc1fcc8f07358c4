package pace

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/varvedb/varve/internal/result"
	"github.com/varvedb/varve/internal/splitmix"
)

// Config configures when a loop starts operations and how long it runs. Exactly
// one of Duration, N and More is set.
type Config struct {
	// Rate and Arrivals make the loop open: operations start when they are due,
	// each on the next free worker in the order of arrival. Without them the
	// loop is closed: each worker starts an operation when its last one has
	// ended.
	Rate     float64              // independent arrivals a second: a Poisson process from Seed
	Arrivals func() time.Duration // instead of Rate: returns the next start, relative to the loop's beginning, in increasing order

	Workers int // operations at a time, such as connections; 0 is 1

	Duration time.Duration // of the measurement, after the warm-up: operations that start, or are due, in it are completed; 0 is no limit
	N        int64         // operations in the measurement; 0 is no limit
	WarmUp   time.Duration // operations that start, or are due, in it are run but not recorded

	// More is called before each operation and reports whether there is another
	// one, for example another block of a file. One goroutine at a time calls
	// it, and not again after false.
	More func() bool

	Seed  uint64    // of the steps' Rand
	Start time.Time // common beginning of several loops; zero is now

	// OnError decides about a failed operation: true counts it and continues.
	// Nil ends the loop at the first failure. One goroutine at a time calls it.
	OnError func(error) bool

	wait func(ctx context.Context, until time.Time) error // replaces waiting in tests with a simulated clock
}

// MaxWait is how long an arrival of a Rate waits for a worker before it is
// given up, like a user who leaves. Arrivals that have not started when drain
// has passed after Duration are given up too, so that a rate beyond the
// engine's capacity still ends in time. An arrival that was given up counts
// with the time that it waited, see Outcome.All.
const (
	MaxWait = result.MaxWait
	drain   = time.Second
)

// Loop runs operations. A latency counts from the scheduled start to the end of
// the timed part; in a closed loop, from the actual start.
//
// The outcome is never nil and covers everything up to an error: the error that
// ended the loop, or the context's cause.
func Loop(ctx context.Context, cfg Config, op Op) (*Outcome, error) {
	cfg.Workers = max(cfg.Workers, 1)
	if cfg.Start.IsZero() {
		cfg.Start = time.Now()
	}
	if cfg.Rate > 0 {
		cfg.Arrivals = poisson(cfg.Rate, cfg.Seed)
	}
	switch {
	case cfg.wait != nil:
	case cfg.Arrivals == nil: // only the beginning is waited for
		cfg.wait = sleep
	default:
		a, err := newAlarm()
		if err != nil {
			return nil, err
		}
		defer a.close()
		cfg.wait = a.wait
	}
	l := &loop{cfg: cfg, activity: activityOf(ctx), starting: make(chan struct{}, 1)}
	l.out = &Outcome{Started: cfg.Start.Add(cfg.WarmUp), Workers: cfg.Workers, open: cfg.Arrivals != nil}
	l.starting <- struct{}{}
	err := l.work(ctx, op)
	out := l.out
	if !out.open {
		out.Scheduled = out.Count + out.Errors
	} else if err == nil && l.durationOver {
		// An open loop lasts as long as its schedule, even if no arrival came
		// at the end.
		out.Elapsed = max(out.Elapsed, cfg.Duration)
	}
	return out, err
}

// loop hands out operations to its workers and collects their records.
type loop struct {
	cfg      Config
	activity *Activity

	// The worker that holds the token in starting waits for the next start. The
	// other idle workers queue for the token. It guards the next three fields.
	starting     chan struct{}
	n            int64 // number of the next operation
	ended        bool  // the configured end was reached
	durationOver bool  // the end was that of Duration

	mu            sync.Mutex
	out           *Outcome
	err           error
	contextFailed bool // an operation failed because the context ended
}

// now returns the time since the loop began; it is negative before that.
func (l *loop) now() time.Duration { return time.Since(l.cfg.Start) }

// work runs the workers to their end. Operations get ctx. Workers stop at halt,
// which is derived from ctx and ends earlier, so that operations in flight are
// finished.
func (l *loop) work(ctx context.Context, op Op) error {
	halt, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	for i := range l.cfg.Workers {
		group.Go(func() {
			w := worker{loop: l, step: newStep(i, l.now), samples: make([]sample, 0, batch)}
			defer w.record()
			defer w.checked()
			for {
				n, start, ok := l.next(halt)
				if !ok {
					return
				}
				w.step.reset(l.cfg.Seed, n)
				if !w.do(ctx, start, op) {
					cancel()
					return
				}
				if w.step.check != nil {
					w.later(w.step.check, cancel)
				}
			}
		})
	}
	group.Wait()
	if l.err == nil && ctx.Err() != nil && (l.contextFailed || !l.ended) {
		return context.Cause(ctx)
	}
	return l.err
}

// next waits for the token and then for a start. It returns the operation's
// number and its due time; false at the end.
func (l *loop) next(halt context.Context) (n int64, due time.Duration, ok bool) {
	<-l.starting // soon free after a halt, which ends the wait of its holder
	defer func() { l.starting <- struct{}{} }()
	for !l.ended {
		now := l.now()
		if n, due = l.n, max(now, 0); l.out.open {
			due = l.cfg.Arrivals()
		}
		measured := due >= l.cfg.WarmUp
		if l.ended = l.over(due, measured); l.ended {
			break
		}
		if halt.Err() != nil || now < due && l.cfg.wait(halt, l.cfg.Start.Add(due)) != nil {
			break
		}
		l.n++
		skip := l.skip(now, due)
		if measured {
			l.out.Scheduled++
		}
		if !skip {
			l.out.Total++
			return n, due, true
		}
		if measured {
			l.out.giveUp(now - due)
		}
	}
	return 0, 0, false
}

func (l *loop) over(due time.Duration, measured bool) bool {
	if l.cfg.N > 0 && measured && l.out.Scheduled >= l.cfg.N || l.cfg.More != nil && !l.cfg.More() {
		return true
	}
	l.durationOver = l.cfg.Duration > 0 && due >= l.cfg.WarmUp+l.cfg.Duration
	return l.durationOver
}

func (l *loop) skip(now, due time.Duration) bool {
	return l.cfg.Rate > 0 && now-due > MaxWait || l.cfg.Duration > 0 && now > l.cfg.WarmUp+l.cfg.Duration+drain
}

type worker struct {
	*loop
	step    *Step
	samples []sample // not yet recorded

	unchecked []func() error      // checks of the last answers
	checks    chan []func() error // for the goroutine that runs them
	done      sync.WaitGroup      // waits for that goroutine
}

// checksAtOnce is the number of answers in one hand-over. It is more than one
// because waking the other goroutine costs as much as a fast read; it is not
// larger because the answers stay in memory meanwhile.
const checksAtOnce = 16

// later passes a check to the goroutine that runs this worker's checks in
// order. A check that fails ends the loop.
func (w *worker) later(check func() error, cancel func()) {
	if w.checks == nil {
		w.checks = make(chan []func() error, 1)
		w.done.Go(func() {
			took := time.Duration(0)
			for checks := range w.checks {
				begun := w.now()
				for _, check := range checks {
					if err := check(); err != nil {
						w.fail(err)
						cancel()
					}
				}
				took += w.now() - begun
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.out.Checking += took
		})
	}
	if w.unchecked = append(w.unchecked, check); len(w.unchecked) == checksAtOnce {
		w.checks <- w.unchecked
		w.unchecked = make([]func() error, 0, checksAtOnce)
	}
}

// checked waits until all answers are checked.
func (w *worker) checked() {
	if w.checks != nil {
		w.checks <- w.unchecked
		close(w.checks)
		w.done.Wait()
	}
}

// fail keeps the first error that ends the loop.
func (l *loop) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// do runs one operation; false ends the loop.
func (w *worker) do(ctx context.Context, due time.Duration, op Op) bool {
	s := sample{scheduled: due, started: w.now()}
	w.step.Measured = due >= w.cfg.WarmUp
	w.activity.begun.Add(1)
	err := op(ctx, w.step)
	w.activity.ended.Add(1)
	s.ended = w.now()
	if err != nil {
		w.step.check = nil // the failed operation has no answer to check
		if !w.tolerate(ctx, err) {
			return false
		}
	}
	if w.step.begun > 0 && !w.out.open {
		s.started = w.step.begun
	}
	if w.step.stopped {
		s.ended = w.step.ended
	}
	if !w.step.Measured {
		w.spanned(&s)
		return true
	}
	s.kind, s.err = w.step.Kind, err
	if w.samples = append(w.samples, s); len(w.samples) == batch {
		w.record()
	}
	return true
}

// tolerate reports whether the loop continues after an error; if not, it keeps
// the error.
func (l *loop) tolerate(ctx context.Context, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		// An error after the context has ended is caused by that.
		l.contextFailed = true
	case l.cfg.OnError != nil && l.cfg.OnError(err):
		return true
	case l.err == nil:
		l.err = err
	}
	return false
}

// spanned counts the part of an operation of the warm-up that lies in the
// measurement, because the worker is busy with it.
func (w *worker) spanned(s *sample) {
	if part := s.ended - max(s.started, w.cfg.WarmUp); part > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.out.timed += part
	}
}

// record adds the collected samples to the outcome.
func (w *worker) record() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.samples {
		w.out.add(&w.samples[i], w.cfg.WarmUp)
	}
	w.samples = w.samples[:0]
}

// Op is one operation. It returns an error when the operation failed or its answer is wrong. It is called by
// several goroutines at a time, each with its own step, which is valid until it returns.
type Op func(ctx context.Context, s *Step) error

// Step is one call of an Op.
type Step struct {
	Worker int   // connection or client, from 0
	N      int64 // number of the operation, from 0, over all workers and with the warm-up

	// Rand depends on the loop's seed and N alone.
	Rand *rand.Rand

	// Kind is set by the Op and names the distribution that the operation
	// counts in, such as "commit" or "get"; "" is a valid name.
	Kind string

	// Measured reports that the step is not part of the warm-up.
	Measured bool

	source  rand.PCG
	now     func() time.Duration // since the loop began
	stopped bool
	begun   time.Duration // start of the timed part, if Begin was called; otherwise 0
	ended   time.Duration // when Stop was called
	check   func() error  // of the answer
}

// Begin starts the timed part in a closed loop, if the Op has to prepare
// something first.
func (s *Step) Begin() { s.begun = s.now() }

// Stop ends the timed part. The rest of the Op does not count as latency, but
// delays the worker's next operation: a closed loop is then less busy (see
// Outcome.Busy), and an arrival of an open loop may start late. Hand longer
// work to Check. Without Stop, all of the Op is timed. Only the first call
// counts.
func (s *Step) Stop() {
	if !s.stopped {
		s.stopped, s.ended = true, s.now()
	}
}

// Check ends the timed part, as Stop does, and lets another goroutine compare
// the answer, so that a closed loop continues at once. The checks of a worker
// run in order, after its Op returned without an error. A check that fails ends
// the loop, whatever OnError returns.
func (s *Step) Check(f func() error) {
	s.Stop()
	s.check = f
}

func (s *Step) reset(seed uint64, n int64) {
	s.N, s.Kind, s.stopped, s.begun, s.check = n, "", false, 0, nil
	s.source.Seed(seed, splitmix.Scramble(uint64(n)))
}

func newStep(worker int, now func() time.Duration) *Step {
	s := &Step{Worker: worker, now: now}
	s.Rand = rand.New(&s.source)
	return s
}
