package driver

import "context"

// Prober is implemented by engines on which commits may have become impossible for good.
type Prober interface {
	// Probe returns why a commit would fail now: ErrMoved when the file of the database is
	// not where it was, or that a sync has failed. It is cheap and takes no connection.
	Probe(ctx context.Context) error
}
