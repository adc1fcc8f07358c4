// Package graph runs workloads on tables that are not entity tables: the
// permission workloads, and rows of one table.
package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Store gives access to the tables of a schema in an open database. Its methods
// may be called from several goroutines.
type Store struct {
	DB *store.DB
	schemas.Graph
}

// Open returns the tables of a schema (see schemas.GraphTables) over a database,
// which is empty or holds them. The caller closes the database.
func Open(db *store.DB, schema string) (*Store, error) {
	sql, err := schemas.GraphTables(schema, string(db.Engine().Info().Dialect))
	return &Store{DB: db, Graph: sql}, err
}

// Write runs f in a transaction. Cancelling ctx ends the wait for the
// transaction, but does not interrupt one that has begun.
func (s *Store) Write(ctx context.Context, f func(ctx context.Context, tx driver.Tx) error) error {
	tx, err := s.DB.Engine().Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // for a panic in f
	ctx = context.WithoutCancel(ctx)
	if err := f(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit(ctx)
}

// Exec runs statements in one transaction. The last one may be Analyze.
func (s *Store) Exec(ctx context.Context, texts ...string) error {
	return s.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
		for _, text := range texts {
			if _, err := tx.Exec(ctx, text); err != nil {
				return fmt.Errorf("%.40q: %w", text, err)
			}
		}
		return nil
	})
}

// Analyze returns the statements that gather the planner's statistics, if the
// engine keeps any.
func (s *Store) Analyze() []string {
	if !s.DB.Engine().Capabilities().Analyze {
		return nil
	}
	return []string{s.Statements["analyze"]}
}

// Rows are rows to be written to a table.
type Rows struct {
	*driver.Table
	rows iter.Seq[[]any]
}

// Table returns rows for a table with the named columns; see Columns for their
// types.
func Table(name string, rows iter.Seq[[]any], columns ...string) Rows {
	return Rows{Columns(name, columns...), rows}
}

// kinds are the column types by column name; other columns are integers.
var kinds = map[string]driver.Type{
	"name": driver.Text, "key": driver.Text, "value": driver.Text, "entity_key": driver.Blob, "payload": driver.Blob,
}

// Columns describes a table. All columns are integers, except the names,
// values, entity keys and payloads listed in kinds.
func Columns(table string, columns ...string) *driver.Table {
	t := &driver.Table{Name: table}
	for _, c := range columns {
		t.Columns = append(t.Columns, driver.Column{Name: c, Type: cmp.Or(kinds[c], driver.Int)})
	}
	return t
}

// Fill creates the tables and loads rows through the engine's bulk path, batch
// rows in a transaction. Then it creates the indexes and gathers the planner's
// statistics.
func (s *Store) Fill(ctx context.Context, batch int, tables ...Rows) error {
	if err := s.Exec(ctx, s.Tables...); err != nil {
		return err
	}
	for _, t := range tables {
		if err := s.load(ctx, t, batch); err != nil {
			return fmt.Errorf("load %s: %w", t.Name, err)
		}
	}
	var texts []string
	for _, index := range s.Indexes {
		texts = append(texts, index.SQL)
	}
	return s.Exec(ctx, append(texts, s.Analyze()...)...)
}

func (s *Store) load(ctx context.Context, t Rows, batch int) (err error) {
	var values []any
	flush := func() {
		if len(values) > 0 && err == nil {
			err = s.Write(ctx, func(ctx context.Context, tx driver.Tx) error { return tx.Insert(ctx, t.Table, values) })
		}
		values = values[:0]
	}
	for row := range t.rows {
		if values = append(values, row...); len(values) == batch*len(t.Columns) {
			if flush(); err != nil {
				break
			}
		}
	}
	flush()
	return err
}

// Insertion commits rows or entities that are generated ahead.
type Insertion[T any] struct {
	Total, PerCommit int
	Limit            time.Duration // after which no other commit begins; 0 is none

	Make  func(first, n int) T // of a commit, in another goroutine
	Write func(ctx context.Context, made T, first int) error
}

// Run commits until everything is written or the time is up, and returns how
// much was written.
func (in Insertion[T]) Run(ctx context.Context) (out *pace.Outcome, written int, err error) {
	next, stop := pace.Ahead(func(yield func(T, error) bool) {
		for done := 0; done < in.Total; done += in.PerCommit {
			if !yield(in.Make(done, min(in.PerCommit, in.Total-done)), nil) {
				return
			}
		}
	}, 2)
	defer stop()
	loop := pace.Config{Duration: in.Limit, More: func() bool { return written < in.Total }}
	out, err = pace.Loop(ctx, loop, func(ctx context.Context, s *pace.Step) error {
		made, _, _ := next()
		s.Begin()
		err := in.Write(ctx, made, written)
		written = min(written+in.PerCommit, in.Total)
		return err
	})
	return out, written, err
}

// Expect compares the number that a statement returns. It fails with
// bench.ErrMismatch.
func (s *Store) Expect(ctx context.Context, statement string, want int) error {
	v, err := s.View(ctx)
	if err != nil {
		return err
	}
	n, err := driver.QueryInt(ctx, v, s.Statements[statement])
	if err == nil && n != int64(want) {
		err = fmt.Errorf("%w: %s is %d, want %d", bench.ErrMismatch, statement, n, want)
	}
	return errors.Join(err, v.Close())
}

// View is a stable read view. It is for one goroutine at a time.
type View struct {
	driver.Reader
	id   int64
	dest []any // &id
}

// View opens a read view and runs the dialect's set-up statements in it. The
// caller closes it.
func (s *Store) View(ctx context.Context) (*View, error) {
	r, err := s.DB.Engine().Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	v := &View{Reader: r}
	v.dest = []any{&v.id}
	if text, ok := s.Statements["begin_read"]; ok {
		rows, err := r.Query(ctx, text)
		if err == nil {
			rows.Next()
			err = errors.Join(rows.Err(), rows.Close())
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return v, nil
}

// IDs calls f for each number that a query returns.
func (v *View) IDs(ctx context.Context, text string, args []any, f func(id int64)) error {
	rows, err := v.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err = rows.Scan(v.dest...); err != nil {
			break
		}
		f(v.id)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// Divide splits a total by weights into n counts that add up to it, each
// between low and its own high. Every place first gets low, and the rest is
// split by weight; what exceeds a high goes to the others. Running sums are
// rounded instead of single shares, so that nothing is left over.
func Divide(total, n, low int, weight func(i int) float64, high func(i int) int) ([]int, error) {
	counts, weights := make([]int, n), make([]float64, n)
	for i := range counts {
		counts[i], weights[i] = min(low, high(i)), weight(i)
		total -= counts[i]
	}
	for total != 0 {
		sum := 0.0
		for i, w := range weights {
			if counts[i] < high(i) {
				sum += w
			}
		}
		if total < 0 || sum == 0 {
			return nil, fmt.Errorf("cannot divide %d more among %d places", total, n)
		}
		running, before, all := 0.0, 0, total
		for i, w := range weights {
			if room := high(i) - counts[i]; room > 0 {
				running += w
				upto := int(running / sum * float64(all) * (1 + 1e-12))
				given := min(upto-before, room)
				before, counts[i], total = upto, counts[i]+given, total-given
			}
		}
	}
	return counts, nil
}

// UpTo returns the same upper limit for all places of Divide.
func UpTo(most int) func(i int) int { return func(int) int { return most } }
