package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// TestSyncFails puts what cannot be synced in the place of the descriptor by which the log is: the
// append is not acknowledged, not read, and the last one until the database is opened again.
func TestSyncFails(t *testing.T) {
	path := t.TempDir() + "/varve.db"
	db, err := store.Open(t.Context(), "sqlite://"+path, nil)
	require.NoError(t, err)
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	before := descriptors(path + "-wal")
	first, err := evs.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
	require.NoError(t, err)
	added := slices.DeleteFunc(descriptors(path+"-wal"), func(fd int) bool { return slices.Contains(before, fd) })
	require.Len(t, added, 1, "the one that the first sync has opened")

	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.NoError(t, unix.Dup2(int(null.Fd()), added[0]))
	_, err = evs.Append(t.Context(), []event.Event{{Type: "B"}}, nil)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = evs.Append(t.Context(), []event.Event{{Type: "C"}}, nil)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "open the database again")
	_, err = db.Entities(t.Context(), nil)
	require.ErrorIs(t, err, syscall.EINVAL, "nor does anybody else write")
	head, err := evs.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, first[0], head)
	require.ErrorIs(t, driver.Probe(t.Context(), db.Engine()), syscall.EINVAL, "and the database says so")

	require.ErrorIs(t, db.Close(), syscall.EINVAL, "what was not durable then may not be now")
	db, err = store.Open(t.Context(), "sqlite://"+path, nil)
	require.NoError(t, err)
	defer db.Close()
	evs, err = db.Events(t.Context(), nil)
	require.NoError(t, err)
	_, err = evs.Append(context.Background(), []event.Event{{Type: "C"}}, event.Unless(event.Of("C")))
	require.NoError(t, err)
}

// descriptors returns this process's descriptors of a file.
func descriptors(path string) (list []int) {
	for fd := range 1024 {
		if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && target == path {
			list = append(list, fd)
		}
	}
	return list
}
