// Package eventlog stores events in tables and finds them. The store owns
// transactions and verdicts; a Log runs SQL on the transaction or view that it
// is given, and keeps no state that a rolled-back transaction could falsify.
//
// An event's row is written at once. Its postings, by which a tag, a type or
// its ID finds it, are written for many events together: a batch, whose rows
// are spread over the commits that follow. Until then each process has them in
// memory, in a Tail, which also describes the states of an event.
package eventlog

import (
	"context"
	"fmt"
	"math"

	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Log reads and writes the tables of events in one dialect.
type Log struct {
	schema schemas.Events
	sql    *statement.Set
	traits driver.Traits // of its dialect
	texts  statement.Texts
}

// New returns the log of a dialect.
func New(dialect driver.Dialect) (*Log, error) {
	schema, err := schemas.EventTables(string(dialect))
	return &Log{schema: schema, sql: statement.New(schema.Statements), traits: dialect.Traits()}, err
}

// Create makes the tables and indexes.
func (l *Log) Create(ctx context.Context, tx driver.Tx) error {
	for _, text := range l.schema.Tables {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create the tables of events: %w", err)
		}
	}
	for _, index := range l.schema.Indexes {
		if _, err := tx.Exec(ctx, index.SQL); err != nil {
			return fmt.Errorf("create index %s: %w", index.Name, err)
		}
	}
	return l.sql.Exec(ctx, tx, "insert_index", position(0))
}

// Head returns the highest position, zero when there is no event.
func (l *Log) Head(ctx context.Context, q driver.Querier) (uint64, error) {
	n, err := l.sql.Int(ctx, q, "head")
	return uint64(n), err
}

// Types calls f with each type and how many events have it. It reads them all.
func (l *Log) Types(ctx context.Context, q driver.Querier, f func(typ string, events uint64)) error {
	return l.sql.Each(ctx, q, "count_types", nil, func(rows driver.Rows) error {
		var typ []byte
		var n int64
		if err := rows.Scan(&typ, &n); err != nil {
			return err
		}
		f(string(typ), uint64(n))
		return nil
	})
}

// position makes a position an argument. None is stored above the largest
// integer, so clamping changes no comparison.
func position(p uint64) int64 { return int64(min(p, math.MaxInt64)) }
