package faulttest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// RunResources limits file descriptors, memory and write permission of an
// engine's stores. (crashtest.Full limits disk space, in a separate process.) A
// store on a read-only file system must be readable, unless noReadOnly gives
// the reason why not.
func RunResources(t *testing.T, engine, noReadOnly string) {
	t.Run("read-only file system", func(t *testing.T) { runReadOnly(t, engine, noReadOnly) })
	t.Run("file descriptors", func(t *testing.T) { runDescriptors(t, engine) })
	t.Run("memory", func(t *testing.T) { runMemory(t, engine) })
}

// subject is a store with known contents.
type subject struct {
	url      string
	contents *crashtest.Contents
}

// newSubject makes a store in a directory and closes it.
func newSubject(t *testing.T, engine, dir string) subject {
	c := crashtest.Cell{Engine: engine, Layout: "arkiv", Dir: dir}
	s := subject{c.URL("store", "memory", "64MiB"), crashtest.NewContents(c.Layout, 1)}
	db, err := store.Open(t.Context(), s.url, nil)
	require.NoError(t, err)
	require.NoError(t, s.contents.Fill(t.Context(), db, 30))
	require.NoError(t, db.Close())
	return s
}

// verify opens the store and compares every answer.
func (s subject) verify(t *testing.T, opts *store.Options) error {
	db, err := store.Open(t.Context(), s.url, opts)
	if err == nil {
		_, err = s.contents.Verify(t.Context(), db)
		err = errors.Join(err, db.Close())
	}
	return err
}

// runReadOnly: on a read-only file system a store cannot be opened for writing,
// and everything that can be read is right.
func runReadOnly(t *testing.T, engine, noReadOnly string) {
	if reason := crashtest.CanMount(); reason != "" {
		t.Skip(reason)
	}
	parent, err := os.MkdirTemp("", "varve-small-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(parent, 0o755)) // a server runs as another user
	disk, err := crashtest.NewDisk(filepath.Join(parent, "disk"), 200<<20)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(disk.Unmount(), os.RemoveAll(parent))) }()
	s := newSubject(t, engine, disk.Dir)
	require.NoError(t, disk.Remount("ro"))
	defer func() { require.NoError(t, disk.Remount("rw")) }()
	db, err := store.Open(t.Context(), s.url, nil)
	if err == nil {
		ents, openErr := db.Entities(t.Context(), nil)
		if err = openErr; err == nil {
			_, err = ents.Apply(t.Context(), entity.Block{Number: 1 << 31})
		}
		require.NoError(t, db.Close())
	}
	require.Error(t, err)
	if noReadOnly == "" {
		require.ErrorIs(t, err, store.ErrReadOnly)
		require.NoError(t, s.verify(t, &store.Options{ReadOnly: true}))
	} else {
		require.Error(t, s.verify(t, &store.Options{ReadOnly: true}), noReadOnly)
	}
}

// runDescriptors opens and uses a store with few file descriptors left.
// Operations may fail; afterwards the store must be sound.
func runDescriptors(t *testing.T, engine string) {
	s := newSubject(t, engine, t.TempDir())
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	for spare := uint64(1); spare <= 16; spare += 5 {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)) + spare, Max: was.Max}))
		err = s.verify(t, nil)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		require.NotErrorIs(t, err, crashtest.ErrViolation)
		t.Logf("%s with %d more file descriptors: %v", engine, spare, err)
	}
	require.NoError(t, s.verify(t, nil))
}

// runMemory uses a store with almost no memory for caching.
func runMemory(t *testing.T, engine string) {
	c := crashtest.Cell{Engine: engine, Layout: "compact", Dir: t.TempDir()}
	s := crashtest.NewContents(c.Layout, 1)
	db, err := store.Open(t.Context(), c.URL("store"), &store.Options{Memory: 4 << 20})
	if errors.Is(err, store.ErrUnsupported) {
		// The error says how much memory is needed.
		db, err = store.Open(t.Context(), c.URL("store"), &store.Options{Memory: 64 << 20})
	}
	require.NoError(t, err)
	require.NoError(t, s.Fill(t.Context(), db, 60))
	_, err = s.Verify(t.Context(), db)
	require.NoError(t, errors.Join(err, db.Close()))
}
