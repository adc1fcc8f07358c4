package libsql

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClosedOnce: what the library closes twice is closed once, and nothing stays open.
// When nothing is closed again any more, the library is mended and close_linux.go can go.
func TestClosedOnce(t *testing.T) {
	const visits = 20
	before, againBefore := connections()
	path := filepath.Join(t.TempDir(), "a.db")
	for range visits {
		pool, err := openPool(path, false)
		require.NoError(t, err)
		var n int
		require.NoError(t, pool.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&n))
		require.NoError(t, pool.Close())
	}
	require.Eventually(t, func() bool {
		open, again := connections()
		return open <= before && again-againBefore >= visits
	}, 10*time.Second, time.Millisecond)
}
