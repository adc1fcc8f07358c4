package probe

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
)

func TestLook(t *testing.T) {
	dir := t.TempDir()
	m, err := Look(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, syncs, m.Fsync.Samples)
	require.LessOrEqual(t, m.Fsync.Median, m.Fsync.P99)
	require.LessOrEqual(t, m.Fsync.P99, m.Fsync.Max)
	for _, f := range m.Metrics() {
		if f.Unit != unitOthers && f.Unit != unitStolen && f.Unit != "share-waiting" {
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

// TestMachineOf: what is judged comes back from the figures.
func TestMachineOf(t *testing.T) {
	m := quiet()
	figures := map[string]float64{}
	for _, f := range m.Metrics() {
		figures[f.Unit] = f.Value
	}
	again := MachineOf(figures)
	m.Others, m.Stolen = nil, nil
	require.Equal(t, m, again)
}

func quiet() Machine {
	return Machine{Fsync: Fsync{Median: time.Millisecond}, Copy: 4e9, One: 20 * time.Millisecond, All: 30 * time.Millisecond, Others: new(0.01), Stolen: new(0.)}
}

// TestOff: only what is worse is off, by more than the looks before it are apart.
func TestOff(t *testing.T) {
	history := func(factors ...float64) (list []Machine) {
		for _, f := range factors {
			m := quiet()
			m.Fsync.Median = time.Duration(f * float64(m.Fsync.Median))
			list = append(list, m)
		}
		return list
	}
	steady, spread := history(1, 1, 1, 1, 1, 1), history(0.5, 0.7, 0.9, 1, 1.2, 1.4, 2)
	for _, c := range []struct {
		name   string
		before []Machine
		change func(m *Machine)
		off    string // the unit
	}{
		{"the same", steady, func(*Machine) {}, ""},
		{"slower syncs", steady, func(m *Machine) { m.Fsync.Median *= 2 }, unitSync},
		{"slower, but inside the least", steady, func(m *Machine) { m.Fsync.Median = m.Fsync.Median * 12 / 10 }, ""},
		{"slower, but inside the spread", spread, func(m *Machine) { m.Fsync.Median *= 2 }, ""},
		{"far outside the spread", spread, func(m *Machine) { m.Fsync.Median *= 50 }, unitSync},
		{"too few to tell", history(1, 1, 1, 1), func(m *Machine) { m.Fsync.Median *= 50 }, ""},
		{"faster syncs", steady, func(m *Machine) { m.Fsync.Median /= 4 }, ""},
		{"memory half as fast", steady, func(m *Machine) { m.Copy /= 2 }, "time to copy"},
		{"memory twice as fast", steady, func(m *Machine) { m.Copy *= 2 }, ""},
		{"one core slower", steady, func(m *Machine) { m.One *= 2 }, unitOne},
		{"all cores slower", steady, func(m *Machine) { m.All *= 2 }, unitAll},
		{"others at work", nil, func(m *Machine) { m.Others = new(0.5) }, "other programs use 50 %"},
		{"stolen", nil, func(m *Machine) { m.Stolen = new(0.2) }, "hypervisor"},
		{"nothing known", steady, func(m *Machine) { m.Others, m.Stolen = nil, nil }, ""},
	} {
		m := quiet()
		c.change(&m)
		why := m.Off(c.before)
		if c.off == "" {
			require.Empty(t, why, c.name)
		} else {
			require.Contains(t, why, c.off, c.name)
		}
	}
}
