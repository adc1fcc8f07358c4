package pace

import (
	"context"
	"math/rand/v2"
	"runtime"
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

// How late the ways to wait can be, measured on Linux with some margin: a timer
// after a long sleep, and a nap. Above frugalFrom arrivals a second a loop does
// not spin, to leave the processors to the engine.
const (
	timerSlack = 1500 * time.Microsecond
	napSlack   = 150 * time.Microsecond
	frugalFrom = 2_000
)

// precisely waits in three stages: it sleeps through most of a gap, has the
// kernel wake it shortly before the end, and spins for the rest, yielding to
// other goroutines. It is late by a few microseconds on an idle core of Linux,
// and took a tenth of a core at 1,000 arrivals a second and half a core at
// 5,000. Without spinning it is late by about 0.1 ms, one time in a hundred by
// 1 ms, and took a fifth of a core at 5,000.
func (c *Config) precisely(ctx context.Context, until time.Time) error {
	spin := napSlack
	if c.Rate > frugalFrom {
		spin = 0
	}
	if time.Until(until) > 2*timerSlack {
		if err := sleep(ctx, until.Add(-timerSlack)); err != nil {
			return err
		}
	}
	for left := time.Until(until); left > 0; left = time.Until(until) {
		if left > 2*spin {
			nap(left - spin)
		} else {
			runtime.Gosched()
		}
	}
	return ctx.Err()
}
