package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	commits = 1000
	usual   = time.Millisecond
	stall   = 200 * time.Millisecond
)

// stalling is a commit that takes a millisecond, except for one in a thousand.
func stalling(ctx context.Context, s *Step) error {
	s.Kind = "commit"
	took := usual
	if s.N == commits/2 {
		took = stall
	}
	return sleep(ctx, time.Now().Add(took))
}

// The open loop shows a stall: all that arrived in it waited, and what came
// after it waited for those.
func TestOpenLoopShowsStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Loop(t.Context(), Config{Arrivals: every(time.Second / 500), N: commits, wait: sleep}, stalling)
		require.NoError(t, err)
		d := out.Kinds[0].Latency
		require.Equal(t, int64(commits), d.Count())
		require.Equal(t, stall, d.Max())
		require.InEpsilon(t, float64(stall), float64(d.Quantile(99.9)), 0.01)
		require.InEpsilon(t, float64(190*time.Millisecond), float64(d.Quantile(99)), 0.01)
		require.InEpsilon(t, float64(usual), float64(d.Quantile(50)), 0.01)

		// Arrivals every 2 ms, served in 1 ms: the n-th after the stall is late by
		// 199-n ms, and 1 ms is allowed.
		require.Equal(t, int64(197), out.Late)

		seconds := out.Seconds()
		require.Len(t, seconds, 2)
		require.Equal(t, usual, seconds[0].Max)
		require.Equal(t, stall, seconds[1].Max)
	})
}

// A closed loop over the same commits hides it: one slow one in a thousand is
// beyond the 99.9th percentile, though a fifth of the run stood still.
func TestClosedLoopHidesStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Loop(t.Context(), Config{N: commits}, stalling)
		require.NoError(t, err)
		d := out.Kinds[0].Latency
		require.Equal(t, int64(commits), d.Count())
		require.Equal(t, stall, d.Max(), "the only trace of it")
		require.InEpsilon(t, float64(usual), float64(d.Quantile(99)), 0.01)
		require.InEpsilon(t, float64(usual), float64(d.Quantile(99.9)), 0.01)
		require.Equal(t, (commits-1)*usual+stall, out.Elapsed)
	})
}
