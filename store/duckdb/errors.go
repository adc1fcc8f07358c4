package duckdb

import (
	"errors"
	"fmt"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/varvedb/varve/store/driver"
)

// mapError joins a native error with the contract's sentinels, and with advice
// where there is no sentinel.
func mapError(err error) error {
	var native *duckdb.Error
	if !errors.As(err, &native) {
		return err
	}
	if isConflict(native) {
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	}
	if !namesCause(native.Type) {
		return err
	}
	for i, c := range causes {
		if strings.Contains(native.Msg, c.text) {
			if i == 0 && strings.Contains(native.Msg, noSpace) {
				err = fmt.Errorf("%w: %w", driver.ErrDiskFull, err) // the disk is the cause of its failure
			}
			return c.join(err)
		}
	}
	return err
}

// isConflict reports whether a constraint or another transaction forbade a
// write. The type alone is not enough: a failure at commit is a transaction's
// whatever its cause, and an appender's error has no type. The text after the
// reason may be data, so only the beginning counts.
func isConflict(err *duckdb.Error) bool {
	if err.Type == duckdb.ErrorTypeConstraint {
		return true
	}
	text := err.Msg
	for _, prefix := range []string{"TransactionContext Error: ", "Failed to commit: ", "Failed to append: ", "Constraint Error: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	for _, reason := range []string{
		"Duplicate key", "PRIMARY KEY or UNIQUE", "NOT NULL constraint", "CHECK constraint",
		"Conflict on", "Transaction conflict", "Catalog write-write conflict", "write-write conflict",
	} {
		if strings.HasPrefix(text, reason) {
			return true
		}
	}
	return false
}

// namesCause reports whether errors of a type are about files, memory or the
// engine's state, so that their text names the cause. Other errors repeat
// statements and data.
func namesCause(t duckdb.ErrorType) bool {
	switch t {
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeTransaction, duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal,
		duckdb.ErrorTypeInvalidInput, duckdb.ErrorTypeInvalid, duckdb.ErrorTypeOutOfMemory,
		duckdb.ErrorTypePermission, duckdb.ErrorTypeSerialization:
		return true
	}
	return false
}

// cause is a piece of a message and its meaning.
type cause struct {
	text     string
	sentinel error  // may be nil
	advice   string // may be empty
}

func (c cause) join(err error) error {
	switch {
	case c.sentinel == nil:
		return fmt.Errorf("%s: %w", c.advice, err)
	case c.advice == "":
		return fmt.Errorf("%w: %w", c.sentinel, err)
	}
	return fmt.Errorf("%w: %s: %w", c.sentinel, c.advice, err)
}

const (
	reopenAdvice  = "the engine gave up after an earlier error; close the database, open it again and verify it"
	abortedAdvice = "an earlier statement failed or was cancelled; roll back, or close the snapshot, and begin again"
	replayAdvice  = "the log of a process that did not close the database must be written into it first; open it once without read-only"
	memoryAdvice  = "the memory budget is too small for the indexes or the query; open the database with more"
)

// noSpace is the system's text for a full disk.
const noSpace = "No space left on device"

// causes are in the order in which they are looked for: what may be only the
// consequence of another comes after it.
var causes = []cause{
	{text: "database has been invalidated", sentinel: driver.ErrClosed, advice: reopenAdvice},
	{text: "Current transaction is aborted", advice: abortedAdvice},
	{text: "Could not set lock on file", sentinel: driver.ErrLocked},
	{text: noSpace, sentinel: driver.ErrDiskFull},
	{text: "Disk quota exceeded", sentinel: driver.ErrDiskFull},
	{text: "max_temp_directory_size", sentinel: driver.ErrDiskFull},
	{text: "failed to pin block", sentinel: driver.ErrMemory, advice: memoryAdvice},
	{text: "failed to allocate data", sentinel: driver.ErrMemory, advice: memoryAdvice},
	{text: "could not allocate block", sentinel: driver.ErrMemory, advice: memoryAdvice},
	{text: "in read-only mode: database does not exist", sentinel: driver.ErrNotExist},
	{text: "attached in read-only mode", sentinel: driver.ErrReadOnly},
	{text: "launched in read-only mode", sentinel: driver.ErrReadOnly},
	{text: "Permission denied", sentinel: driver.ErrReadOnly},
	{text: "Read-only file system", sentinel: driver.ErrReadOnly},
	{text: "Bad file descriptor", sentinel: driver.ErrReadOnly, advice: replayAdvice}, // writing to a file opened for reading
	{text: "read a database file with version number", sentinel: driver.ErrUnsupported},
	{text: "not a valid DuckDB database file", sentinel: driver.ErrCorrupt},
	{text: "Corrupt database file", sentinel: driver.ErrCorrupt},
	{text: "Corrupt WAL file", sentinel: driver.ErrCorrupt},
	{text: "Could not read enough bytes from file", sentinel: driver.ErrCorrupt},
	{text: "Failure while replaying WAL file", sentinel: driver.ErrCorrupt},
}

// isBusy reports whether a checkpoint gave way to a transaction.
func isBusy(err error) bool {
	var native *duckdb.Error
	return errors.As(err, &native) && strings.Contains(native.Msg, "Cannot CHECKPOINT")
}
