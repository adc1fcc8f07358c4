package duckdb

import (
	"errors"
	"fmt"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

// Messages as DuckDB 1.5.5 writes them. Those that a test can cause are tested
// there as well.
func TestMapError(t *testing.T) {
	sentinels := []error{
		driver.ErrClosed, driver.ErrLocked, driver.ErrConflict, driver.ErrCorrupt, driver.ErrDiskFull,
		driver.ErrReadOnly, driver.ErrNotExist, driver.ErrUnsupported, driver.ErrUnknownOutcome,
	}
	for _, c := range []struct {
		native duckdb.Error
		is     error
		says   string
	}{
		{duckdb.Error{Type: duckdb.ErrorTypeTransaction, Msg: `TransactionContext Error: Failed to commit: Could not write file "x.duckdb.wal": No space left on device`}, driver.ErrDiskFull, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeIO, Msg: `IO Error: Could not write file "x.duckdb": No space left on device`}, driver.ErrDiskFull, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeTransaction, Msg: `TransactionContext Error: Failed to commit: PRIMARY KEY or UNIQUE constraint violation: duplicate key "77"`}, driver.ErrConflict, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeTransaction, Msg: "TransactionContext Error: Conflict on update!"}, driver.ErrConflict, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeConstraint, Msg: `Constraint Error: Duplicate key "k: No space left on device" violates unique constraint.`}, driver.ErrConflict, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeInvalid, Msg: `Failed to append: Duplicate key "k: Permission denied" violates unique constraint.`}, driver.ErrConflict, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeTransaction, Msg: "TransactionContext Error: Failed to commit: failed to pin block of size 256.0 KiB (63.8 MiB/64.0 MiB used)"}, nil, "memory budget"},
		{duckdb.Error{Type: duckdb.ErrorTypeFatal, Msg: "FATAL Error: Failed: database has been invalidated because of a previous fatal error."}, driver.ErrClosed, "open it again and verify"},
		{duckdb.Error{Type: duckdb.ErrorTypeIO, Msg: `IO Error: Could not set lock on file "x": Conflicting lock is held in y (PID 7).`}, driver.ErrLocked, "PID 7"},
		{duckdb.Error{Type: duckdb.ErrorTypeIO, Msg: `IO Error: Cannot open file "x": Permission denied`}, driver.ErrReadOnly, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeInvalidInput, Msg: `Invalid Input Error: Cannot execute statement of type "CREATE" on database "x" which is attached in read-only mode!`}, driver.ErrReadOnly, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeConversion, Msg: "Conversion Error: Could not convert string 'No space left on device' to INT64"}, nil, ""},
		{duckdb.Error{Type: duckdb.ErrorTypeParser, Msg: "Parser Error: syntax error at or near \"Corrupt WAL file\""}, nil, ""},
	} {
		cause := fmt.Errorf("database/sql/driver: %w", &c.native)
		err := mapError(cause)
		require.ErrorIs(t, err, cause, "the cause is kept")
		require.ErrorContains(t, err, c.says)
		for _, s := range sentinels {
			require.Equal(t, errors.Is(s, c.is), errors.Is(err, s), "%v: %v", c.native.Msg, s)
		}
	}
	gaveUp := mapError(&duckdb.Error{Type: duckdb.ErrorTypeFatal, Msg: `FATAL Error: Failed: database has been invalidated because of a previous fatal error. Original error: "Could not write file "x": No space left on device"`})
	require.ErrorIs(t, gaveUp, driver.ErrClosed)
	require.ErrorIs(t, gaveUp, driver.ErrDiskFull, "what the engine gave up for")
	plain := errors.New("conflict on update")
	require.Equal(t, plain, mapError(plain), "errors of others are left alone")
}
