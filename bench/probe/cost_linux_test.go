package probe

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The counters match a known program's work: bytes written and read, syncs and
// processor time. It may be the engine's process, or its descendant, alive or
// ended. Its earlier work does not count.
func TestCost(t *testing.T) {
	for name, as := range map[string]string{"engine": "", "child that lives": "keep ", "child that has ended": "child "} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			onDisk(t, dir)
			file := filepath.Join(dir, "file")
			require.NoError(t, os.WriteFile(file, make([]byte, fileSize), 0o600))
			require.NoError(t, Evict(t.Context(), dir))
			s := start(t)
			s.do(as + "write " + filepath.Join(dir, "before") + " 8")

			m, err := newMeter([]int{s.pid})
			require.NoError(t, err)
			defer m.Close()
			before := ownCPU()
			s.do(as + "write " + filepath.Join(dir, "now") + " 64")
			s.do(as + "write " + filepath.Join(dir, "again") + " 16")
			s.do(as + "read " + file)
			s.do(as + "burn 500ms")
			got, err := m.Cost()
			require.NoError(t, err)
			after := ownCPU()

			require.InEpsilon(t, 2*fileSize, got.Written, 0.03)
			require.InEpsilon(t, fileSize, got.Read, 0.03)
			if got.Syncs == nil {
				t.Log("the kernel may not be asked for system calls here")
			} else {
				require.Equal(t, int64(64+16), *got.Syncs)
			}
			// A child takes time to start, and on a busy machine more than on a quiet one.
			// One that is lost, or counted twice, is further off.
			used := got.CPU - (after - before)
			require.Greater(t, used, 425*time.Millisecond)
			require.Less(t, used, 900*time.Millisecond)
		})
	}
}

// Work between the operations is not counted.
func TestCostApart(t *testing.T) {
	var got Cost
	for range 5 { // other programs make some of them dearer
		m, err := newMeter(nil)
		require.NoError(t, err)
		burn("200ms")
		require.NoError(t, m.Apart(func() error { burn("500ms"); return nil }))
		got, err = m.Cost()
		require.NoError(t, err)
		m.Close()
		if got.CPU < 230*time.Millisecond {
			break
		}
	}
	require.InEpsilon(t, 200*time.Millisecond, got.CPU, 0.15)
	each := got.Each(10)
	require.Equal(t, "cpu-ns/op", each[0].Unit)
	require.InDelta(t, float64(got.CPU)/10, each[0].Value, 0)
}
