package sqlitego_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// endless has its first row at once, and then one for each number.
const endless = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT n FROM numbers"

// TestCancelledQuery: the end of a context ends its queries, before the first
// row and between rows, and the view can still be read.
func TestCancelledQuery(t *testing.T) {
	db, err := store.Open(t.Context(), harness.NewURL(t), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	view, err := db.Engine().Snapshot(t.Context())
	require.NoError(t, err)
	defer view.Close()
	for _, text := range []string{endless, endless + " WHERE n < 0"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		rows, err := view.Query(ctx, text)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			require.NoError(t, rows.Close())
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	rows, err := view.Query(t.Context(), "SELECT 1")
	require.NoError(t, err)
	require.True(t, rows.Next())
	require.NoError(t, rows.Close())
}
