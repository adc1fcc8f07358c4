package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runClose: closing an engine ends its readers, later calls are refused, and
// the database can be opened again.
var runClose = parts[Harness]{
	{"refuses calls", testClosed},
	{"ends snapshots", testCloseEndsSnapshots},
	{"waits for the transaction", testCloseWaits},
	{"wakes who waits", testCloseWakes},
	{"reopen", testReopen},
}.run

// requireClosed checks that every method of a closed engine returns ErrClosed.
func requireClosed(t *testing.T, e driver.Engine) {
	t.Helper()
	ctx := context.Background()
	_, err := e.Begin(ctx)
	require.ErrorIs(t, err, driver.ErrClosed, "Begin")
	_, err = e.Snapshot(ctx)
	require.ErrorIs(t, err, driver.ErrClosed, "Snapshot")
	_, err = e.Settings(ctx)
	require.ErrorIs(t, err, driver.ErrClosed, "Settings")
	_, err = e.Stats(ctx)
	require.ErrorIs(t, err, driver.ErrClosed, "Stats")
	for _, truncate := range []bool{false, true} {
		if _, err = driver.Checkpoint(ctx, e, truncate); !errors.Is(err, driver.ErrUnsupported) {
			require.ErrorIs(t, err, driver.ErrClosed, "Checkpoint")
		}
	}
	require.NotEmpty(t, e.Info().Name)
	require.NotEmpty(t, e.Capabilities().Durabilities)
}

func testClosed(t *testing.T, h Harness) {
	db := openDB(t, h.NewURL(t))
	e := db.Engine()
	newNumbers(t, e, "numbers")
	inView(t, e, func(driver.Querier) {})
	closeDB(t, db)
	requireClosed(t, e)
	closeDB(t, db)
	require.NoError(t, e.Close())
	requireClosed(t, e)
}

func testCloseEndsSnapshots(t *testing.T, h Harness) {
	db := openDB(t, h.NewURL(t))
	e := db.Engine()
	newTable(t, e, true, itemsTable("items"), itemRows(0, 100)...)
	idle, reading := snapshot(t, e), snapshot(t, e)
	rows := must(reading.Query(context.Background(), "SELECT id FROM items"))(t)
	require.True(t, rows.Next())
	closeDB(t, db)

	refuses(t, driver.ErrClosed)(idle.Query(context.Background(), "SELECT id FROM items"))
	for rows.Next() {
		continue // rows that were fetched before may follow
	}
	require.ErrorIs(t, rows.Err(), driver.ErrClosed)
	require.NoError(t, rows.Close())
	require.NoError(t, idle.Close())
	require.NoError(t, reading.Close())
}

func testCloseWaits(t *testing.T, h Harness) {
	url := h.NewURL(t)
	db := openDB(t, url)
	table := newNumbers(t, db.Engine(), "numbers")
	tx := begin(t, db.Engine())
	insert(t, tx, table, 1, 1)
	closed := async(db.Close)
	requireWaits(t, closed)
	insert(t, tx, table, 2, 2)
	require.NoError(t, tx.Commit(context.Background()), "the transaction it waits for may commit")
	require.NoError(t, <-closed)

	e := h.open(t, url, nil).Engine()
	requireCount(t, e, table, 2)
}

// testCloseWakes: a call that waits for a reader or for the writer returns
// ErrClosed.
func testCloseWakes(t *testing.T, h Harness) {
	db := must(store.Open(t.Context(), h.NewURL(t), &store.Options{Readers: 1}))(t)
	e := db.Engine()
	newNumbers(t, e, "numbers")
	tx, r := begin(t, e), snapshot(t, e)
	writer := async(func() error { _, err := e.Begin(context.Background()); return err })
	reader := async(func() error { _, err := e.Snapshot(context.Background()); return err })
	requireWaits(t, writer)
	requireWaits(t, reader)
	closed := async(db.Close)
	require.ErrorIs(t, <-reader, driver.ErrClosed)
	require.NoError(t, tx.Rollback())
	require.ErrorIs(t, <-writer, driver.ErrClosed)
	require.NoError(t, <-closed)
	require.NoError(t, r.Close())
}

func testReopen(t *testing.T, h Harness) {
	url := h.NewURL(t)
	table := itemsTable("items")
	db := openDB(t, url)
	newTable(t, db.Engine(), true, table)
	closeDB(t, db)
	for i := range 3 {
		db := openDB(t, url)
		requireItems(t, db.Engine(), table, 10*i)
		commitRows(t, db.Engine(), table, itemRows(10*i, 10*i+10)...)
		tx := begin(t, db.Engine())
		insert(t, tx, table, itemRows(1000, 1010)...)
		require.NoError(t, tx.Rollback())
		closeDB(t, db)
	}
	e := h.open(t, url, nil).Engine()
	requireItems(t, e, table, 30)
}
