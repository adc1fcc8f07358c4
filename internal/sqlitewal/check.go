package sqlitewal

import (
	"context"

	"github.com/varvedb/varve/internal/sqlstore"
)

// Check implements driver.Checker for an engine of SQLite's kin.
func Check(ctx context.Context, db *sqlstore.DB, report func(problem string) bool) (did string, err error) {
	return sqlstore.IntegrityCheck(ctx, db, report)
}

// Reindex makes every index anew.
func Reindex(ctx context.Context, db *sqlstore.DB) error { return sqlstore.Reindex(ctx, db) }
