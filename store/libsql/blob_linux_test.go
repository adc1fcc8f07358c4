package libsql

import (
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// TestEmptyBlobs reads empty blobs on stacks that the garbage collector shrinks, and so moves.
// Without blob_linux.go the runtime ends this test with "invalid pointer found on stack".
func TestEmptyBlobs(t *testing.T) {
	const readers, columns = 4, 50
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	text := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT x''" +
		strings.Repeat(", x''", columns-1) + " FROM n"
	e := mustOpen(t, newPath(t), driver.Options{})
	var done sync.WaitGroup
	for range readers {
		rows, err := snapshot(t, e).Query(t.Context(), text)
		require.NoError(t, err)
		done.Go(func() {
			defer rows.Close()
			readEmpty(t, rows, columns)
		})
	}
	done.Wait()
}

// readEmpty reads rows on a stack far larger than it needs.
func readEmpty(t *testing.T, rows driver.Rows, columns int) {
	values, places := make([][]byte, columns), make([]any, columns)
	for i := range values {
		values[i], places[i] = []byte("something"), &values[i]
	}
	for rows.Next() {
		growStack(50)
		if err := rows.Scan(places...); err != nil {
			t.Error(err)
			return
		}
		for i, v := range values {
			if v == nil || len(v) > 0 {
				t.Errorf("column %d: want an empty blob, got %q", i, v)
				return
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// growStack uses a kilobyte of stack times depth.
//
//go:noinline
func growStack(depth int) byte {
	var frame [1024]byte
	if depth > 0 {
		frame[depth] = growStack(depth - 1)
	}
	return frame[depth/2]
}
