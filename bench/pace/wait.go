package pace

import (
	"context"
	"runtime"
	"time"
)

// Wait returns at a time, or earlier with the context's error. At once when
// the time has passed.
type Wait func(ctx context.Context, until time.Time) error

// Sleep is a Wait with a plain timer. It starts up to a millisecond late: the
// runtime's poller counts in milliseconds when nothing else runs. It is for
// programs under testing/synctest, whose clock moves only while everybody
// sleeps, and for gaps that make a millisecond irrelevant.
func Sleep(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	left := time.Until(until)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
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

// Precise is a Wait that is late by a few microseconds on an idle core of Linux. It
// sleeps through most of a gap, has the kernel wake it shortly before the end, and
// spins for the rest, in which other goroutines go first. On a small machine that took
// a tenth of a core at 1,000 arrivals a second and half a core at 5,000: where the
// engine needs these, see Frugal.
func Precise(ctx context.Context, until time.Time) error { return wait(ctx, until, napSlack) }

// Frugal is a Wait that never spins: it took a fifth of a core at 5,000
// arrivals a second. It is late by about 0.1 ms, and one time in a hundred by
// 1 ms.
func Frugal(ctx context.Context, until time.Time) error { return wait(ctx, until, 0) }

// wait naps until some time before the end, and then spins.
func wait(ctx context.Context, until time.Time, spin time.Duration) error {
	if time.Until(until) > 2*timerSlack {
		if err := Sleep(ctx, until.Add(-timerSlack)); err != nil {
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
