package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// runOverlap: a transaction that becomes durable later behaves like any other.
// It does not affect the settings or the next transaction.
func runOverlap(t *testing.T, h Harness) {
	ctx := context.Background()
	db := h.open(t, h.NewURL(t), nil)
	e, ok := db.Engine().(driver.Overlapper)
	if !ok {
		t.Skip("a commit is durable when it returns")
	}
	before := must(db.Engine().Settings(ctx))(t)
	table := newTable(t, db.Engine(), false, numbersTable("t"))
	for n := range int64(3) {
		tx := must(e.BeginVisible(ctx))(t)
		insert(t, tx, table, n, n)
		require.NoError(t, tx.Commit(ctx))
		commitRows(t, db.Engine(), table, n, n)
		requireCount(t, db.Engine(), table, 2*n+2)
		require.NoError(t, e.Sync(ctx))
	}
	tx := must(e.BeginVisible(ctx))(t)
	require.NoError(t, tx.Rollback())
	after := must(db.Engine().Settings(ctx))(t)
	require.Equal(t, before, after)
	stats := must(db.Engine().Stats(ctx))(t)
	require.Equal(t, int64(3), *stats.Syncs)
	closeDB(t, db)
	require.NoError(t, e.Sync(ctx), "all is durable")
	refuses(t, driver.ErrClosed)(e.BeginVisible(ctx))
}
