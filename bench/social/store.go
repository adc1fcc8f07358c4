package social

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Store holds a graph in an engine. Its methods may be called from several goroutines.
type Store struct{ *graph.Store }

// NewStore returns a store over an open database, which is empty or holds a graph.
func NewStore(db *store.DB) (*Store, error) {
	s, err := graph.Open(db, "social")
	return &Store{s}, err
}

// loadBatch is how many relationships a transaction loads.
const loadBatch = 50_000

// Load creates the table in an empty database and fills it with a graph,
// gathers planner statistics if the engine has any, and checkpoints the log.
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

// Write runs one write in a transaction. It fails with ErrMismatch when the
// engine changes other rows than expected. After driver.ErrUnknownOutcome the
// oracle no longer knows the right answers.
func (s *Store) Write(ctx context.Context, o *Oracle, toggle string, object, subject Object) error {
	var write int64
	var changes []Change
	err := s.Store.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
		write, changes = o.begin(toggle, object, subject)
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

// View is a read view with the range of states that it may show. It is for one
// goroutine at a time.
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

// Verify compares a store with the oracle: the number of rows, and each
// relationship that was written. No write may be running.
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

// Question asks whether a viewer may see an object.
type Question struct{ Viewer, Object Object }

// String returns the question as a sentence.
func (q Question) String() string { return fmt.Sprintf("may %s see %s", q.Viewer, q.Object) }

// active chooses the objects that take part in a load: every stride-th of each
// kind.
type active struct {
	*Graph
	stride int
}

// newActive selects a share (above 0, at most 1) of the objects of a graph.
func newActive(g *Graph, part float64) active { return active{g, max(int(math.Round(1/part)), 1)} }

// size returns how many objects of a kind take part.
func (a active) size(k Kind) int { return (a.count[k] + a.stride - 1) / a.stride }

func (a active) pick(r *rand.Rand, k Kind) Object {
	return NewObject(k, r.IntN(a.size(k))*a.stride+1)
}

// other returns a random active user; if that is the given user, a neighbour.
func (a active) other(r *rand.Rand, than Object) Object {
	if u := a.pick(r, User); u != than {
		return u
	}
	return NewObject(User, than.Number()%a.count[User]+1)
}

// Answer returns the right answer at a point.
func (o *Oracle) Answer(q Question, point int64) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.may(q.Viewer, q.Object, point)
}

// Span is the range of states that a read view may show: From counts the writes
// acknowledged before it was opened, To the writes that had begun by then. One
// of these states must explain each answer.
type Span struct{ From, To int64 }

// Judge fails with bench.ErrMismatch when no state of a span explains an
// answer.
func (o *Oracle) Judge(s Span, q Question, got bool) error {
	for point := s.From; point <= s.To; point++ {
		if o.Answer(q, point) == got {
			return nil
		}
	}
	return fmt.Errorf("%w: %s: %v, want %v after writes %d to %d", bench.ErrMismatch, q, got, o.Answer(q, s.From), s.From, s.To)
}

// Ask answers a question from the store: by one statement, or, if the dialect
// has the statement facts, by one statement for each object. The arguments of
// the single statement are the object and then the viewer, repeated.
func (v *View) Ask(ctx context.Context, q Question) (may bool, err error) {
	if v.store.Statements["facts"] != "" {
		may, err = v.steps(ctx, q.Viewer, q.Object)
	} else {
		text := v.store.Statements["check_"+q.Object.Kind().String()]
		args := slices.Repeat([]any{int64(q.Viewer)}, strings.Count(text, "?"))
		args[0] = int64(q.Object)
		var found int64
		found, err = driver.QueryInt(ctx, v, text, args...)
		may = found > 0
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", q, err)
	}
	return may, err
}

// facts are an object's relationships for a check by a viewer: one subject for
// each existing relation.
type facts map[Relation]Object

func (f facts) has(r Relation) bool { _, ok := f[r]; return ok }

// facts reads the facts of one object.
func (v *View) facts(ctx context.Context, object, viewer Object) (f facts, err error) {
	rows, err := v.Query(ctx, v.store.Statements["facts"], int64(object), int64(viewer))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	f = facts{}
	for rows.Next() {
		var relation, subject int64
		if err := rows.Scan(&relation, &subject); err != nil {
			return nil, err
		}
		if relation < 1 || relation >= int64(relationsEnd) {
			return nil, fmt.Errorf("%w: relation %d of %s", bench.ErrMismatch, relation, object)
		}
		f[Relation(relation)] = Object(subject)
	}
	return f, rows.Err()
}

// steps makes a check with one statement for each object on the path, like
// SpiceDB's subproblems, for engines that are faster at lookups than at joins.
func (v *View) steps(ctx context.Context, viewer, object Object) (bool, error) {
	f, err := v.facts(ctx, object, viewer)
	if err != nil {
		return false, err
	}
	if object.Kind() == Interaction {
		creator, err := v.facts(ctx, f[Creator], viewer)
		if err != nil || !f.has(Creator) || !f.has(Parent) || creator.has(Blocked) {
			return false, err
		}
		return v.steps(ctx, viewer, f[Parent])
	}
	owned, owner, public, followers := Self, f, UserPublic, UserFollowers
	if object.Kind() == Content {
		owned, public, followers = Owner, ContentPublic, ContentFollowers
		owner, err = v.facts(ctx, f[Owner], viewer)
	}
	return f.has(owned) && (f[owned] == viewer || !owner.has(Blocked) && (f.has(public) || f.has(followers) && owner.has(Follower))), err
}
