// Package eav has the entity-attribute-value layouts: Arkiv's bi-temporal
// schema with any subset of its indexes, and its simple schema without history.
// Each attribute is a row. The payload row repeats all attributes as JSON, so
// that fetching an entity reads one row.
package eav

import (
	"context"
	"fmt"
	"strings"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Layout implements layout.Layout on the tables of a schema.
type Layout struct {
	schema  schemas.Layout
	dialect dialect
	shape   *shape
	closing [tables]*driver.Update // updates that end versions
	hints   map[string]string      // by attribute table: how SQLite should search it
	sql     *statement.Set
}

var (
	_ layout.Layout   = (*Layout)(nil)
	_ layout.Indexed  = (*Layout)(nil)
	_ layout.Analyzed = (*Layout)(nil)
)

// New returns the layout of a schema for an engine's dialect and capabilities.
func New(schema schemas.Layout, d driver.Dialect, caps driver.Capabilities) *Layout {
	l := &Layout{
		schema: schema, dialect: newDialect(d, caps), shape: &temporal,
		closing: newClosings(schema), hints: map[string]string{}, sql: statement.New(schema.Statements),
	}
	for _, table := range []string{texts, numbers} {
		// Arkiv's store uses this hint, with an index of the same columns.
		// SQLite might otherwise search by the value, and read all rows that
		// have it.
		if l.dialect.IndexHints && hasIndex(schema, table+"_pk") {
			l.hints[table] = " INDEXED BY " + table + "_pk"
		}
	}
	if !schema.Temporal {
		l.shape = &simple
	}
	return l
}

// Name implements layout.Layout.
func (l *Layout) Name() string { return l.schema.Name }

// Temporal implements layout.Layout.
func (l *Layout) Temporal() bool { return l.schema.Temporal }

// Create implements layout.Layout.
func (l *Layout) Create(ctx context.Context, tx driver.Tx, deferred bool) error {
	for _, text := range l.schema.Tables {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	for _, index := range l.schema.Indexes {
		if deferred && !index.Unique {
			continue
		}
		if _, err := tx.Exec(ctx, index.SQL); err != nil {
			return fmt.Errorf("create index %s: %w", index.Name, err)
		}
	}
	return nil
}

// view implements layout.View.
type view struct {
	*Layout
	q  driver.Querier
	at uint64
}

// View implements layout.Layout.
func (l *Layout) View(_ context.Context, q driver.Querier, at uint64) (layout.View, error) {
	return view{l, q, at}, nil
}

// writer implements layout.Writer.
type writer struct {
	*Layout
	tx driver.Tx
}

// Writer implements layout.Layout.
func (l *Layout) Writer(_ context.Context, tx driver.Tx) (layout.Writer, error) {
	return writer{l, tx}, nil
}

// DeferredIndexes implements layout.Indexed: all indexes that are not unique.
// The unique ones find the versions that a block changes.
func (l *Layout) DeferredIndexes() (names []string) {
	for _, index := range l.schema.Indexes {
		if !index.Unique {
			names = append(names, index.Name)
		}
	}
	return names
}

// CreateIndex implements layout.Indexed.
func (l *Layout) CreateIndex(ctx context.Context, tx driver.Tx, name string) error {
	for _, index := range l.schema.Indexes {
		if index.Name != name {
			continue
		}
		text := strings.Replace(index.SQL, "INDEX ", "INDEX IF NOT EXISTS ", 1)
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create index %s: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("layout %s has no index %s", l.schema.Name, name)
}

// Analyzed implements layout.Analyzed.
func (l *Layout) Analyzed() bool { return l.schema.Analyze && l.dialect.analyze }

// Analyze implements layout.Analyzed.
func (l *Layout) Analyze(ctx context.Context, tx driver.Tx) error {
	// Analyze each table, because a server's database may hold tables of
	// others.
	for _, t := range l.shape.tables {
		if _, err := tx.Exec(ctx, "ANALYZE "+t.Name); err != nil {
			return fmt.Errorf("analyze: %w", err)
		}
	}
	return nil
}

// Rows implements layout.View.
func (v view) Rows(ctx context.Context) (list []layout.TableRows, err error) {
	for i, name := range []string{"count_strings", "count_numbers", "count_payloads"} {
		n, err := v.sql.Int(ctx, v.q, name)
		if err != nil {
			return nil, err
		}
		list = append(list, layout.TableRows{Table: v.shape.tables[i].Name, Rows: uint64(n)})
	}
	return list, nil
}
