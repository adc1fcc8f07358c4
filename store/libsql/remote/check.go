package remote

import (
	"context"

	"github.com/varvedb/varve/internal/sqlstore"
)

// Check implements driver.Checker: the server reads its whole database within the
// parameter timeout.
func (e *engine) Check(ctx context.Context, report func(problem string) bool) (did string, err error) {
	return sqlstore.IntegrityCheck(ctx, e.DB, report)
}

// Reindex implements driver.Reindexer.
func (e *engine) Reindex(ctx context.Context) error { return sqlstore.Reindex(ctx, e.DB) }
