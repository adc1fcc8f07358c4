package pace

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// Arrivals returns the next scheduled start since the loop began, which is never before
// the last one. It serves one loop, once.
type Arrivals func() time.Duration

// Fixed returns arrivals at equal distances, rate of them a second, the first
// one at 0. They do not drift: the n-th is at n/rate. Rate is above 0.
func Fixed(rate float64) Arrivals {
	n := -1.0
	return func() time.Duration {
		n++
		return time.Duration(n / rate * float64(time.Second))
	}
}

// Poisson returns arrivals that do not know of each other, rate of them a
// second in the mean: the gaps are exponential. The same seed gives the same
// sequence. Rate is above 0.
func Poisson(rate float64, seed uint64) Arrivals {
	random := rand.New(rand.NewPCG(seed, 0x706f6973736f6e))
	at := 0.0 // seconds
	return func() time.Duration {
		at += random.ExpFloat64() / rate
		return time.Duration(at * float64(time.Second))
	}
}

// sleep waits until a time with a plain timer, or returns earlier with the context's
// error. It starts up to a millisecond late: the runtime's poller counts in milliseconds
// when nothing else runs.
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

// What the ways to wait can be late by, measured on Linux with room to spare:
// a timer after a long sleep, and a nap.
const (
	timerSlack = 1500 * time.Microsecond
	napSlack   = 150 * time.Microsecond
)

// precise is late by a few microseconds on an idle core of Linux. It sleeps through most
// of a gap, has the kernel wake it shortly before the end, and spins for the rest, in
// which other goroutines go first. On a small machine that took a tenth of a core at 1,000
// arrivals a second and half a core at 5,000.
func precise(ctx context.Context, until time.Time) error { return wait(ctx, until, napSlack) }

// frugal never spins: it took a fifth of a core at 5,000 arrivals a second. It is late by
// about 0.1 ms, and one time in a hundred by 1 ms.
func frugal(ctx context.Context, until time.Time) error { return wait(ctx, until, 0) }

// wait naps until some time before the end, and then spins.
func wait(ctx context.Context, until time.Time, spin time.Duration) error {
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
