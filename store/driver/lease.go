package driver

import "context"

// Leaser is implemented by engines that can tell processes apart which of them
// is the one that serves a database: one that keeps in memory what it has read
// must know that nobody else writes. Other engines declare the gap "lease".
type Leaser interface {
	// Lease takes the database's one lease. It fails with ErrLocked when somebody
	// has it, in this process or another, with ErrReadOnly on a database that is
	// open for reading, and with ErrUnsupported where the system has no such
	// locks. It does not wait, and keeps nobody from writing who does not ask for
	// it. It ends with Release and with the process, however that ends. The
	// caller releases it before Close.
	Lease(ctx context.Context) (Lease, error)
}

// Lease is a lease that was taken. It is not safe for concurrent use.
type Lease interface {
	// Held fails when the lease was lost, as with the connection that held it:
	// somebody else may have it then. The caller releases it and takes another.
	Held(ctx context.Context) error

	Release() error
}
