package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// errInjected is what a test has a step fail with.
var errInjected = errors.New("injected")

// testReaders is how many readers the tests' databases have.
const testReaders = 3

// open opens a database with a configuration that is complete but for the hooks.
func open(t *testing.T, cfg sqlstore.Config) *sqlstore.DB {
	t.Helper()
	pool, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	cfg.Pool, cfg.Options.Readers = pool, testReaders
	cfg.BeginWrite, cfg.BeginRead = "BEGIN IMMEDIATE", "BEGIN"
	cfg.Codec, cfg.Bulk = sqlstore.OrderedBlob{}, &sqlstore.MultiRow{}
	db, err := sqlstore.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// TestSeveralOrNone: when one of several readers cannot be opened, none is, and
// the places of all are free again.
func TestSeveralOrNone(t *testing.T) {
	connections, fail := 0, false
	db := open(t, sqlstore.Config{Setup: func(context.Context, *sqlstore.Conn, bool) error {
		if connections++; fail && connections == 3 { // the writer, one reader, the next
			return errInjected
		}
		return nil
	}})
	fail = true
	_, err := db.Snapshots(t.Context(), testReaders)
	require.ErrorIs(t, err, errInjected)
	for range 2 {
		list, err := db.Snapshots(t.Context(), testReaders)
		require.NoError(t, err)
		require.Len(t, list, testReaders)
		require.NoError(t, driver.CloseReaders(list))
	}
}

// TestRefusedCommit: a commit that the engine refuses is rolled back at once, and
// not by a caller who may have forgotten it.
func TestRefusedCommit(t *testing.T) {
	refuse := false
	db := open(t, sqlstore.Config{BeforeCommit: func(context.Context, *sqlstore.Conn) error {
		if refuse {
			return errInjected
		}
		return nil
	}})
	write := func(text string, want error) {
		tx, err := db.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback()) }()
		_, err = tx.Exec(t.Context(), text)
		require.NoError(t, err)
		require.ErrorIs(t, tx.Commit(t.Context()), want)
		_, err = tx.Exec(t.Context(), text)
		require.ErrorIs(t, err, driver.ErrClosed)
	}
	write("CREATE TABLE t (n INTEGER)", nil)
	refuse = true
	write("INSERT INTO t VALUES (1)", errInjected)
	refuse = false
	write("INSERT INTO t VALUES (2)", nil)
	r, err := db.View(t.Context())
	require.NoError(t, err)
	var sum int64
	require.NoError(t, driver.QueryRow(t.Context(), r, "SELECT sum(n) FROM t", nil, &sum))
	require.Equal(t, int64(2), sum)
	require.NoError(t, r.Close())
}

// TestLevelUnknown: a writer's connection that could not be switched between
// levels of durability is not used again, because its level is unknown.
func TestLevelUnknown(t *testing.T) {
	connections, fail := 0, false
	db := open(t, sqlstore.Config{
		Setup: func(context.Context, *sqlstore.Conn, bool) error { connections++; return nil },
		Late: func(context.Context, *sqlstore.Conn, bool) error {
			if fail {
				return errInjected
			}
			return nil
		},
	})
	begin := func(begin func(context.Context) (driver.Tx, error)) error {
		tx, err := begin(t.Context())
		if err == nil {
			err = tx.Rollback()
		}
		return err
	}
	require.NoError(t, begin(db.BeginLate))
	require.NoError(t, begin(db.Begin))
	require.Equal(t, 1, connections, "a connection that was switched is used again")
	fail = true
	require.ErrorIs(t, begin(db.BeginLate), errInjected)
	fail = false
	require.NoError(t, begin(db.Begin))
	require.Greater(t, connections, 1)
}
