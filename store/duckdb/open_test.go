package duckdb_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestOpenRefusesOptions(t *testing.T) {
	for name, c := range map[string]struct {
		opts driver.Options
		is   error
		says string
	}{
		"frames":       {driver.Options{WALFrames: 100}, driver.ErrUnsupported, "checkpoint_threshold"},
		"memory":       {driver.Options{Memory: 1 << 20}, driver.ErrUnsupported, "at least 64 MiB"},
		"unknown":      {driver.Options{Params: map[string]string{"page_size": "1"}}, nil, "known are [checkpoint_threshold storage_version temp_directory threads]"},
		"threads":      {driver.Options{Params: map[string]string{"threads": "0"}}, nil, "at least 1"},
		"threshold":    {driver.Options{Params: map[string]string{"checkpoint_threshold": "16MB"}}, nil, "want bytes"},
		"no directory": {driver.Options{Params: map[string]string{"temp_directory": ""}}, nil, "want a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			_, err := open(path, c.opts)
			require.ErrorContains(t, err, c.says)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.NoFileExists(t, path)
		})
	}
}

func TestOpenRefusesFiles(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"short":        content("DUCK"),
		"sqlite":       content("SQLite format 3\x00" + strings.Repeat("\x00", 4080)),
		"header only":  content("\x00\x00\x00\x00\x00\x00\x00\x00DUCK" + strings.Repeat("\x00", 20000)),
		"headers only": truncated,
		"flipped":      flipped,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			make(t, path)
			_, err := open(path, driver.Options{})
			require.ErrorIs(t, err, driver.ErrCorrupt)
		})
	}
}

func content(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
}

func closedDatabase(t *testing.T, path string) []byte {
	e, err := open(path, driver.Options{})
	require.NoError(t, err)
	require.NoError(t, insertCommit(e, row("k", 1, 1)))
	require.NoError(t, e.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func truncated(t *testing.T, path string) {
	closedDatabase(t, path)
	require.NoError(t, os.Truncate(path, 3*4096))
}

func flipped(t *testing.T, path string) {
	data := closedDatabase(t, path)
	for _, at := range []int{4100, 8200} { // both headers
		data[at] ^= 0xff
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func TestOpenRefusesPaths(t *testing.T) {
	dir := t.TempDir()
	_, err := open(filepath.Join(dir, "no", "x.duckdb"), driver.Options{})
	require.ErrorContains(t, err, "does not exist; make it first")
	for _, name := range []string{"a?b", "a#b", "a%zzb", "a\nb"} {
		_, err := open(filepath.Join(dir, name), driver.Options{})
		require.ErrorIs(t, err, driver.ErrUnsupported, "%q", name)
	}
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestOpenRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	d, _ := driver.Lookup("duckdb")
	for _, rawURL := range []string{"duckdb:a%20b:c.duckdb", "duckdb:./d&e=f.duckdb"} {
		u, err := url.Parse(rawURL)
		require.NoError(t, err)
		e, err := d.Open(context.Background(), u, driver.Options{})
		require.NoError(t, err, rawURL)
		require.NoError(t, e.Close())
	}
	require.FileExists(t, "a b:c.duckdb")
	require.FileExists(t, "d&e=f.duckdb")
}

func TestSettings(t *testing.T) {
	e := openNew(t, driver.Options{Memory: 100 << 20, Readers: 3, Params: map[string]string{
		"threads": "1", "checkpoint_threshold": strconv.Itoa(2 << 20), "temp_directory": filepath.Join(t.TempDir(), "a b&c"),
	}})
	tx, err := e.Begin(context.Background()) // settings do not wait for the writer
	require.NoError(t, err)
	list, err := e.Settings(context.Background())
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	got := map[string]string{}
	for _, s := range list {
		got[s.Name] = s.Value
	}
	require.Subset(t, got, map[string]string{
		"memory_limit": "100.0 MiB", "threads": "1", "checkpoint_threshold": "2097152",
		"immediate_transaction_mode": "true", "autoload_known_extensions": "false", "durability": "durable",
		"checkpoint": "background", "memory": "104857600", "readers": "3", "preserve_insertion_order": "false",
		"disabled_optimizers": "statistics_propagation", "storage_compatibility_version": "v1.0.0", "storage_version": "v1.0.0+",
	})
	again, err := e.Settings(context.Background())
	require.NoError(t, err)
	require.Equal(t, list, again)
	require.Equal(t, "v1.5.5", e.Info().Version)
}

// The format of a file is the one that it was made with, whatever is asked for later.
func TestStorageVersion(t *testing.T) {
	for _, c := range []struct{ made, opened, is string }{
		{"", "latest", "v1.0.0+"}, {"latest", "", "v1.5.0+"}, {"v1.2.0", "v1.4.0", "v1.2.0+"},
	} {
		path := filepath.Join(t.TempDir(), "varve.duckdb")
		for i, version := range []string{c.made, c.opened} {
			opts := driver.Options{}
			if version != "" {
				opts.Params = map[string]string{"storage_version": version}
			}
			e, err := open(path, opts)
			require.NoError(t, err)
			require.NoError(t, write(e, func(ctx context.Context, tx driver.Tx) error {
				_, err := tx.Exec(ctx, "CREATE TABLE t"+strconv.Itoa(i)+" AS SELECT 1 AS a")
				return err
			}))
			_, err = driver.Checkpoint(context.Background(), e, false)
			require.NoError(t, err)
			require.Equal(t, c.is, setting(t, e, "storage_version"), version)
			require.NoError(t, e.Close())
		}
	}
	_, err := open(filepath.Join(t.TempDir(), "varve.duckdb"), driver.Options{Params: map[string]string{"storage_version": "v0.0.1"}})
	require.Error(t, err)
}

// Threads that have too little memory each make statements fail for want of it.
func TestThreadsFollowMemory(t *testing.T) {
	require.Equal(t, "1", setting(t, openNew(t, driver.Options{Memory: 64 << 20}), "threads"))
	most := strconv.Itoa(min(runtime.NumCPU(), 8))
	require.Equal(t, most, setting(t, openNew(t, driver.Options{Memory: 1 << 30}), "threads"))
}

func setting(t *testing.T, e driver.Engine, name string) string {
	list, err := e.Settings(context.Background())
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(s driver.Setting) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return list[i].Value
}

func TestStatsAndCheckpoint(t *testing.T) {
	ctx := context.Background()
	e := openNew(t, driver.Options{})
	require.NoError(t, insertCommit(e, row("k", 1, 1)))
	s, err := e.Stats(ctx)
	require.NoError(t, err)
	require.Positive(t, *s.DatabaseBytes)
	require.Positive(t, *s.WALBytes)

	// A snapshot that may see a row changed since keeps the checkpoint away.
	r := snapshot(t, e)
	require.NoError(t, update(e, int64(5), []byte("k"), "name", int64(1)))
	res, err := driver.Checkpoint(ctx, e, false)
	require.NoError(t, err)
	require.True(t, res.Busy)
	done, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = driver.Checkpoint(done, e, true)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, forEver, number(t, r, "SELECT to_block FROM attributes"))

	ended := make(chan error)
	go func() { ended <- r.Close() }()
	res, err = driver.Checkpoint(ctx, e, true)
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.False(t, res.Busy)
	s, err = e.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, *s.WALBytes)
}

func TestOneProcessAndOnce(t *testing.T) {
	path := newPath(t)
	end := startChild(t, path)
	for _, readOnly := range []bool{false, true} {
		_, err := open(path, driver.Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, driver.ErrLocked)
		require.ErrorContains(t, err, "PID")
	}
	// Waiting lasts until the lock is free, or the caller has enough.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	d, _ := driver.Lookup("duckdb")
	_, err := d.Open(ctx, &url.URL{Scheme: "duckdb", Path: path}, driver.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, driver.ErrLocked)

	ended := make(chan struct{})
	go func() { defer close(ended); end() }()
	e, err := open(path, driver.Options{LockTimeout: time.Minute})
	require.NoError(t, err)
	<-ended
	require.Equal(t, int64(1), count(t, e), "the child ended without Close: its commit is in the log")

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	for _, p := range []string{path, link} {
		_, err = open(p, driver.Options{ReadOnly: true})
		require.ErrorIs(t, err, driver.ErrLocked)
		require.ErrorContains(t, err, "this process")
	}
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	e, err = open(link, driver.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// A log left by a process that did not close is read, and kept, by a reader;
// one that must be written into the database is not.
func TestReadOnlyBesideLog(t *testing.T) {
	path := newPath(t)
	closedDatabase(t, path)
	startChild(t, path)()
	require.FileExists(t, path+".wal")
	for range 2 {
		e, err := open(path, driver.Options{ReadOnly: true})
		require.NoError(t, err)
		require.Equal(t, int64(2), count(t, e))
		require.NoError(t, e.Close())
		require.FileExists(t, path+".wal")
	}

	path = newPath(t)
	startChild(t, path)() // the log makes an index
	_, err := open(path, driver.Options{ReadOnly: true})
	require.ErrorIs(t, err, driver.ErrReadOnly)
	require.ErrorContains(t, err, "open it once without read-only")
	require.Equal(t, int64(1), count(t, openAt(t, path, driver.Options{})))
}

// The engine reads the file as it needs it: half a file may open, but the
// missing part is not taken for empty.
func TestTruncated(t *testing.T) {
	path := newPath(t)
	closedDatabase(t, path)
	require.NoError(t, os.Truncate(path, firstBlock+blockBytes))
	e, err := open(path, driver.Options{ReadOnly: true})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		var rows driver.Rows
		if rows, err = snapshot(t, e).Query(context.Background(), "SELECT * FROM attributes"); err == nil {
			rows.Close()
		}
	}
	require.ErrorIs(t, err, driver.ErrCorrupt)
}
