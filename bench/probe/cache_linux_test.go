package probe

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onDisk skips where files are in memory anyhow, and cannot leave it.
func onDisk(t *testing.T, dir string) {
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	if st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC {
		t.Skip("temporary directory is in memory: set TMPDIR to one on a disk")
	}
}

// tree makes a file and a directory with two more: 4 MB, 1 byte and nothing.
func tree(t *testing.T) (dir string, pages int64) {
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, 4<<20), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "byte"), []byte{1}, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "empty"), nil, 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	return dir, 4<<20/int64(os.Getpagesize()) + 1
}

func TestEvictAndFill(t *testing.T) {
	dir, pages := tree(t)
	onDisk(t, dir)
	large := filepath.Join(dir, "large")
	all := Pages{Resident: pages, Total: pages}

	got, err := Residency(dir)
	require.NoError(t, err)
	require.Equal(t, all, got, "just written")

	require.NoError(t, Evict(t.Context(), dir))
	left, err := Residency(dir)
	require.NoError(t, err)
	require.Equal(t, Pages{Total: pages}, left)

	require.NoError(t, Fill(dir, 0))
	left, err = Residency(dir)
	require.NoError(t, err)
	require.Zero(t, left.Resident)
	const some = 1 << 20
	require.NoError(t, Fill(dir, some))
	got, err = Residency(large)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Resident, int64(some/os.Getpagesize()), "with what is read ahead")
	require.NoError(t, Fill(dir, math.MaxInt64))
	got, err = Residency(dir)
	require.NoError(t, err)
	require.Equal(t, all, got)
	require.InDelta(t, 1, got.Share(), 0)
	require.Zero(t, Pages{}.Share())
}

// TestEvictWaits: the host of a virtual machine gets its time after gigabytes
// have been dropped.
func TestEvictWaits(t *testing.T) {
	dir := t.TempDir()
	onDisk(t, dir)
	sparse := filepath.Join(dir, "sparse")
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 2*settleAbove))
	require.NoError(t, Fill(sparse, math.MaxInt64))
	filled, err := Residency(sparse)
	require.NoError(t, err)
	if filled.Resident*int64(os.Getpagesize()) < settleAbove {
		t.Skip("memory is too small")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Evict(ctx, sparse), context.Canceled)
	left, err := Residency(sparse)
	require.NoError(t, err)
	require.Zero(t, left.Resident)
}

func TestMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Residency(missing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, Fill(missing, 1), fs.ErrNotExist)
	require.ErrorIs(t, Evict(t.Context(), missing), fs.ErrNotExist)
}

// A sparse file takes no room on the disk, and is counted to its last byte.
func TestResidencyOfLongFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "long"))
	require.NoError(t, err)
	defer f.Close()
	const length = 5 << 30 // above what 32 bits count
	page := int64(os.Getpagesize())
	require.NoError(t, f.Truncate(length+10*page+1))
	_, err = f.WriteAt([]byte{1}, length+9*page)
	require.NoError(t, err)
	got, err := Residency(f.Name())
	require.NoError(t, err)
	require.Equal(t, length/page+11, got.Total)
	require.Positive(t, got.Resident)
	require.Less(t, got.Resident, int64(100))
}
