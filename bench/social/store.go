package social

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Store holds a graph in an engine. Its methods may be called from several
// goroutines.
type Store struct {
	db     *store.DB
	engine driver.Engine
	tables []string
	text   statements
}

// statements are the texts of schemas/social.
type statements struct {
	check                         [kinds]string
	facts                         string // of an object; "" when a check is one statement
	lookupContent, lookupSubjects string
	has, insert, delete           string
	count, analyze                string
}

// NewStore prepares the SQL for an open database, which is empty or holds a
// graph.
func NewStore(db *store.DB) (*Store, error) {
	s := &Store{db: db, engine: db.Engine()}
	sql, err := schemas.SocialGraph(string(s.engine.Info().Dialect))
	if err != nil {
		return nil, err
	}
	s.tables = sql.Tables
	for name, to := range map[string]*string{
		"check_user": &s.text.check[User], "check_content": &s.text.check[Content], "check_interaction": &s.text.check[Interaction],
		"lookup_content": &s.text.lookupContent, "lookup_subjects": &s.text.lookupSubjects,
		"has": &s.text.has, "insert": &s.text.insert, "delete": &s.text.delete,
		"count": &s.text.count, "analyze": &s.text.analyze,
	} {
		text, ok := sql.Statements[name]
		if !ok {
			return nil, fmt.Errorf("social graph: no statement %q", name)
		}
		*to = text
	}
	s.text.facts = sql.Statements["facts"]
	return s, nil
}

// DB returns the database.
func (s *Store) DB() *store.DB { return s.db }

// table is what rows are loaded into.
var table = &driver.Table{Name: "relationships", Columns: []driver.Column{
	{Name: "object", Type: driver.Int}, {Name: "relation", Type: driver.Int}, {Name: "subject", Type: driver.Int},
}}

// loadBatch is how many relationships a transaction loads.
const loadBatch = 50_000

// Load makes the table and fills it with a graph, gathers the planner's
// statistics where it has some, and moves the log into the database.
func (s *Store) Load(ctx context.Context, g *Graph) error {
	err := s.inTx(ctx, func(ctx context.Context, tx driver.Tx) error {
		for _, text := range s.tables {
			if _, err := tx.Exec(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("social graph: make tables: %w", err)
	}
	rows := make([]any, 0, loadBatch*len(table.Columns))
	flush := func() error {
		err := s.inTx(ctx, func(ctx context.Context, tx driver.Tx) error { return tx.Insert(ctx, table, rows) })
		rows = rows[:0]
		return err
	}
	for r := range g.Relationships() {
		rows = append(rows, int64(r.Object), int64(r.Relation), int64(r.Subject))
		if len(rows) == cap(rows) {
			if err := flush(); err != nil {
				return fmt.Errorf("social graph: load: %w", err)
			}
		}
	}
	if err := flush(); err != nil {
		return fmt.Errorf("social graph: load: %w", err)
	}
	return s.finish(ctx)
}

func (s *Store) finish(ctx context.Context) error {
	if s.engine.Capabilities().Analyze {
		err := s.inTx(ctx, func(ctx context.Context, tx driver.Tx) error {
			_, err := tx.Exec(ctx, s.text.analyze)
			return err
		})
		if err != nil {
			return fmt.Errorf("social graph: analyze: %w", err)
		}
	}
	return bench.FoldLog(ctx, s.db)
}

func (s *Store) inTx(ctx context.Context, f func(context.Context, driver.Tx) error) error {
	tx, err := s.engine.Begin(ctx)
	if err != nil {
		return err
	}
	if err := f(context.WithoutCancel(ctx), tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit(ctx)
}

// View is a stable read view with the span of states that it may hold. It is
// for one goroutine at a time.
type View struct {
	Span
	s *Store
	r driver.Reader
}

// View opens a view. The caller closes it.
func (s *Store) View(ctx context.Context, o *Oracle) (*View, error) {
	from := o.acked.Load()
	r, err := s.engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &View{Span: Span{from, o.begun.Load()}, s: s, r: r}, nil
}

// Close ends the view.
func (v *View) Close() error { return v.r.Close() }

// Check asks whether a viewer may see an object.
func (v *View) Check(ctx context.Context, viewer, object Object) (bool, error) {
	if v.s.text.facts != "" {
		may, err := v.steps(ctx, viewer, object)
		if err != nil {
			err = fmt.Errorf("check %s: %w", object.Kind(), err)
		}
		return may, err
	}
	var args [5]any
	args[0] = int64(object)
	for i := range args[1:] {
		args[i+1] = int64(viewer)
	}
	n := 4
	if object.Kind() == Interaction {
		n = 5
	}
	var found int64
	err := driver.QueryRow(ctx, v.r, v.s.text.check[object.Kind()], args[:n], &found)
	if err != nil {
		return false, fmt.Errorf("check %s: %w", object.Kind(), err)
	}
	return found > 0, nil
}

// LookupContent asks for the content that a viewer may see, from one on, at most
// so many, in order.
func (v *View) LookupContent(ctx context.Context, viewer, from Object, limit int) ([]Object, error) {
	w := int64(viewer)
	list, err := v.list(ctx, v.s.text.lookupContent, int64(from), int64(NewObject(Content+1, 0)), w, w, w, int64(limit))
	if err != nil {
		return nil, fmt.Errorf("look up content: %w", err)
	}
	return list, nil
}

// LookupSubjects asks who may see a piece of content: the owner, and Everybody
// or the followers who are not blocked, in order.
func (v *View) LookupSubjects(ctx context.Context, content Object) ([]Object, error) {
	c := int64(content)
	list, err := v.list(ctx, v.s.text.lookupSubjects, c, c, c)
	if err != nil {
		return nil, fmt.Errorf("look up subjects: %w", err)
	}
	return list, nil
}

func (v *View) list(ctx context.Context, text string, args ...any) (list []Object, err error) {
	rows, err := v.r.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, Object(n))
	}
	return list, rows.Err()
}

// Verify compares what a store holds with the oracle: the number of rows, and
// each relationship that was written. No write may run.
func (s *Store) Verify(ctx context.Context, o *Oracle) error {
	v, err := s.View(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(v.verify(ctx, o), v.Close())
}

func (v *View) verify(ctx context.Context, o *Oracle) error {
	var n int64
	if err := driver.QueryRow(ctx, v.r, v.s.text.count, nil, &n); err != nil {
		return err
	}
	if want := o.Rows(); int(n) != want {
		return fmt.Errorf("%w: %d relationships, want %d", bench.ErrMismatch, n, want)
	}
	changed := o.Changed()
	slices.SortFunc(changed, func(a, b Change) int { return int(a.Object - b.Object) })
	for _, c := range changed {
		args := []any{int64(c.Object), int64(c.Relation), int64(c.Subject)}
		if err := driver.QueryRow(ctx, v.r, v.s.text.has, args, &n); err != nil {
			return err
		}
		if got := n == 1; got != c.Add || n > 1 {
			return fmt.Errorf("%w: %s is there %d times after all writes, want %v", bench.ErrMismatch, c.Relationship, n, c.Add)
		}
	}
	return nil
}
