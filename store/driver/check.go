package driver

import "context"

// Checker is implemented by engines that can look for damage in their own files.
type Checker interface {
	// Check reads the database's structures and calls report with each
	// contradiction that it finds, until report returns false. It returns what it
	// did, in a few words, or "" when it can do nothing here. An error means that
	// it could not go on; one that wraps ErrCorrupt is a finding as well.
	Check(ctx context.Context, report func(problem string) bool) (did string, err error)
}

// Reindexer is implemented by engines whose indexes can be made anew from their
// tables.
type Reindexer interface {
	// Reindex makes every index of the database anew. It changes no table.
	Reindex(ctx context.Context) error
}
