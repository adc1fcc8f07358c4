package pace

import (
	"context"
	"sync/atomic"
	"time"
)

// ClosedConfig says how long a closed loop goes on. One of Duration and N is
// set, or the Op ends the loop with ErrDone.
type ClosedConfig struct {
	Clients int // 0 is 1

	Duration time.Duration // of the measurement, after the warm-up; the last operations start in it; 0 is no limit
	N        int64         // operations in the measurement; 0 is no limit
	WarmUp   time.Duration // operations that start in it are not recorded

	Seed  uint64    // of the steps' Rand
	Start time.Time // common beginning of several loops; zero is now

	// OnError is asked about each failed operation, by one goroutine at a time:
	// true counts it and goes on. Nil ends the loop at the first one.
	OnError func(error) bool
}

// ClosedLoop has each client start an operation when its last one has ended.
// Latency is that of the timed part.
//
// The outcome is never nil and tells what was done before an error: that of the
// operation that ended the loop, or the context's cause.
func ClosedLoop(ctx context.Context, cfg ClosedConfig, op Op) (*Outcome, error) {
	cfg.Clients = max(cfg.Clients, 1)
	if cfg.Start.IsZero() {
		cfg.Start = time.Now()
	}
	l := &closedLoop{cfg: cfg, run: newRun(cfg.Start, cfg.WarmUp, cfg.OnError)}
	out := l.run.out
	out.Workers = cfg.Clients
	if err := Sleep(ctx, cfg.Start); err != nil {
		return out, context.Cause(ctx)
	}
	err := l.run.workers(ctx, cfg.Clients, cfg.Seed, l.next, op)
	out.Scheduled = out.Count + out.Errors
	return out, err
}

type closedLoop struct {
	cfg      ClosedConfig
	run      *run
	n        atomic.Int64 // operations
	measured atomic.Int64 // of them, when N limits them
}

func (l *closedLoop) next(halt context.Context) (n int64, start time.Duration, ok bool) {
	now := l.run.now()
	if l.over(now) {
		l.run.complete.Store(true)
		return 0, 0, false
	}
	if halt.Err() != nil {
		return 0, 0, false
	}
	return l.n.Add(1) - 1, now, true
}

func (l *closedLoop) over(now time.Duration) bool {
	return l.cfg.Duration > 0 && now >= l.cfg.WarmUp+l.cfg.Duration ||
		l.cfg.N > 0 && now >= l.cfg.WarmUp && l.measured.Add(1) > l.cfg.N
}
