package pace

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/latency"
)

// every returns arrivals at equal distances, the first one at 0.
func every(d time.Duration) func() time.Duration {
	n := time.Duration(-1)
	return func() time.Duration { n++; return n * d }
}

func noop(context.Context, *Step) error { return nil }

// lasting is an operation of a fixed length.
func lasting(d time.Duration) Op {
	return func(ctx context.Context, _ *Step) error { return sleep(ctx, time.Now().Add(d)) }
}

func TestOpenLoopOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		out, err := Loop(t.Context(), Config{
			Arrivals: every(time.Second / 100), Workers: 3, Duration: 10 * time.Second, WarmUp: time.Second, wait: sleep,
		}, lasting(5*time.Millisecond))
		require.NoError(t, err)
		require.Equal(t, 11*time.Second, time.Since(begin).Round(10*time.Millisecond))
		require.Equal(t, begin.Add(time.Second), out.Started)
		require.Equal(t, 10*time.Second, out.Elapsed)
		require.Equal(t, int64(1000), out.Scheduled)
		require.Equal(t, int64(1000), out.Count)
		require.Zero(t, out.Late)
		require.Zero(t, out.Skipped)
		require.InDelta(t, 100, out.Rate(), 0)
		require.Equal(t, 5*time.Millisecond, out.All().Max())
		require.Len(t, out.Seconds(), 10)
		for _, s := range out.Seconds() {
			require.Equal(t, int64(100), s.Count)
		}
	})
}

// Users who wait for too long give up, and of what else is due the rest is skipped when the time to
// drain is over.
func TestOpenLoopSkips(t *testing.T) {
	for _, cfg := range []Config{{Rate: 200, Seed: 1}, {Arrivals: every(5 * time.Millisecond)}} {
		synctest.Test(t, func(t *testing.T) {
			cfg.Duration, cfg.wait = 10*time.Second, sleep
			out, err := Loop(t.Context(), cfg, lasting(10*time.Millisecond))
			require.NoError(t, err)
			require.InDelta(t, 2000, out.Scheduled, 100)
			require.Equal(t, out.Scheduled, out.Count+out.Skipped)
			if cfg.Rate > 0 {
				require.LessOrEqual(t, out.All().Max(), MaxWait+20*time.Millisecond)
				require.InDelta(t, 1000, out.Skipped, 150)
				require.Equal(t, out.Scheduled, out.All().Count(), "what was given up counts")
				require.GreaterOrEqual(t, out.All().Quantile(95), MaxWait)
			} else {
				require.Equal(t, int64(1101), out.Count, "those of the time and of the drain")
			}
		})
	}
}

// Every number is handed out once, in the order of arrival, and a step's random
// numbers depend on nothing else.
func TestOpenLoopNumbers(t *testing.T) {
	draw := func(workers int) map[int64]uint64 {
		got := make(chan [2]uint64, 1000)
		_, err := Loop(t.Context(), Config{Arrivals: every(time.Microsecond), N: 1000, Workers: workers, Seed: 7},
			func(_ context.Context, s *Step) error {
				got <- [2]uint64{uint64(s.N), s.Rand.Uint64()}
				return nil
			})
		require.NoError(t, err)
		close(got)
		numbers := make(map[int64]uint64)
		for g := range got {
			require.NotContains(t, numbers, int64(g[0]))
			numbers[int64(g[0])] = g[1]
		}
		return numbers
	}
	one := draw(1)
	require.Len(t, one, 1000)
	require.Contains(t, one, int64(999))
	require.Equal(t, one, draw(4))
}

// The check of an answer is not part of its latency, but keeps the worker.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Loop(t.Context(), Config{Arrivals: every(time.Second / 100), N: 2, wait: sleep},
			func(ctx context.Context, s *Step) error {
				time.Sleep(3 * time.Millisecond)
				s.Stop()
				time.Sleep(17 * time.Millisecond)
				s.Stop()
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, 13*time.Millisecond, out.Kinds[0].Latency.Max())
		require.Equal(t, int64(1), out.Late)
	})
}

func TestErrorEndsLoop(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		var finished atomic.Int64
		out, err := Loop(t.Context(), Config{Arrivals: every(time.Second / 10), Duration: time.Hour, Workers: 3, wait: sleep},
			func(_ context.Context, s *Step) error {
				if s.N == 20 {
					return broken
				}
				time.Sleep(150 * time.Millisecond)
				finished.Add(1)
				return nil
			})
		require.ErrorIs(t, err, broken)
		require.Equal(t, int64(20), out.Count, "what was in flight is finished")
		require.Equal(t, int64(20), finished.Load())
	})
}

func TestToleratedErrors(t *testing.T) {
	broken := errors.New("broken")
	out, err := Loop(t.Context(), Config{
		N: 100, Workers: 2, OnError: func(err error) bool { return errors.Is(err, broken) },
	}, func(_ context.Context, s *Step) error {
		if s.Kind = "odd"; s.N%10 == 0 {
			s.Kind = "even"
			s.Check(func() error { return errors.New("the answer of a failed operation is checked") })
			return broken
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, int64(90), out.Count)
	require.Equal(t, int64(10), out.Errors)
	require.Equal(t, broken, out.First)
	require.Equal(t, []string{"even", "odd"}, []string{out.Kinds[0].Name, out.Kinds[1].Name})
	require.Zero(t, out.Kinds[0].Latency.Count())
	require.Equal(t, int64(90), out.Kinds[1].Latency.Count())
	require.Equal(t, int64(10), out.Seconds()[0].Errors)
}

// What the loop asks for more is asked by one worker at a time, and ends it.
func TestMore(t *testing.T) {
	for name, cfg := range map[string]Config{
		"closed": {Workers: 3}, "open": {Workers: 3, Rate: 1e6}, "before the time is up": {Arrivals: every(time.Microsecond), Duration: time.Hour},
	} {
		left := 700
		cfg.More = func() bool { left--; return left >= 0 }
		out, err := Loop(t.Context(), cfg, noop)
		require.NoError(t, err, name)
		require.Equal(t, int64(700), out.Count, name)
		require.Equal(t, int64(700), out.Scheduled, name)
		require.Equal(t, -1, left, "%s: it was asked once too often", name)
		require.Less(t, out.Elapsed, time.Hour, name)
	}
}

// A cancelled context ends both loops in the middle of an operation, with its cause and an account
// of what was done. One that ends after the last operation has begun takes nothing away.
func TestCancel(t *testing.T) {
	enough := errors.New("enough")
	for name, cfg := range map[string]Config{"open": {Arrivals: every(time.Second / 20), wait: sleep}, "closed": {}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second+30*time.Millisecond, func() { cancel(enough) })
			cfg.Workers, cfg.Duration = 2, time.Hour
			out, err := Loop(ctx, cfg, lasting(100*time.Millisecond))
			require.ErrorIs(t, err, enough, name)
			require.InDelta(t, 20, out.Count, 2, name)
			require.Zero(t, out.Errors, name)
			require.Equal(t, out.Count, out.All().Count(), name)

			ctx, cancel = context.WithCancelCause(t.Context())
			cfg.Duration, cfg.N, cfg.Workers = 0, 5, 1
			out, err = Loop(ctx, cfg, func(_ context.Context, s *Step) error {
				if s.N == 4 {
					cancel(enough)
				}
				return nil
			})
			require.NoError(t, err, name)
			require.Equal(t, int64(5), out.Count, name)
		})
	}
}

func TestClosedLoopWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		out, err := Loop(t.Context(), Config{
			Workers: 4, Duration: 2 * time.Second, WarmUp: time.Second, Start: begin.Add(time.Second), wait: sleep,
		}, lasting(10*time.Millisecond))
		require.NoError(t, err)
		require.Equal(t, 4*time.Second, time.Since(begin))
		require.Equal(t, int64(800), out.Count)
		require.InDelta(t, 400, out.Rate(), 0)
		require.InDelta(t, 1, out.Busy(), 0.001)
		units := []string{}
		for _, m := range out.Metrics() {
			units = append(units, m.Unit)
		}
		require.Equal(t, []string{"qps", "errors", "busy"}, units)
	})
}

// An operation that the warm-up began and the measurement ends keeps its worker busy in both.
func TestBusyAcrossWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Loop(t.Context(), Config{Duration: 2 * time.Second, WarmUp: time.Second, wait: sleep}, lasting(300*time.Millisecond))
		require.NoError(t, err)
		require.Equal(t, int64(6), out.Count)
		require.InDelta(t, 1, out.Busy(), 0.001)
	})
}

// A closed loop says which part of its time was operations. The check of an
// answer is not between two of them, and one that fails ends the loop.
func TestBusy(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		half := func(_ context.Context, s *Step) error {
			time.Sleep(time.Millisecond)
			s.Stop()
			time.Sleep(time.Millisecond)
			return nil
		}
		out, err := Loop(t.Context(), Config{Workers: 2, N: 100}, half)
		require.NoError(t, err)
		require.InEpsilon(t, 1000, out.Rate(), 0.02)
		require.InDelta(t, 0.5, out.Busy(), 0.02)

		var checked atomic.Int64
		out, err = Loop(t.Context(), Config{Workers: 2, N: 100}, func(_ context.Context, s *Step) error {
			time.Sleep(time.Millisecond)
			s.Check(func() error { time.Sleep(time.Millisecond / 2); checked.Add(1); return nil })
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, int64(100), checked.Load())
		require.InDelta(t, 1, out.Busy(), 0.001)
		require.InEpsilon(t, 2000, out.Rate(), 0.02)
		require.Equal(t, 50*time.Millisecond, out.Checking)

		_, err = Loop(t.Context(), Config{Duration: time.Hour, OnError: func(error) bool { return true }}, func(_ context.Context, s *Step) error {
			time.Sleep(time.Millisecond)
			s.Check(func() error {
				if checked.Add(1) == 150 {
					return broken
				}
				return nil
			})
			return nil
		})
		require.ErrorIs(t, err, broken)
	})
}

// Values are drawn before they are asked for, in order; an error is the last.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	next, stop := Ahead(func(yield func(int, error) bool) {
		for i := range 10 {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, broken)
	}, 3)
	for i := range 10 {
		v, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, i, v)
	}
	_, err, ok := next()
	require.True(t, ok)
	require.ErrorIs(t, err, broken)
	_, _, ok = next()
	require.False(t, ok)
	stop()

	_, stop = Ahead(func(yield func(int, error) bool) {
		for yield(1, nil) {
		}
	}, 1)
	stop() // ends what would go on for ever
}

func TestWaits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	a, err := newAlarm()
	require.NoError(t, err)
	defer a.close()
	for name, wait := range map[string]func(context.Context, time.Time) error{"alarm": a.wait, "sleep": sleep} {
		for _, gap := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 700 * time.Microsecond, 5 * time.Millisecond} {
			until := time.Now().Add(gap)
			require.NoError(t, wait(t.Context(), until))
			require.False(t, time.Now().Before(until), "%s %v", name, gap)
		}
		require.ErrorIs(t, wait(ctx, time.Now().Add(time.Hour)), context.DeadlineExceeded, name)
	}
}

// TestStart: a loop begins at its Start, also one that is not paced.
func TestStart(t *testing.T) {
	for _, cfg := range []Config{{N: 1}, {N: 1, Rate: 1e6}} {
		cfg.Start = time.Now().Add(time.Millisecond)
		_, err := Loop(t.Context(), cfg, func(context.Context, *Step) error {
			require.False(t, time.Now().Before(cfg.Start))
			return nil
		})
		require.NoError(t, err)
	}
}

func TestArrivals(t *testing.T) {
	take := func(seed uint64) (list []time.Duration) {
		next := poisson(1000, seed)
		for range 100_000 {
			list = append(list, next())
		}
		return list
	}
	a := take(1)
	require.Equal(t, a, take(1))
	require.NotEqual(t, a, take(2))
	require.True(t, slices.IsSorted(a))
	// The mean of 100,000 exponential gaps is within five standard errors.
	require.InEpsilon(t, 100, a[len(a)-1].Seconds(), 5/316.0)
	short := 0
	for i := 1; i < len(a); i++ {
		if a[i]-a[i-1] < time.Millisecond {
			short++
		}
	}
	require.InDelta(t, 1-1/2.718281828, float64(short)/float64(len(a)), 0.01, "exponential, not fixed")
}

// TestBegin: in a closed loop what is before Begin is not timed, in an open one latency is from
// the scheduled start; steps of the warm-up are not measured.
func TestBegin(t *testing.T) {
	for _, arrivals := range []func() time.Duration{nil, every(time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			measured := 0
			out, err := Loop(t.Context(), Config{Arrivals: arrivals, N: 3, WarmUp: time.Second, wait: sleep}, func(ctx context.Context, s *Step) error {
				time.Sleep(300 * time.Millisecond)
				s.Begin()
				if s.Measured {
					measured++
				}
				return sleep(ctx, time.Now().Add(100*time.Millisecond))
			})
			require.NoError(t, err)
			require.Equal(t, 3, measured)
			if arrivals == nil {
				require.InDelta(t, 400./1400, out.Busy(), 0.001, "100 ms of the last operation of the warm-up and of three measured ones, in the 1.4 s after it")
				require.Equal(t, 100*time.Millisecond, out.All().Max())
			} else {
				require.Equal(t, 400*time.Millisecond, out.All().Max())
				require.Zero(t, out.Late, "an operation that makes something ready has started in time")
			}
		})
	}
}

// TestBeginOnce: an operation without Begin is timed from its start, whatever the
// operation before it did.
func TestBeginOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Loop(t.Context(), Config{N: 2}, func(_ context.Context, s *Step) error {
			if s.N == 0 {
				time.Sleep(time.Millisecond) // a beginning at 0 is none
				s.Begin()
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond, out.All().Max())
	})
}

// A timeline has each second to the last operation, idle ones too.
func TestSeconds(t *testing.T) {
	var o Outcome
	for _, s := range []sample{
		{started: 98 * time.Millisecond, ended: 100 * time.Millisecond}, {started: 898 * time.Millisecond, ended: 900 * time.Millisecond},
		{started: 1800 * time.Millisecond, ended: 2100 * time.Millisecond}, {ended: 2200 * time.Millisecond, err: context.Canceled}, {ended: 3 * time.Second, err: context.Canceled},
	} {
		o.add(&s, 0)
	}
	o.Elapsed = 3500 * time.Millisecond
	require.Equal(t, []latency.Second{
		{At: 1, Count: 2, Max: 2 * time.Millisecond}, {At: 2}, {At: 3, Count: 1, Max: 300 * time.Millisecond, Errors: 1}, {At: 3.5, Errors: 1},
	}, o.Seconds())
	require.Empty(t, new(Outcome).Seconds())
}
