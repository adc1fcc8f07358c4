package duckdb_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

const (
	firstBlock = 3 * 4096
	blockBytes = 256 << 10
)

// interrupted returns the files of a database whose process was killed while a
// checkpoint wrote its first block of metadata: of the new block only some pages are
// there. The database has 6 rows, 4 of them in the log.
func interrupted(t *testing.T) map[string][]byte {
	path := newPath(t)
	e := openAt(t, path, driver.Options{})
	require.NoError(t, createTables(e))
	checkpoint := func() {
		_, err := driver.Checkpoint(context.Background(), e, true)
		require.NoError(t, err)
	}
	for range 2 { // the second one frees the blocks of the first one
		require.NoError(t, insertCommit(e, row("k", number(t, snapshot(t, e), "SELECT count(*) FROM attributes"), 1)))
		checkpoint()
	}
	require.NoError(t, insertCommit(e, manyRows(0, 4)))
	files := map[string][]byte{}
	for _, suffix := range []string{"", ".wal", ".guard"} {
		data, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		files[suffix] = data
	}
	checkpoint()
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	copy(files[""][firstBlock:], after[firstBlock:firstBlock+4096])
	return files
}

func put(t *testing.T, files map[string][]byte) (path string) {
	path = newPath(t)
	for suffix, data := range files {
		require.NoError(t, os.WriteFile(path+suffix, data, 0o600))
	}
	return path
}

// A kill in the middle of a checkpoint leaves a block torn that the database needs.
func TestInterruptedCheckpoint(t *testing.T) {
	files := interrupted(t)
	path := put(t, files)
	_, err := open(path, driver.Options{ReadOnly: true})
	require.ErrorIs(t, err, driver.ErrReadOnly)
	require.ErrorContains(t, err, "open it once without read-only")
	e := openAt(t, path, driver.Options{})
	require.Equal(t, int64(6), count(t, e))
	require.NoError(t, insertCommit(e, row("new", 1, 1)))
	require.NoError(t, e.Close())
	require.NoFileExists(t, path+".guard")
	require.Equal(t, int64(7), count(t, openAt(t, path, driver.Options{ReadOnly: true})))
}

// Blocks are put back only if they are torn, and only from a whole copy of this
// very checkpoint.
func TestGuardOfAnother(t *testing.T) {
	change := func(suffix string, at int) func(map[string][]byte) {
		return func(files map[string][]byte) { files[suffix][at] ^= 1 }
	}
	for name, c := range map[string]struct {
		change func(map[string][]byte)
		is     error
	}{
		"none":         {func(files map[string][]byte) { delete(files, ".guard") }, driver.ErrCorrupt},
		"empty":        {func(files map[string][]byte) { files[".guard"] = nil }, driver.ErrCorrupt},
		"written half": {func(files map[string][]byte) { files[".guard"] = files[".guard"][:200_000] }, driver.ErrCorrupt},
		"damaged":      {change(".guard", 100_000), driver.ErrCorrupt},
		"not torn": {func(files map[string][]byte) {
			const start = 8 + 4096 + 8 + 8 // magic, header, count, number of the block
			copy(files[""][firstBlock:firstBlock+blockBytes], files[".guard"][start:])
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := interrupted(t)
			c.change(files)
			e, err := open(put(t, files), driver.Options{})
			require.ErrorIs(t, err, c.is)
			if err == nil {
				require.Equal(t, int64(6), count(t, e))
				require.NoError(t, e.Close())
			}
		})
	}
}

// A block that looks torn may be under another process's hands.
func TestMendWaitsForTheOther(t *testing.T) {
	path := newPath(t)
	closedDatabase(t, path)
	end := startChild(t, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{1}, firstBlock+blockBytes-1)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = open(path, driver.Options{})
	require.ErrorIs(t, err, driver.ErrLocked)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, now)
	end()
	require.Equal(t, int64(2), count(t, openAt(t, path, driver.Options{})))
}

// Where the copy cannot be made, the checkpoint does not run.
func TestGuardMustBeWritten(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.Mkdir(path+".guard", 0o700))
	_, err := open(path, driver.Options{})
	require.ErrorContains(t, err, filepath.Base(path)+".guard")
}

// A file of the copy's name that another program has made stays as it is.
func TestForeignGuard(t *testing.T) {
	path := newPath(t)
	mine := []byte("my own notes\n")
	require.NoError(t, os.WriteFile(path+".guard", mine, 0o600))
	_, err := open(path, driver.Options{})
	require.ErrorContains(t, err, "move it")
	is, err := os.ReadFile(path + ".guard")
	require.NoError(t, err)
	require.Equal(t, mine, is)
}
