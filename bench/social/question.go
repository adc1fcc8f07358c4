package social

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
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

// Ask asks one question of a step after the other about objects at random, an
// operation of the loop each and on a view of its own, whose opening and closing are
// in the latency, and compares the answers. None is how many were answered with
// nothing.
func Ask(ctx context.Context, s *Store, o *Oracle, step *Step, seed uint64, loop bench.Loop) (took *latency.Recorder, none int, err error) {
	took = latency.NewRecorder()
	r, all := rand.New(rand.NewPCG(seed, 0)), newActive(o.g, 1)
	for loop.Loop() {
		q := all.question(r, step)
		start := time.Now()
		v, err := s.View(ctx, o)
		if err != nil {
			return took, none, err
		}
		got, err := v.Ask(ctx, q)
		err = errors.Join(err, v.Close())
		took.Record(time.Since(start))
		if err == nil {
			err = o.Judge(v.Span, q, got)
		}
		if err != nil {
			return took, none, err
		}
		if len(got) == 0 {
			none++
		}
	}
	return took, none, nil
}
