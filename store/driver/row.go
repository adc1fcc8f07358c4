package driver

import (
	"context"
	"errors"
)

// ErrNoRows: QueryRow found no row.
var ErrNoRows = errors.New("no row")

// QueryRow runs a query and scans its first row into dest. It fails with
// ErrNoRows when there is none, and leaves dest as it is.
func QueryRow(ctx context.Context, q Querier, text string, args []any, dest ...any) error {
	rows, err := q.Query(ctx, text, args...)
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

// QueryRows runs a query and calls f with each row.
func QueryRows(ctx context.Context, q Querier, text string, args []any, f func(rows Rows) error) (err error) {
	rows, err := q.Query(ctx, text, args...)
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

// QueryInt returns the one integer that a query answers with.
func QueryInt(ctx context.Context, q Querier, text string, args ...any) (n int64, err error) {
	err = QueryRow(ctx, q, text, args, &n)
	return n, err
}
