package driver

import "context"

// Checker is implemented by engines that can look for damage in their own files.
type Checker interface {
	// Check reads the database's structures and calls report with each
	// contradiction that it finds, until report returns false. It returns what ran
	// to its end, in a few words, and with it what this server or library has no
	// check of, or "" when it can do nothing here. An error that wraps ErrCorrupt is
	// a finding as well; any other means that something could not be looked at, and
	// says what to do so that it can be.
	Check(ctx context.Context, report func(problem string) bool) (did string, err error)
}

// Reindexer is implemented by engines whose indexes can be made anew from their
// tables.
type Reindexer interface {
	// Reindex makes every index of the database anew. It changes no table.
	Reindex(ctx context.Context) error
}
