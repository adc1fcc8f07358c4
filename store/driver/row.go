package driver

import (
	"context"
	"errors"
)

// ErrNoRows: QueryRow found no row.
var ErrNoRows = errors.New("no row")

// QueryRow is Statement.Row for a text without hints.
func QueryRow(ctx context.Context, q Querier, text string, args []any, dest ...any) error {
	return Statement{Text: text}.Row(ctx, q, args, dest...)
}

// QueryRows is Statement.Each for a text without hints.
func QueryRows(ctx context.Context, q Querier, text string, args []any, f func(rows Rows) error) error {
	return Statement{Text: text}.Each(ctx, q, args, f)
}

// QueryInt returns the one integer that a query answers with.
func QueryInt(ctx context.Context, q Querier, text string, args ...any) (n int64, err error) {
	err = QueryRow(ctx, q, text, args, &n)
	return n, err
}
