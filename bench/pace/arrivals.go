package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// poisson returns the times of independent arrivals: the gaps are exponential.
// The same seed gives the same sequence.
func poisson(rate float64, seed uint64) func() time.Duration {
	random, at := rand.New(rand.NewPCG(seed, 0x706f6973736f6e)), 0.0
	return func() time.Duration {
		at += random.ExpFloat64() / rate
		return time.Duration(at * float64(time.Second))
	}
}

// sleep waits until a time with a plain timer, or returns early with the
// context's error. It may wake up to a millisecond late, because the runtime's
// poller counts in milliseconds when nothing else runs.
func sleep(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timerSlack is how late a timer can be after a long sleep, with some margin.
const timerSlack = 1500 * time.Microsecond

// wait waits until a time, or returns early with the context's error. The last
// part does not end with the context, because it is short. The alarm is set for
// that part only, because set for all of a long gap it woke 0.5 to 0.8 ms late
// in place of 0.1 to 0.2.
func (a *alarm) wait(ctx context.Context, until time.Time) error {
	if time.Until(until) > 2*timerSlack {
		if err := sleep(ctx, until.Add(-timerSlack)); err != nil {
			return err
		}
	}
	for left := time.Until(until); left > 0; left = time.Until(until) {
		a.nap(left)
	}
	return ctx.Err()
}
