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
)

func noop(context.Context, *Step) error { return nil }

// lasting is an operation of a fixed length.
func lasting(d time.Duration) Op {
	return func(ctx context.Context, _ *Step) error { return sleep(ctx, time.Now().Add(d)) }
}

func TestOpenLoopOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		out, err := Loop(t.Context(), Config{
			Arrivals: Fixed(100), Workers: 3, Duration: 10 * time.Second, WarmUp: time.Second, wait: sleep,
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

// More workers take more at a time.
func TestOpenLoopWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for workers, longest := range map[int]time.Duration{1: 55 * time.Millisecond, 2: 10 * time.Millisecond} {
			out, err := Loop(t.Context(), Config{
				Arrivals: Fixed(200), Workers: workers, N: 10, wait: sleep,
			}, lasting(10*time.Millisecond))
			require.NoError(t, err)
			require.Equal(t, longest, out.All().Max(), "%d workers", workers)
		}
	})
}

// Arrivals that wait for too long are skipped, and so are those that are left
// when the time to drain is over.
func TestOpenLoopSkips(t *testing.T) {
	for name, cfg := range map[string]Config{
		"max lag": {MaxLag: 100 * time.Millisecond},
		"drain":   {Drain: 500 * time.Millisecond},
		"none":    {Drain: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.Arrivals, cfg.Duration, cfg.wait = Fixed(200), 5*time.Second, sleep
				out, err := Loop(t.Context(), cfg, lasting(10*time.Millisecond))
				require.NoError(t, err)
				require.Equal(t, int64(1000), out.Scheduled)
				require.Equal(t, out.Scheduled, out.Count+out.Skipped)
				switch {
				case cfg.MaxLag > 0:
					require.LessOrEqual(t, out.All().Max(), 110*time.Millisecond)
					require.InDelta(t, 500, out.Skipped, 20)
				case cfg.Drain > 1:
					require.Equal(t, int64(551), out.Count)
				default:
					require.Equal(t, int64(501), out.Count)
				}
			})
		})
	}
}

// Every number is handed out once, in the order of arrival, and a step's random
// numbers depend on nothing else.
func TestOpenLoopNumbers(t *testing.T) {
	draw := func(workers int) map[int64]uint64 {
		got := make(chan [2]uint64, 1000)
		_, err := Loop(t.Context(), Config{Arrivals: Fixed(1e6), N: 1000, Workers: workers, Seed: 7},
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
		out, err := Loop(t.Context(), Config{Arrivals: Fixed(100), N: 2, wait: sleep},
			func(ctx context.Context, s *Step) error {
				time.Sleep(3 * time.Millisecond)
				s.Stop()
				time.Sleep(17 * time.Millisecond)
				s.Stop()
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, 34*time.Millisecond, out.Untimed)
		require.Equal(t, 13*time.Millisecond, out.Kinds[0].Latency.Max())
		require.Equal(t, int64(1), out.Late)
	})
}

func TestErrorEndsLoop(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		var finished atomic.Int64
		out, err := Loop(t.Context(), Config{Arrivals: Fixed(10), Duration: time.Hour, Workers: 3, wait: sleep},
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
		"closed": {Workers: 3}, "open": {Workers: 3, Arrivals: Poisson(1e6, 1)}, "before the time is up": {Arrivals: Fixed(1e6), Duration: time.Hour},
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

// A cancelled context ends both loops in the middle of an operation, with its
// cause and an account of what was done.
func TestCancel(t *testing.T) {
	enough := errors.New("enough")
	loops := map[string]func(context.Context, Op) (*Outcome, error){
		"open": func(ctx context.Context, op Op) (*Outcome, error) {
			return Loop(ctx, Config{Arrivals: Fixed(20), Workers: 2, Duration: time.Hour, wait: sleep}, op)
		},
		"closed": func(ctx context.Context, op Op) (*Outcome, error) {
			return Loop(ctx, Config{Workers: 2, Duration: time.Hour}, op)
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second+30*time.Millisecond, func() { cancel(enough) })
				out, err := loop(ctx, lasting(100*time.Millisecond))
				require.ErrorIs(t, err, enough)
				require.InDelta(t, 20, out.Count, 2)
				require.Zero(t, out.Errors)
				require.Equal(t, out.Count, out.All().Count())
			})
		})
	}
}

// A context that ends after the last operation has begun takes nothing away.
func TestCancelAtTheEnd(t *testing.T) {
	for name, loop := range map[string]func(context.Context, Op) (*Outcome, error){
		"open": func(ctx context.Context, op Op) (*Outcome, error) {
			return Loop(ctx, Config{Arrivals: Fixed(1000), N: 5}, op)
		},
		"closed": func(ctx context.Context, op Op) (*Outcome, error) {
			return Loop(ctx, Config{N: 5}, op)
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, err := loop(ctx, func(_ context.Context, s *Step) error {
			if s.N == 4 {
				cancel()
			}
			return nil
		})
		require.NoError(t, err, name)
		require.Equal(t, int64(5), out.Count, name)
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
		require.InDelta(t, 400, out.Capacity(), 0)
		units := []string{}
		for _, m := range out.Metrics() {
			units = append(units, m.Unit)
		}
		require.Equal(t, []string{"qps", "errors"}, units)
	})
}

// What is outside the timed part does not count against the capacity.
func TestCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Loop(t.Context(), Config{Workers: 2, N: 100}, func(_ context.Context, s *Step) error {
			time.Sleep(time.Millisecond)
			s.Stop()
			time.Sleep(time.Millisecond)
			return nil
		})
		require.NoError(t, err)
		require.InEpsilon(t, 1000, out.Rate(), 0.02)
		require.InEpsilon(t, 2000, out.Capacity(), 0.04)
	})
}

func TestWaits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for name, wait := range map[string]func(context.Context, time.Time) error{"precise": precise, "frugal": frugal, "sleep": sleep} {
		for _, gap := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 700 * time.Microsecond, 5 * time.Millisecond} {
			until := time.Now().Add(gap)
			require.NoError(t, wait(t.Context(), until))
			require.False(t, time.Now().Before(until), "%s %v", name, gap)
		}
		require.ErrorIs(t, wait(ctx, time.Now().Add(time.Hour)), context.DeadlineExceeded, name)
	}
}

func TestArrivals(t *testing.T) {
	take := func(a Arrivals, n int) (list []time.Duration) {
		for range n {
			list = append(list, a())
		}
		return list
	}
	require.Equal(t, []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond}, take(Fixed(4), 3))
	third := take(Fixed(3), 3_000_001)
	require.Equal(t, 1_000_000*time.Second, third[3_000_000], "no drift")

	a := take(Poisson(1000, 1), 100_000)
	require.Equal(t, a, take(Poisson(1000, 1), 100_000))
	require.NotEqual(t, a, take(Poisson(1000, 2), 100_000))
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
	for _, arrivals := range []Arrivals{nil, Fixed(1)} {
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
				require.Equal(t, 900*time.Millisecond, out.Untimed)
				require.Equal(t, 100*time.Millisecond, out.All().Max())
			} else {
				require.Equal(t, 400*time.Millisecond, out.All().Max())
			}
		})
	}
}
