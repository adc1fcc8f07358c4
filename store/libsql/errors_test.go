package libsql

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestMapError(t *testing.T) {
	tests := []struct {
		name, native, text string
		is                 error
	}{
		{"busy", "failed to execute query BEGIN\nerror code = 2: Error executing statement: SQLite failure: `database is locked`",
			"libsql: database is locked", driver.ErrLocked},
		{"table locked", "failed to get next row\nerror code = 1: Error fetching next row: SQLite failure: `database table is locked`",
			"libsql: database table is locked", driver.ErrLocked},
		{"quotes in the message", "failed to execute query x\nerror code = 2: Error executing statement: SQLite failure: `near \"`\": syntax error`",
			"libsql: near \"`\": syntax error", nil},
		{"an error in the statement", "failed to execute query SELECT '\nerror code = 2: SQLite failure: `database is locked`'\nerror code = 1: Error executing statement: SQLite failure: `no such table: t`",
			"libsql: no such table: t", nil},
		{"a sentinel's words inside", "failed\nerror code = 1: Error executing statement: SQLite failure: `no such table: database is locked`",
			"libsql: no such table: database is locked", nil},
		{"bind", "failed to bind argument no. 1 with value x and type string\nerror code = 2: Wrong param value: invalid utf-8",
			"libsql: Wrong param value: invalid utf-8", nil},
		{"connect, not a database", "failed to connect to database\nerror code = 1: Unable to connect: Failed to connect to database: `Unable to open connection to local database file:a: 26`",
			"libsql: Unable to connect: Failed to connect to database: `Unable to open connection to local database file:a: 26`", driver.ErrCorrupt},
		{"connect, cannot open", "failed to connect to database\nerror code = 1: Unable to connect: Failed to connect to database: `Unable to open connection to local database file:a: 14`",
			"libsql: Unable to connect: Failed to connect to database: `Unable to open connection to local database file:a: 14`", nil},
		{"no message", "failed to connect to database\nerror code = 1", "libsql: 1", nil},
		{"not the library's", "something else", "something else", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			native := errors.New(tc.native)
			err := mapError(native)
			require.ErrorIs(t, err, native, "the cause is kept")
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
				tc.text = tc.is.Error() + ": " + tc.text
			}
			require.EqualError(t, err, tc.text)
		})
	}
}

func TestDeepSQL(t *testing.T) {
	r := snapshot(t, mustOpen(t, newPath(t), driver.Options{}))
	nested := func(n int) string {
		return "SELECT 1 WHERE " + strings.Repeat("(1 AND ", n) + "1" + strings.Repeat(")", n)
	}
	require.Equal(t, []int64{1}, column[int64](t, r, nested(25)))
	_, err := columnErr[int64](r, nested(200))
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.ErrorContains(t, err, "parser stack overflow")
}
