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

// Question is what a store is asked, by a step of a script.
type Question struct {
	Step           *Step
	Viewer, Object Object // of a look-up of content, the object from which on
}

// String returns the question in words.
func (q Question) String() string {
	return fmt.Sprintf("%s of %s by %s", q.Step.Name(), q.Object, q.Viewer)
}

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

// question makes one about objects at random.
func (a active) question(r *rand.Rand, step *Step) Question {
	q := Question{Step: step, Viewer: a.pick(r, User)}
	kind := Content
	if i := slices.Index(kindNames[:], step.Check); i >= 0 {
		kind = Kind(i)
	}
	q.Object = a.pick(r, kind)
	return q
}

// Answer returns what is right at a point, in order: of a check, the object when
// the viewer may see it.
func (o *Oracle) Answer(q Question, point int64) []Object {
	o.mu.RLock()
	defer o.mu.RUnlock()
	switch {
	case q.Step.Lookup == lookupContent:
		return o.visible(q.Viewer, q.Object, q.Step.Limit, point)
	case q.Step.Lookup == lookupSubjects:
		return o.viewers(q.Object, point)
	case o.may(q.Viewer, q.Object, point):
		return []Object{q.Object}
	}
	return nil
}

// Span is the states that a read view may hold: after the writes that were
// acknowledged before it was opened, and up to those that had begun by then. Of
// the states in between, one must explain an answer.
type Span struct{ From, To int64 }

// String returns "write 3" or "writes 3 to 5".
func (s Span) String() string {
	if s.From == s.To {
		return fmt.Sprintf("write %d", s.From)
	}
	return fmt.Sprintf("writes %d to %d", s.From, s.To)
}

// Judge fails with bench.ErrMismatch when no state of a span gives an answer.
func (o *Oracle) Judge(s Span, q Question, got []Object) error {
	for point := s.From; point <= s.To; point++ {
		if slices.Equal(o.Answer(q, point), got) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s: %v, want %v after %s", bench.ErrMismatch, q, got, o.Answer(q, s.From), s)
}

// Ask answers a question by what the store holds. The list is overwritten by the
// next one.
func (v *View) Ask(ctx context.Context, q Question) (list []Object, err error) {
	v.list = v.list[:0]
	switch viewer, object := int64(q.Viewer), int64(q.Object); {
	case q.Step.Lookup == lookupContent:
		err = v.ids(ctx, "lookup_content", object, int64(NewObject(Content+1, 0)), viewer, viewer, viewer, int64(q.Step.Limit))
	case q.Step.Lookup == lookupSubjects:
		err = v.ids(ctx, "lookup_subjects", object, object, object)
	default:
		var may bool
		if may, err = v.check(ctx, q.Viewer, q.Object); may {
			v.list = append(v.list, q.Object)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	return v.list, nil
}

func (v *View) ids(ctx context.Context, statement string, args ...any) error {
	return v.IDs(ctx, v.store.Statements[statement], args, func(id int64) { v.list = append(v.list, Object(id)) })
}

// check asks whether a viewer may see an object, by one statement, or by one for each
// object where the dialect has facts. The one takes the object, and then the viewer as
// often as it asks for it.
func (v *View) check(ctx context.Context, viewer, object Object) (bool, error) {
	if v.store.Statements["facts"] != "" {
		return v.steps(ctx, viewer, object)
	}
	text := v.store.Statements["check_"+object.Kind().String()]
	args := make([]any, strings.Count(text, "?"))
	for i := range args {
		args[i] = int64(viewer)
	}
	args[0] = int64(object)
	found, err := driver.QueryInt(ctx, v, text, args...)
	return found > 0, err
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
