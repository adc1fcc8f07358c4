package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runClose: the end of an engine, and what is there when it is opened again.
func runClose(t *testing.T, h Harness) {
	t.Run("refuses calls", func(t *testing.T) { testClosed(t, h) })
	t.Run("ends snapshots", func(t *testing.T) { testCloseEndsSnapshots(t, h) })
	t.Run("waits for the transaction", func(t *testing.T) { testCloseWaits(t, h) })
	t.Run("wakes who waits", func(t *testing.T) { testCloseWakes(t, h) })
	t.Run("reopen", func(t *testing.T) { testReopen(t, h) })
}

// requireClosed checks that every method of a closed engine says so.
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
	db := must(store.Open(t.Context(), h.NewURL(t), nil))(t)
	e := db.Engine()
	newTable(t, e, false, numbersTable("numbers"))
	inView(t, e, func(driver.Querier) {})
	require.NoError(t, db.Close())
	requireClosed(t, e)
	require.NoError(t, db.Close())
	require.NoError(t, e.Close())
	requireClosed(t, e)
}

func testCloseEndsSnapshots(t *testing.T, h Harness) {
	db := must(store.Open(t.Context(), h.NewURL(t), nil))(t)
	e := db.Engine()
	table := newTable(t, e, true, itemsTable("items"))
	inTx(t, e, func(tx driver.Tx) { insert(t, tx, table, itemRows(0, 100)...) })
	idle, reading := snapshot(t, e), snapshot(t, e)
	rows := must(reading.Query(context.Background(), "SELECT id FROM items"))(t)
	require.True(t, rows.Next())
	require.NoError(t, db.Close())

	_, err := idle.Query(context.Background(), "SELECT id FROM items")
	require.ErrorIs(t, err, driver.ErrClosed)
	for rows.Next() {
		continue // rows that were fetched before may still come
	}
	require.ErrorIs(t, rows.Err(), driver.ErrClosed)
	require.NoError(t, rows.Close())
	require.NoError(t, idle.Close())
	require.NoError(t, reading.Close())
}

func testCloseWaits(t *testing.T, h Harness) {
	url := h.NewURL(t)
	db := must(store.Open(t.Context(), url, nil))(t)
	table := newTable(t, db.Engine(), true, numbersTable("numbers"))
	tx := begin(t, db.Engine())
	insert(t, tx, table, int64(1), int64(1))
	closed := async(db.Close)
	requireWaits(t, closed)
	insert(t, tx, table, int64(2), int64(2))
	require.NoError(t, tx.Commit(context.Background()), "the transaction it waits for may commit")
	require.NoError(t, <-closed)

	e := h.open(t, url, nil).Engine()
	inView(t, e, func(q driver.Querier) { require.EqualValues(t, 2, countRows(t, q, table)) })
}

// testCloseWakes: who waits for a reader or for the writer gets ErrClosed and
// does not wait for ever.
func testCloseWakes(t *testing.T, h Harness) {
	db := must(store.Open(t.Context(), h.NewURL(t), &store.Options{Readers: 1}))(t)
	e := db.Engine()
	newTable(t, e, false, numbersTable("numbers"))
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
	db := must(store.Open(t.Context(), url, nil))(t)
	newTable(t, db.Engine(), true, table)
	require.NoError(t, db.Close())
	for i := range 3 {
		db := must(store.Open(t.Context(), url, nil))(t)
		inView(t, db.Engine(), func(q driver.Querier) { requireItems(t, q, table, 10*i) })
		inTx(t, db.Engine(), func(tx driver.Tx) { insert(t, tx, table, itemRows(10*i, 10*i+10)...) })
		tx := begin(t, db.Engine())
		insert(t, tx, table, itemRows(1000, 1010)...)
		require.NoError(t, tx.Rollback())
		require.NoError(t, db.Close())
	}
	e := h.open(t, url, nil).Engine()
	inView(t, e, func(q driver.Querier) { requireItems(t, q, table, 30) })
}
