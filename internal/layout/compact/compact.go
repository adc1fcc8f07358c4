// Package compact is Varve's own layout: the answers of the thirteen-index
// layout at a fraction of its writes. docs/compact.md has a picture.
//
// A block is written as one row of a log, and its payloads. The log is merged into
// tables in batches: the last version of each entity, clustered by id; older
// versions in another table; and for each attribute value the set of entities that
// have it. Entities are numbered in the order of their creation, so ids have the
// order of $sequence. Readers see the tables, overlaid with the part of the log
// that is not merged in their view.
//
// Decoded blocks of the log are cached in memory. They are found by the tip, a hash
// chained over the log, which a view reads together with the progress of the
// merge. A transaction that is rolled back leaves tips that no view ever reads.
package compact

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// Layout implements layout.Layout and layout.Maintained.
//
// Three kinds of goroutines use it: the writer, which has the engine's one write
// transaction; the maintainer, which calls Prepare concurrently with the writer
// and never twice at once; and readers. Nodes, trees and batches do not change
// once another goroutine can find them, except for the state of the merge in a
// batch, which preparedBatch guards. Each field guards itself, except credit, which
// only the writer uses.
type Layout struct {
	schema   schemas.Layout
	opts     Options
	sql      *statement.Set
	postings *lsm.Store

	committed *names // as seen by read views: never wrong
	chains    chains
	prepared  preparedBatch
	keys      keyCache
	debt      debt
	lastSeen  lastSeen
	values    valueCache
	rowTime   rowTime
	credit    credit
}

var (
	_ layout.Layout     = (*Layout)(nil)
	_ layout.Maintained = (*Layout)(nil)
)

// New returns the layout of a schema.
func New(schema schemas.Layout, opts Options) *Layout {
	opts = opts.withDefaults()
	l := &Layout{schema: schema, opts: opts, sql: statement.New(schema.Statements), committed: newNames()}
	l.postings = lsm.NewStore("postings", l.sql, opts.tree())
	return l
}

// Name implements layout.Layout.
func (l *Layout) Name() string { return l.schema.Name }

// Temporal implements layout.Layout.
func (l *Layout) Temporal() bool { return true }

// Create implements layout.Layout.
func (l *Layout) Create(ctx context.Context, tx driver.Tx, _ bool) error {
	for _, text := range l.schema.Tables {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	for _, index := range l.schema.Indexes {
		if _, err := tx.Exec(ctx, index.SQL); err != nil {
			return fmt.Errorf("create index %s: %w", index.Name, err)
		}
	}
	p := progress{merged: none, merging: none, last: none, nextID: 1, nextContent: 1, names: firstName - 1}
	return tx.Insert(ctx, progressTable, p.values())
}

// The tables that are written in bulk, except the postings.
var (
	progressTable = table("progress", "merged", "merging", "step", "last", "tip*", "next_id", "next_content", "names",
		"last_sequence+", "unordered", "backlog", "live", "runs*")
	logTable     = table("block_log", "block", "tip*", "changes*")
	namesTable   = table("names", "id", "kind", "name*")
	contentTable = table("contents", "no", "content*")
	currentTable = table("current_versions", "id", "from_block", "expires", "entity_key*", "content", "data*")
	closedTable  = table("closed_versions", "id", "from_block", "to_block", "expires", "entity_key*", "content", "data*")
	keysTable    = table("entity_keys", "hash", "id")
)

// table describes a table of integers; a star marks a blob, and a plus an unsigned integer.
func table(name string, columns ...string) *driver.Table {
	t := &driver.Table{Name: name}
	for _, c := range columns {
		column := driver.Column{Name: c, Type: driver.Int}
		switch last := len(c) - 1; c[last] {
		case '*':
			column = driver.Column{Name: c[:last], Type: driver.Blob}
		case '+':
			column = driver.Column{Name: c[:last], Type: driver.Uint}
		}
		t.Columns = append(t.Columns, column)
	}
	return t
}

// Tables implements layout.Layout.
func (l *Layout) Tables() []*driver.Table {
	return []*driver.Table{
		progressTable, logTable, namesTable, contentTable, currentTable, closedTable, keysTable, l.postings.Table(),
	}
}

func currentRow(rows []any, v *version) []any {
	return append(rows, v.id, v.from, v.expires, v.key[:], v.content, v.data)
}

func closedRow(rows []any, v *version) []any {
	return append(rows, v.id, v.from, v.to, v.expires, v.key[:], v.content, v.data)
}
