package sqlite

import (
	"context"

	"github.com/varvedb/varve/internal/sqlitewal"
)

// Check implements driver.Checker.
func (e *engine) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
	return sqlitewal.Check(ctx, e.DB, report)
}

// Reindex implements driver.Reindexer.
func (e *engine) Reindex(ctx context.Context) error { return sqlitewal.Reindex(ctx, e.DB) }
