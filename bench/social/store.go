package social

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Store holds a graph in an engine. Its methods may be called from several
// goroutines.
type Store struct{ *graph.Store }

// NewStore returns a store over an open database, which is empty or holds a graph.
func NewStore(db *store.DB) (*Store, error) {
	s, err := graph.Open(db, "social")
	return &Store{s}, err
}

// loadBatch is how many relationships a transaction loads.
const loadBatch = 50_000

// Load makes the table in an empty database and fills it with a graph, gathers the planner's
// statistics where it has some, and moves the log into the database.
func Load(ctx context.Context, db *store.DB, g *Graph) (*Store, error) {
	s, err := NewStore(db)
	if err != nil {
		return nil, err
	}
	rows := func(yield func([]any) bool) {
		row := make([]any, 3)
		for r := range g.Relationships() {
			row[0], row[1], row[2] = int64(r.Object), int64(r.Relation), int64(r.Subject)
			if !yield(row) {
				return
			}
		}
	}
	if err := s.Fill(ctx, loadBatch, graph.Table("relationships", rows, "object", "relation", "subject")); err != nil {
		return nil, fmt.Errorf("social graph: %w", err)
	}
	return s, bench.FoldLog(ctx, db)
}

// Write runs one write in a transaction of its own. It fails with ErrMismatch
// when the engine changes other rows than it must. After
// driver.ErrUnknownOutcome the oracle no longer knows what is true.
func (s *Store) Write(ctx context.Context, o *Oracle, toggle string, object, subject Object) error {
	var write int64
	var changes []Change
	err := s.Store.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
		write, changes = o.begin(toggle, object, subject)
		return s.apply(ctx, tx, changes)
	})
	if err == nil {
		o.acknowledge(write)
		return nil
	}
	if !errors.Is(err, driver.ErrUnknownOutcome) {
		o.void(write, changes)
	}
	return fmt.Errorf("write %s: %w", toggle, err)
}

func (s *Store) apply(ctx context.Context, tx driver.Tx, changes []Change) error {
	for _, c := range changes {
		text := s.Statements["delete"]
		if c.Add {
			text = s.Statements["insert"]
		}
		n, err := tx.Exec(ctx, text, int64(c.Object), int64(c.Relation), int64(c.Subject))
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%w: %v: %d rows changed, want 1", bench.ErrMismatch, c.Relationship, n)
		}
	}
	return nil
}

// View is a stable read view with the span of states that it may hold. It is
// for one goroutine at a time.
type View struct {
	Span
	*graph.View
	store *Store
}

// View opens a view. The caller closes it.
func (s *Store) View(ctx context.Context, o *Oracle) (*View, error) {
	from := o.acked.Load()
	v, err := s.Store.View(ctx)
	return &View{Span: Span{from, o.begun.Load()}, View: v, store: s}, err
}

// Verify compares what a store holds with the oracle: the number of rows, and
// each relationship that was written. No write may run.
func (s *Store) Verify(ctx context.Context, o *Oracle) (err error) {
	if err := s.Expect(ctx, "count", o.rows()); err != nil {
		return err
	}
	v, err := s.View(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for _, c := range o.changed() {
		n, err := driver.QueryInt(ctx, v, s.Statements["has"], int64(c.Object), int64(c.Relation), int64(c.Subject))
		if err != nil {
			return err
		}
		if got := n == 1; got != c.Add || n > 1 {
			return fmt.Errorf("%w: %v is there %d times after all writes, want %v", bench.ErrMismatch, c.Relationship, n, c.Add)
		}
	}
	return nil
}
