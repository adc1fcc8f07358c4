package faulttest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// Limits says what an engine may do otherwise when a resource is gone.
type Limits struct {
	Disk int64 // bytes of the file system; zero means 64 MiB

	// NoReadOnly says why a store on a read-only file system cannot be opened at
	// all; "" when it can, for reading.
	NoReadOnly string
}

// RunResources takes file descriptors, memory, the right to write and the order of
// time away from stores of an engine. Disk space is taken by crashtest.Full, in a
// process of its own.
func RunResources(t *testing.T, engine string, l Limits) {
	if l.Disk == 0 {
		l.Disk = 64 << 20
	}
	t.Run("read-only file system", func(t *testing.T) { runReadOnly(t, engine, l) })
	t.Run("file descriptors", func(t *testing.T) { runDescriptors(t, engine) })
	t.Run("memory", func(t *testing.T) { runMemory(t, engine) })
	t.Run("clock", func(t *testing.T) { runClock(t, engine) })
}

// mount mounts a file system in memory of a size, or skips the test.
func mount(t *testing.T, bytes int64) string {
	t.Helper()
	if reason := crashtest.CanMountMemory(); reason != "" {
		t.Skip(reason)
	}
	parent, err := os.MkdirTemp("", "varve-small-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(parent, 0o755)) // a server runs as somebody else
	dir := filepath.Join(parent, "disk")
	require.NoError(t, crashtest.MountMemory(dir, bytes))
	t.Cleanup(func() {
		require.NoError(t, crashtest.UnmountMemory(dir))
		require.NoError(t, os.RemoveAll(parent))
	})
	return dir
}

// runReadOnly: on a read-only file system a store cannot be opened for writing, and
// what can be read is right.
func runReadOnly(t *testing.T, engine string, l Limits) {
	dir := mount(t, l.Disk)
	c := crashtest.Cell{Engine: engine, Layout: "arkiv", Dir: dir}
	s := crashtest.NewContents(c.Layout, 1)
	db, err := store.Open(t.Context(), c.URL("store", "memory", "64MiB"), nil)
	require.NoError(t, err)
	require.NoError(t, s.Fill(t.Context(), db, 30))
	require.NoError(t, db.Close())
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	defer func() { require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "")) }()
	db, err = store.Open(t.Context(), c.URL("store", "memory", "64MiB"), nil)
	if err == nil {
		ents, openErr := db.Entities(t.Context(), nil)
		if err = openErr; err == nil {
			_, err = ents.Apply(t.Context(), entity.Block{Number: 1 << 40})
		}
		require.NoError(t, db.Close())
	}
	require.Error(t, err)
	if l.NoReadOnly == "" {
		require.ErrorIs(t, err, store.ErrReadOnly)
	}
	db, err = store.Open(t.Context(), c.URL("store", "memory", "64MiB"), &store.Options{ReadOnly: true})
	if l.NoReadOnly != "" {
		require.Error(t, err, l.NoReadOnly)
		return
	}
	require.NoError(t, err)
	_, err = s.Verify(t.Context(), db)
	require.NoError(t, errors.Join(err, db.Close()))
}

// runDescriptors opens and uses a store with few file descriptors left. It fails or
// works; afterwards it is whole.
func runDescriptors(t *testing.T, engine string) {
	c := crashtest.Cell{Engine: engine, Layout: "arkiv", Dir: t.TempDir()}
	s := crashtest.NewContents(c.Layout, 1)
	url := c.URL("store", "memory", "64MiB")
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	require.NoError(t, s.Fill(t.Context(), db, 30))
	require.NoError(t, db.Close())
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	failed, worked := 0, 0
	for spare := uint64(1); spare <= 16; spare += 5 {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)) + spare, Max: was.Max}))
		db, err := store.Open(t.Context(), url, nil)
		if err == nil {
			_, err = s.Verify(t.Context(), db)
			err = errors.Join(err, db.Close())
		}
		if err == nil {
			worked++
		} else {
			failed++
			require.NotErrorIs(t, err, crashtest.ErrViolation)
		}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	}
	t.Logf("%s: failed with an error %d times, worked %d times", engine, failed, worked)
	db, err = store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	_, err = s.Verify(t.Context(), db)
	require.NoError(t, errors.Join(err, db.Close()))
}

// runMemory uses a store with next to no memory for caching.
func runMemory(t *testing.T, engine string) {
	c := crashtest.Cell{Engine: engine, Layout: "compact", Dir: t.TempDir()}
	s := crashtest.NewContents(c.Layout, 1)
	db, err := store.Open(t.Context(), c.URL("store"), &store.Options{Memory: 4 << 20})
	if errors.Is(err, store.ErrUnsupported) {
		// It says how much it needs.
		db, err = store.Open(t.Context(), c.URL("store"), &store.Options{Memory: 64 << 20})
	}
	require.NoError(t, err)
	require.NoError(t, s.Fill(t.Context(), db, 60))
	_, err = s.Verify(t.Context(), db)
	require.NoError(t, errors.Join(err, db.Close()))
}

// runClock: a clock that goes backwards does not make events earlier than those
// before them, whoever opens the store.
func runClock(t *testing.T, engine string) {
	c := crashtest.Cell{Engine: engine, Dir: t.TempDir()}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 2 {
		db, err := store.Open(t.Context(), c.URL("store", "memory", "64MiB"), nil)
		require.NoError(t, err)
		evs, err := db.Events(t.Context(), &store.EventOptions{Now: func() time.Time {
			now = now.Add(-time.Hour)
			return now
		}})
		require.NoError(t, err)
		for range 5 {
			_, err := evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
			require.NoError(t, err)
		}
		var last time.Time
		for e, err := range evs.Read(t.Context(), event.All(), nil) {
			require.NoError(t, err)
			require.False(t, e.Time.Before(last), "%s after %s", e.Time, last)
			last = e.Time
		}
		require.NoError(t, db.Close())
	}
}
