package driver

import "errors"

// The errors that callers branch on. An engine wraps its native error together
// with one of them, so that errors.Is finds the sentinel and errors.As the
// cause.
var (
	// ErrClosed: the database, transaction or reader is closed.
	ErrClosed = errors.New("closed")
	// ErrLocked: another process or connection holds the database.
	ErrLocked = errors.New("database is locked")
	// ErrConflict: a constraint or a concurrent transaction forbids the write.
	ErrConflict = errors.New("conflict")
	// ErrCorrupt: the file is not a database of this engine, or is damaged.
	ErrCorrupt = errors.New("damaged")
	// ErrDiskFull: no space is left. The transaction was rolled back.
	ErrDiskFull = errors.New("disk full")
	// ErrReadOnly: a write to a read-only database, directory or file system.
	ErrReadOnly = errors.New("read-only")
	// ErrNotExist: the database to open read-only does not exist.
	ErrNotExist = errors.New("database does not exist")
	// ErrMoved: the file of an open database was removed, replaced or renamed.
	// No further transaction commits to it.
	ErrMoved = errors.New("database moved, or removed")
	// ErrUnsupported: this engine or layout lacks the requested ability.
	ErrUnsupported = errors.New("not supported")
	// ErrReaderExpired: the snapshot was ended because it held back a
	// checkpoint for longer than Options.MaxReaderAge.
	ErrReaderExpired = errors.New("snapshot expired")
	// ErrMemory: the engine's memory budget, or the machine's memory, is too
	// small for the call.
	ErrMemory = errors.New("not enough memory")
	// ErrUnavailable: the server cannot be reached, or accepts no connection
	// now; the same call may succeed later.
	ErrUnavailable = errors.New("server unavailable")
	// ErrUnknownOutcome: the connection broke during a commit; read the head
	// again to learn whether it took effect.
	ErrUnknownOutcome = errors.New("commit outcome unknown")
	// ErrURL: an invalid URL or option; nothing was opened.
	ErrURL = errors.New("wrong URL")
)

// Of returns err marked as one of the kinds above, without repeating the kind
// in the text; nil if err is nil.
func Of(kind, err error) error {
	if err == nil {
		return nil
	}
	return ofKind{err, kind}
}

type ofKind struct {
	error
	kind error
}

// Unwrap lets errors.Is find both.
func (e ofKind) Unwrap() []error { return []error{e.error, e.kind} }
