package libsql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// nativeError has only SQLite's message from an error of the library, because
// the library's text repeats the statement or a bound value, however long.
type nativeError struct {
	message string
	cause   error
}

func (e *nativeError) Error() string { return "libsql: " + e.message }

// Unwrap returns the library's error.
func (e *nativeError) Unwrap() error { return e.cause }

// mapError wraps the library's messages with the driver package's errors.
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

// nativeMessage extracts SQLite's message from an error of the library, such as
//
//	failed to execute query INSERT …
//	error code = 2: Error executing statement: SQLite failure: `UNIQUE constraint failed: t.a`
//
// The code is not SQLite's; it identifies the library's function that failed.
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

// sentinel returns the driver package's error for a message. When the library
// cannot open a file, its message ends with SQLite's result code.
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
