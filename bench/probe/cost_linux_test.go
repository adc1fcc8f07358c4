package probe

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a known program does is what is counted of it: bytes written and read,
// syncs and processor time, also of a child that has ended. What it did before
// does not count.
func TestCost(t *testing.T) {
	dir := t.TempDir()
	onDisk(t, dir)
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	require.NoError(t, os.WriteFile(a, make([]byte, fileSize), 0o600))
	require.NoError(t, Evict(dir))
	s := start(t)
	s.do("write " + b + " 8")

	m, err := NewMeter([]int{s.pid})
	require.NoError(t, err)
	defer m.Close()
	before, _ := ownCPU()
	s.do("write " + c + " 64")
	s.do("child write " + b + " 16")
	s.do("read " + a)
	s.do("child burn 300ms")
	got, err := m.Cost()
	require.NoError(t, err)
	after, _ := ownCPU()

	require.InEpsilon(t, 2*fileSize, got.Written, 0.05)
	require.InEpsilon(t, fileSize, got.Read, 0.10, "with what else the child has to load")
	if got.Syncs == nil {
		t.Log("the kernel may not be asked for system calls here")
	} else {
		require.Equal(t, int64(64+16), *got.Syncs)
	}
	require.GreaterOrEqual(t, got.CPU-(after-before), 290*time.Millisecond)
}
