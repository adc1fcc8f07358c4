package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/driver"
)

// TestLeaseLost: the lease ends with its connection, which its owner can tell,
// and no timeout for idle transactions ends it.
func TestLeaseLost(t *testing.T) {
	url := pgtest.NewURL(t)
	first, second := openTest(t, url, nil), openTest(t, url, nil)
	held, err := first.Lease(t.Context())
	require.NoError(t, err)
	conn := held.(*lease).conn
	var timeout string
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&timeout))
	require.Equal(t, "0", timeout)
	_, err = second.Lease(t.Context())
	require.ErrorIs(t, err, driver.ErrLocked)

	kill(t, url, int64(conn.PgConn().PID()))
	taken, err := second.Lease(t.Context())
	require.NoError(t, err)
	require.Error(t, held.Held(t.Context()))
	require.NoError(t, held.Release())
	require.NoError(t, taken.Held(t.Context()))
	require.NoError(t, taken.Release())
}

// TestLeaseReleased: a released lease can be taken at once.
func TestLeaseReleased(t *testing.T) {
	url := pgtest.NewURL(t)
	first, second := openTest(t, url, nil), openTest(t, url, nil)
	for range 100 { // the server saw a closed connection late only now and then, on a busy machine
		for _, e := range []driver.Leaser{first, second} {
			held, err := e.Lease(t.Context())
			require.NoError(t, err)
			require.NoError(t, held.Release())
		}
	}
}
