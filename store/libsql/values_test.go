package libsql

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestRefusedBeforeAnythingIsWritten(t *testing.T) {
	tests := []struct {
		name, text string
		args       []any
		is         error
	}{
		{"NUL", "INSERT INTO t VALUES (?)", []any{"a\x00b"}, driver.ErrUnsupported},
		{"not UTF-8", "INSERT INTO t VALUES (?)", []any{"\xff"}, driver.ErrUnsupported},
		{"two statements", "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", nil, driver.ErrUnsupported},
		{"too few arguments", "INSERT INTO t VALUES (?)", nil, nil},
		{"too many arguments", "INSERT INTO t VALUES (?)", []any{int64(1), int64(2)}, nil},
		{"rows", "SELECT 1", nil, nil},
	}
	e := mustOpen(t, newPath(t), driver.Options{})
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			write(t, e, func(tx driver.Tx) {
				mustExec(t, tx, "CREATE TABLE IF NOT EXISTS t (x TEXT)")
				_, err := tx.Exec(context.Background(), tc.text, tc.args...)
				require.Error(t, err)
				if tc.is != nil {
					require.ErrorIs(t, err, tc.is)
				}
				require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM t"))
			})
		})
	}
}

func TestDoneContext(t *testing.T) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	e := mustOpen(t, newPath(t), driver.Options{})
	_, err := e.Begin(done)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Snapshot(done)
	require.ErrorIs(t, err, context.Canceled)
	write(t, e, func(tx driver.Tx) {
		mustExec(t, tx, "CREATE TABLE t (x INTEGER)")
		_, err := tx.Exec(done, "INSERT INTO t VALUES (1)")
		require.ErrorIs(t, err, context.Canceled)
		_, err = tx.Query(done, "SELECT 1")
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []int64{0}, column[int64](t, tx, "SELECT count(*) FROM t"), "the transaction goes on")
	})
}
