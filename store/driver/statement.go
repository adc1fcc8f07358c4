package driver

import (
	"context"
	"errors"
)

// Statement is a query with hints about how it is used. Engines that cannot use
// a hint ignore it.
type Statement struct {
	Text string

	// PlanByValue: the best plan depends on the arguments. Engines that keep plans
	// make one for each run, and for what follows in the transaction.
	PlanByValue bool

	// Final: it is the last query of its view. An engine whose server is far away
	// ends the view in the same message.
	Final bool
}

// Query runs the statement. The caller closes the rows before it runs the next
// one.
func (s Statement) Query(ctx context.Context, q Querier, args ...any) (Rows, error) {
	if r, ok := q.(Remote); ok {
		return r.QueryStatement(ctx, s, args...)
	}
	return q.Query(ctx, s.Text, args...)
}

// Row runs the statement and scans its first row into dest. It fails with
// ErrNoRows when there is none, and leaves dest as it is.
func (s Statement) Row(ctx context.Context, q Querier, args []any, dest ...any) error {
	rows, err := s.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	switch {
	case rows.Next():
		err = rows.Scan(dest...)
	case rows.Err() == nil:
		err = ErrNoRows
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// Each runs the statement and calls f with each row.
func (s Statement) Each(ctx context.Context, q Querier, args []any, f func(rows Rows) error) (err error) {
	rows, err := s.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

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
