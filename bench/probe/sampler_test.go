package probe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestSampler(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
	var calls atomic.Int64
	enough := make(chan struct{})
	s := Start(t.Context(), Config{
		Interval: time.Millisecond, Dir: file,
		Stats: func(context.Context) (driver.Stats, error) {
			n := calls.Add(1)
			if n == 5 {
				close(enough)
			}
			return driver.Stats{WALBytes: &n}, nil
		},
	})
	<-enough
	got := s.Stop()
	require.Same(t, got, s.Stop())
	require.NoError(t, got.Err)
	require.GreaterOrEqual(t, len(got.List), 4)
	for i, sample := range got.List {
		require.Equal(t, int64(i+1), *sample.Stats.WALBytes)
		require.Equal(t, i == 0 && runtime.GOOS == "linux", sample.Pages != nil, "residency is looked at less often")
	}
	if runtime.GOOS == "linux" {
		require.Positive(t, *got.List[0].RSS, "of this process")
		require.NotNil(t, got.List[3].CPU)
	}
}

// A sampler follows the processes that the engine names.
func TestSamplerOfEngineProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at on Linux only")
	}
	servant := start(t)
	samples := make(chan struct{})
	s := Start(t.Context(), Config{Interval: time.Millisecond, Stats: func(context.Context) (driver.Stats, error) {
		select {
		case samples <- struct{}{}:
		default:
		}
		return driver.Stats{EnginePIDs: []int{servant.pid}}, nil
	}})
	servant.do("burn")
	<-samples // begins after it burned …
	<-samples // … and when this one begins, that one is complete
	got := s.Stop()
	require.NoError(t, got.Err)
	last := got.List[len(got.List)-1]
	require.GreaterOrEqual(t, *last.CPU, 80*time.Millisecond)
}

// What cannot be found out is missing, and does not end the sampler.
func TestSamplerErrors(t *testing.T) {
	broken := errors.New("broken")
	var calls atomic.Int64
	enough := make(chan struct{})
	s := Start(t.Context(), Config{Interval: time.Millisecond, Stats: func(context.Context) (driver.Stats, error) {
		switch calls.Add(1) {
		case 2:
			return driver.Stats{}, broken
		case 4:
			close(enough)
		}
		return driver.Stats{WALBytes: new(int64(1))}, nil
	}})
	<-enough
	got := s.Stop()
	require.ErrorIs(t, got.Err, broken)
	require.Nil(t, got.List[1].Stats.WALBytes)
	require.NotNil(t, got.List[2].Stats.WALBytes)
}

// It ends with the context, too.
func TestSamplerCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := Start(ctx, Config{})
	cancel()
	<-s.done
	require.Len(t, s.Stop().List, 1)
}
