package probe

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// Samples are taken until the sampler is stopped. What cannot be found out is missing, and does not
// end it.
func TestSampler(t *testing.T) {
	broken := errors.New("broken")
	var calls atomic.Int64
	enough := make(chan struct{})
	s := Start(t.Context(), time.Millisecond, func(context.Context) (driver.Stats, error) {
		n := calls.Add(1)
		switch n {
		case 3:
			return driver.Stats{}, broken
		case 6:
			close(enough)
		}
		return driver.Stats{WALBytes: &n}, nil
	})
	<-enough
	got := s.Stop()
	require.Same(t, got, s.Stop())
	require.ErrorIs(t, got.Err, broken)
	require.GreaterOrEqual(t, len(got.List), 5)
	for i, sample := range got.List {
		if i == 2 {
			require.Nil(t, sample.Stats.WALBytes)
			continue
		}
		require.Equal(t, int64(i+1), *sample.Stats.WALBytes)
	}
	if runtime.GOOS == "linux" {
		require.Positive(t, *got.List[0].RSS, "of this process")
		require.NotNil(t, got.List[3].Read)
	}
}

// A sampler follows the processes that the engine names, and ends with its context.
func TestSamplerOfEngineProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at on Linux only")
	}
	servant := start(t)
	servant.do("hold")
	ctx, cancel := context.WithCancel(t.Context())
	s := Start(ctx, time.Hour, func(context.Context) (driver.Stats, error) {
		return driver.Stats{EnginePIDs: []int{servant.pid}}, nil
	})
	cancel()
	<-s.done
	got := s.Stop()
	require.NoError(t, got.Err)
	require.Len(t, got.List, 1)
	var this Sample
	require.NoError(t, new(tracker).sample([]int{servant.pid}, &this))
	require.InDelta(t, *this.RSS, *got.List[0].RSS, 4<<20)
}
