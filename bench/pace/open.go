package pace

import (
	"context"
	"time"
)

// OpenConfig says when an open loop starts operations. One of Duration and N is
// set, or the Op ends the loop with ErrDone.
type OpenConfig struct {
	Arrivals Arrivals // required
	Workers  int      // operations at a time, such as connections; 0 is 1

	Duration time.Duration // of the measurement, after the warm-up; 0 is no limit
	N        int64         // arrivals in the measurement; 0 is no limit
	WarmUp   time.Duration // arrivals scheduled in it are done and not recorded

	// MaxLag is how long an arrival waits for a worker before it is skipped,
	// like a user who gives up; 0 is for ever. What is skipped has no latency, so
	// the distribution then lacks the worst: look at Outcome.Skipped.
	MaxLag time.Duration

	// Drain is how long after the end of Duration arrivals that were due in it
	// may still start; the others are skipped. 0 is 5 s, below 0 is none.
	Drain time.Duration

	LateAfter time.Duration // a start that is later than this counts as late; 0 is 1 ms

	Seed  uint64    // of the steps' Rand
	Start time.Time // common beginning of several loops; zero is now

	// OnError is asked about each failed operation, by one goroutine at a time:
	// true counts it and goes on. Nil ends the loop at the first one.
	OnError func(error) bool

	Wait Wait // how to wait for arrivals; nil is Precise
}

func (cfg OpenConfig) withDefaults() OpenConfig {
	cfg.Workers = max(cfg.Workers, 1)
	if cfg.Drain == 0 {
		cfg.Drain = 5 * time.Second
	}
	if cfg.LateAfter == 0 {
		cfg.LateAfter = time.Millisecond
	}
	if cfg.Start.IsZero() {
		cfg.Start = time.Now()
	}
	if cfg.Wait == nil {
		cfg.Wait = Precise
	}
	return cfg
}

// OpenLoop starts operations when they arrive, each on the next free worker in
// the order of arrival. Latency is from the scheduled start to the end of the
// timed part, service time from the actual start.
//
// The outcome is never nil and tells what was done before an error: that of the
// operation that ended the loop, or the context's cause.
func OpenLoop(ctx context.Context, cfg OpenConfig, op Op) (*Outcome, error) {
	cfg = cfg.withDefaults()
	l := &openLoop{cfg: cfg, turn: make(chan struct{}, 1), run: newRun(cfg.Start, cfg.WarmUp, cfg.OnError)}
	out := l.run.out
	out.late, out.Workers = cfg.LateAfter, cfg.Workers
	l.turn <- struct{}{}
	err := l.run.workers(ctx, cfg.Workers, cfg.Seed, l.next, op)
	out.Scheduled, out.Skipped = l.scheduled, l.skipped
	if err == nil && l.ended && cfg.Duration > 0 && (cfg.N == 0 || l.scheduled < cfg.N) {
		// That nobody came after the last one is a part of the schedule.
		out.Elapsed = max(out.Elapsed, cfg.Duration)
	}
	return out, err
}

// openLoop hands out arrivals. Whoever has the turn waits for the next one;
// the other idle workers queue for the turn, so that at most one of them spins.
type openLoop struct {
	cfg  OpenConfig
	run  *run
	turn chan struct{}

	// Of the one who has the turn.
	n, scheduled, skipped int64
	ended                 bool
}

// next waits for the turn and then for an arrival, and returns its number and
// scheduled start; false at the end.
func (l *openLoop) next(halt context.Context) (n int64, scheduled time.Duration, ok bool) {
	<-l.turn // soon free after a halt, which ends the wait of who has it
	defer func() { l.turn <- struct{}{} }()
	for !l.ended {
		n, scheduled = l.n, l.cfg.Arrivals.Next()
		measured := scheduled >= l.cfg.WarmUp
		if l.over(scheduled, measured) {
			l.ended = true
			l.run.complete.Store(true)
			break
		}
		now := l.run.now()
		if halt.Err() != nil || now < scheduled && l.cfg.Wait(halt, l.cfg.Start.Add(scheduled)) != nil {
			break
		}
		l.n++
		if measured {
			l.scheduled++
		}
		if !l.skip(now, scheduled) {
			return n, scheduled, true
		}
		if measured {
			l.skipped++
		}
	}
	return 0, 0, false
}

func (l *openLoop) over(scheduled time.Duration, measured bool) bool {
	return l.cfg.Duration > 0 && scheduled >= l.cfg.WarmUp+l.cfg.Duration ||
		l.cfg.N > 0 && measured && l.scheduled >= l.cfg.N
}

func (l *openLoop) skip(now, scheduled time.Duration) bool {
	if l.cfg.MaxLag > 0 && now-scheduled > l.cfg.MaxLag {
		return true
	}
	end := l.cfg.WarmUp + l.cfg.Duration
	return l.cfg.Duration > 0 && now > end+max(l.cfg.Drain, 0)
}
