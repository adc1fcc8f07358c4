package probe

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
)

func TestLook(t *testing.T) {
	dir := t.TempDir()
	m, err := Look(t.Context(), dir)
	require.NoError(t, err)
	require.EqualValues(t, syncs, m.Fsync.Count())
	for _, f := range m.Metrics() {
		if f.Unit != "share-others" && f.Unit != "share-stolen" {
			require.Positive(t, f.Value, f.Unit)
			continue
		}
		require.True(t, f.Value >= 0 && f.Value <= 1, "%s is %v", f.Unit, f.Value)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = Look(t.Context(), filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Look(ended, dir)
	require.ErrorIs(t, err, context.Canceled)
}

// TestWork: the program is fixed, or its times could not be compared.
func TestWork(t *testing.T) {
	require.Equal(t, uint64(0x1298b7e105e7b309), work())
}

func TestShares(t *testing.T) {
	before := procfs.CPUStat{User: 10, System: 5, Idle: 100, Iowait: 1}
	used, stolen := shares(&before, &procfs.CPUStat{User: 10.2, System: 5.1, Idle: 100.5, Iowait: 1.1, Steal: 0.1})
	require.InDelta(t, 0.3, *used, 1e-9)
	require.InDelta(t, 0.1, *stolen, 1e-9)
	used, stolen = shares(nil, nil)
	require.Nil(t, used)
	require.Nil(t, stolen)
}

// TestOff: a machine is off while others use it.
func TestOff(t *testing.T) {
	for _, c := range []struct {
		others, stolen *float64
		off            string
	}{
		{nil, nil, ""}, {new(0.1), new(0.1), ""}, {new(0.5), new(0.), "other programs use 50 % of the cores"}, {new(0.), new(0.2), "the hypervisor gives to others 20 % of the cores"},
	} {
		require.Equal(t, c.off, (&Machine{Others: c.others, Stolen: c.stolen}).Off())
	}
}
