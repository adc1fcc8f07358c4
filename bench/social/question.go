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
	"github.com/varvedb/varve/store/driver"
)

// Question asks whether a viewer may see an object.
type Question struct{ Viewer, Object Object }

// String returns the question in words.
func (q Question) String() string { return fmt.Sprintf("may %s see %s", q.Viewer, q.Object) }

// active draws the objects that take part in a load: one in stride of each kind.
type active struct {
	count  [kinds]int
	stride int
}

// newActive samples a part (above 0, at most 1) of the objects of a graph.
func newActive(g *Graph, part float64) active {
	return active{count: g.count, stride: max(int(math.Round(1/part)), 1)}
}

// size returns how many objects of a kind take part.
func (a active) size(k Kind) int { return (a.count[k] + a.stride - 1) / a.stride }

func (a active) pick(r *rand.Rand, k Kind) Object {
	return NewObject(k, r.IntN(a.size(k))*a.stride+1)
}

// other returns a user that takes part; a neighbour when it is the given one.
func (a active) other(r *rand.Rand, than Object) Object {
	if u := a.pick(r, User); u != than {
		return u
	}
	return NewObject(User, than.Number()%a.count[User]+1)
}

// Answer returns what is right at a point.
func (o *Oracle) Answer(q Question, point int64) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.may(q.Viewer, q.Object, point)
}

// Span is the states that a read view may hold: after the writes that were
// acknowledged before it was opened, and up to those that had begun by then. Of
// the states in between, one must explain an answer.
type Span struct{ From, To int64 }

// Judge fails with bench.ErrMismatch when no state of a span gives an answer.
func (o *Oracle) Judge(s Span, q Question, got bool) error {
	for point := s.From; point <= s.To; point++ {
		if o.Answer(q, point) == got {
			return nil
		}
	}
	return fmt.Errorf("%w: %s: %v, want %v after writes %d to %d", bench.ErrMismatch, q, got, o.Answer(q, s.From), s.From, s.To)
}

// Ask answers a question by what the store holds: by one statement, or by one for each
// object where the dialect has facts. The one takes the object, and then the viewer as
// often as it asks for it.
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

// facts is what a store says of an object in a check by a viewer: one subject of
// each relation that it has.
type facts map[Relation]Object

func (f facts) has(r Relation) bool { _, ok := f[r]; return ok }

// facts asks for one object.
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

// steps is a check with a statement for each object on the way, as SpiceDB's
// subproblems are, for engines that look up objects faster than they join them.
func (v *View) steps(ctx context.Context, viewer, object Object) (bool, error) {
	f, err := v.facts(ctx, object, viewer)
	switch {
	case err != nil:
		return false, err
	case object.Kind() == User:
		return f.has(Self) && (f[Self] == viewer || !f.has(Blocked) && (f.has(UserPublic) || f.has(UserFollowers) && f.has(Follower))), nil
	case object.Kind() == Content && f.has(Owner):
		owner, err := v.facts(ctx, f[Owner], viewer)
		return f[Owner] == viewer || !owner.has(Blocked) && (f.has(ContentPublic) || f.has(ContentFollowers) && owner.has(Follower)), err
	case object.Kind() == Interaction && f.has(Creator) && f.has(Parent):
		creator, err := v.facts(ctx, f[Creator], viewer)
		if err != nil || creator.has(Blocked) {
			return false, err
		}
		return v.steps(ctx, viewer, f[Parent])
	}
	return false, nil
}
