package duckdb

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// tx is the write transaction. It remembers that a statement failed: DuckDB
// then rolls back at COMMIT and reports success, which must not pass for a
// commit.
type tx struct {
	driver.Tx
	failed error // the first failure
}

func (t *tx) note(err error) error {
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// Exec implements driver.Tx.
func (t *tx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	n, err := t.Tx.Exec(ctx, text, args...)
	return n, t.note(err)
}

// Query implements driver.Querier.
func (t *tx) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	rows, err := t.Tx.Query(ctx, text, args...)
	return rows, t.note(err)
}

// Insert implements driver.Tx.
func (t *tx) Insert(ctx context.Context, table *driver.Table, rows []any) error {
	return t.note(t.Tx.Insert(ctx, table, rows))
}

// Update implements driver.Tx.
func (t *tx) Update(ctx context.Context, u *driver.Update, value any, keys []any) error {
	return t.note(t.Tx.Update(ctx, u, value, keys))
}

// Commit implements driver.Tx.
func (t *tx) Commit(ctx context.Context) error {
	if t.failed != nil && ctx.Err() == nil && t.aborted(ctx) {
		_ = t.Rollback()
		return fmt.Errorf("commit: rolled back, because a statement had failed: %w", t.failed)
	}
	return t.Tx.Commit(ctx)
}

// aborted tells whether the failure ended the transaction: one that the parser
// found did not.
func (t *tx) aborted(ctx context.Context) bool {
	rows, err := t.Tx.Query(ctx, "SELECT 1")
	if err != nil {
		return true
	}
	return rows.Close() != nil
}
