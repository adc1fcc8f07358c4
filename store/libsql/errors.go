package libsql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// nativeError is an error of the library by SQLite's message alone: the
// library's own text repeats the statement or a bound value, however long.
type nativeError struct {
	message string
	cause   error
}

func (e *nativeError) Error() string { return "libsql: " + e.message }

// Unwrap returns the library's error.
func (e *nativeError) Unwrap() error { return e.cause }

// mapError joins the library's messages with the contract's sentinels.
func mapError(err error) error {
	message, ok := nativeMessage(err.Error())
	if !ok {
		return err
	}
	native := &nativeError{message: message, cause: err}
	if sentinel := sentinel(message); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, native)
	}
	return native
}

// nativeMessage finds SQLite's message in an error of the library, such as
//
//	failed to execute query INSERT …
//	error code = 2: Error executing statement: SQLite failure: `UNIQUE constraint failed: t.a`
//
// The code is the library's own and says which of its functions failed.
func nativeMessage(text string) (string, bool) {
	_, text, ok := cutLast(text, "\nerror code = ")
	if !ok {
		return "", false
	}
	if _, message, ok := strings.Cut(text, ": "); ok {
		text = message
	}
	if _, message, ok := strings.Cut(text, "SQLite failure: `"); ok {
		text = strings.TrimSuffix(message, "`")
	}
	return text, true
}

// sentinel finds the error of the contract. When the library cannot open a file
// its message ends in SQLite's result code.
func sentinel(message string) error {
	if strings.Contains(message, "Unable to open connection to local database") {
		_, code, _ := cutLast(strings.TrimSuffix(message, "`"), ": ")
		n, _ := strconv.Atoi(code)
		return sqlitewal.Sentinel(n, 0)
	}
	return guard.Sentinel(message)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
