package driver

import (
	"context"
	"fmt"
	"time"
)

// The upkeep of a database: each interface is one ability that an engine may
// have. An engine without it does not implement the interface.

// Checkpointer is implemented by engines with a write-ahead log that the caller
// can move.
type Checkpointer interface {
	// Checkpoint moves the log's content into the database file. With truncate it
	// also waits for readers, until ctx is done, and empties the log.
	Checkpoint(ctx context.Context, truncate bool) (CheckpointResult, error)
}

// CheckpointResult describes a checkpoint that has ended.
type CheckpointResult struct {
	LogFrames  int64         // pages in the log when it ended
	DoneFrames int64         // pages of the log that are now in the database file
	Busy       bool          // a reader or the writer kept it from finishing
	Took       time.Duration // how long it ran
}

// Checkpoint runs a checkpoint. It fails with ErrUnsupported when the engine is
// no Checkpointer.
func Checkpoint(ctx context.Context, e Engine, truncate bool) (CheckpointResult, error) {
	if c, ok := e.(Checkpointer); ok {
		return c.Checkpoint(ctx, truncate)
	}
	return CheckpointResult{}, unsupported(e, "a checkpoint")
}

// Checker is implemented by engines that can look for damage in their own files.
type Checker interface {
	// Check reads the database's structures and calls report for each
	// contradiction, until report returns false. It returns in a few words
	// which checks completed and which checks this server or library lacks, or
	// "" when it can check nothing. An error that wraps ErrCorrupt is a finding
	// too. Any other error means that a part could not be read, and its text
	// has the remedy.
	Check(ctx context.Context, report func(problem string) bool) (did string, err error)
}

// Reindexer is implemented by engines that can rebuild the indexes of an
// existing database.
type Reindexer interface {
	// Reindex rebuilds every index from its table. It changes no table.
	Reindex(ctx context.Context) error
}

// Tuner is implemented by engines that have maintenance settings for each
// table, such as how often it is vacuumed.
type Tuner interface {
	// Tune sets the missing settings. It skips a table, until the next opening,
	// when this user may not change it or another session has it locked.
	Tune(ctx context.Context, tables []*Table) error
}

// Leaser is implemented by engines with a lock that ends with its holder. Other
// engines declare the gap "lease".
type Leaser interface {
	// Lease takes the database's only lease. The process that has it serves the
	// database, and may cache data that it has read. Lease does not wait: it
	// fails with ErrLocked while this process or another has the lease, and
	// with ErrReadOnly on a database that is open for reading. Other processes
	// may still write; the lease binds only processes that ask for it. It ends
	// with Release or with the process, however that ends. The caller releases
	// it before Close.
	Lease(ctx context.Context) (Lease, error)
}

// Lease is a lease that was taken. It is not safe for concurrent use.
type Lease interface {
	// Held fails when the lease was lost, for example with the connection that held
	// it. Another process may have it then. The caller releases it and takes another.
	Held(ctx context.Context) error

	Release() error
}

// TakeLease takes the database's lease. It fails with ErrUnsupported when the
// engine is no Leaser.
func TakeLease(ctx context.Context, e Engine) (Lease, error) {
	if l, ok := e.(Leaser); ok {
		return l.Lease(ctx)
	}
	return nil, unsupported(e, "a lease")
}

// Prober is implemented by engines that can notice, without running a
// statement, that commits will fail.
type Prober interface {
	// Probe returns why every commit would fail now: ErrMoved when the
	// database's file was moved or replaced, or the error of a sync. It is
	// cheap and takes no connection.
	Probe(ctx context.Context) error
}

// Probe returns the reason why every commit would fail now, or nil when the
// engine is no Prober.
func Probe(ctx context.Context, e Engine) error {
	if p, ok := e.(Prober); ok {
		return p.Probe(ctx)
	}
	return nil
}

// Ender is implemented by engines whose database can end by itself, because its
// server is a process that may be killed.
type Ender interface {
	// Ended returns a channel that is closed once the database has ended, by Close
	// or by itself. The caller then closes the engine, which returns the reason, and
	// may open it again. The channel is nil when this database cannot end by itself.
	Ended() <-chan struct{}
}

func unsupported(e Engine, what string) error {
	return fmt.Errorf("%s on %s: %w", what, e.Info().Name, ErrUnsupported)
}
