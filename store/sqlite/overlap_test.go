package sqlite_test

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// TestSyncFails puts what cannot be synced in the place of the log's name: the append is
// not acknowledged, not read, and the last one until the database is opened again.
func TestSyncFails(t *testing.T) {
	path := t.TempDir() + "/varve.db"
	db, err := store.Open(t.Context(), "sqlite://"+path, nil)
	require.NoError(t, err)
	evs, err := db.Events(t.Context(), store.EventOptions{})
	require.NoError(t, err)
	first, err := evs.Append(t.Context(), []store.Event{{Type: "A"}}, nil)
	require.NoError(t, err)

	require.NoError(t, os.Rename(path+"-wal", path+"-aside"))
	require.NoError(t, os.Symlink(os.DevNull, path+"-wal"))
	_, err = evs.Append(t.Context(), []store.Event{{Type: "B"}}, nil)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = evs.Append(t.Context(), []store.Event{{Type: "C"}}, nil)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "open the database again")
	_, err = db.Entities(t.Context(), store.EntityOptions{})
	require.ErrorIs(t, err, syscall.EINVAL, "nor does anybody else write")
	head, err := evs.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, first[0], head)

	require.NoError(t, os.Rename(path+"-aside", path+"-wal"))
	require.ErrorIs(t, db.Close(), syscall.EINVAL, "what was not durable then may not be now")
	db, err = store.Open(t.Context(), "sqlite://"+path, nil)
	require.NoError(t, err)
	defer db.Close()
	evs, err = db.Events(t.Context(), store.EventOptions{})
	require.NoError(t, err)
	_, err = evs.Append(context.Background(), []store.Event{{Type: "C"}}, event.Unless(event.Of("C")))
	require.NoError(t, err)
}
