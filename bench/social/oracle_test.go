package social

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/bench"
)

// tuples is the schema taken at its word: relationships in a set, and
// permissions by the definitions of the package comment.
type tuples map[Relationship]bool

func (m tuples) subjects(object Object, relation Relation) []Object {
	var list []Object
	for r := range m {
		if r.Object == object && r.Relation == relation {
			list = append(list, r.Subject)
		}
	}
	return list
}

func (m tuples) visible(viewer, object Object, public, followers Relation) bool {
	for range m.subjects(object, public) {
		return true
	}
	return slices.ContainsFunc(m.subjects(object, followers), func(u Object) bool { return m[Relationship{u, Follower, viewer}] })
}

func (m tuples) view(viewer, object Object) bool {
	blocks := func(u Object) bool { return m[Relationship{u, Blocked, viewer}] }
	switch object.Kind() {
	case User:
		return m[Relationship{object, Self, viewer}] || m.visible(viewer, object, UserPublic, UserFollowers) && !blocks(object)
	case Content:
		owner := m.subjects(object, Owner)[0]
		return owner == viewer || m.visible(viewer, object, ContentPublic, ContentFollowers) && !blocks(owner)
	}
	return m.view(viewer, m.subjects(object, Parent)[0]) && !blocks(m.subjects(object, Creator)[0])
}

func (m tuples) apply(changes []Change) tuples {
	next := tuples{}
	for r := range m {
		next[r] = true
	}
	for _, c := range changes {
		if delete(next, c.Relationship); c.Add {
			next[c.Relationship] = true
		}
	}
	return next
}

// The oracle agrees with the definitions after each of a number of writes, at
// the last point and at all before.
func TestOracle(t *testing.T) {
	g, err := New(MinRelationships, 3)
	require.NoError(t, err)
	base := tuples{}
	for r := range g.Relationships() {
		base[r] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		o, states := NewOracle(g), []tuples{base}
		object := func(k Kind) Object { return NewObject(k, rapid.IntRange(1, min(g.count[k], 40)).Draw(t, k.String())) }
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			kind := rapid.SampledFrom(Toggles).Draw(t, "write")
			of, subject := object(User), object(User)
			if kind == ToggleVisibility {
				of = object(Content)
			}
			write, changes := o.begin(kind, of, subject)
			next := states[len(states)-1].apply(changes)
			if rapid.Bool().Draw(t, "fails") {
				o.void(write, changes)
				next = states[len(states)-1]
			}
			o.acknowledge(write)
			states = append(states, next)
		}
		if o.rows() != len(states[len(states)-1]) || o.acked.Load() != int64(len(states)-1) {
			t.Fatalf("%d rows at %d, want %d at %d", o.rows(), o.acked.Load(), len(states[len(states)-1]), len(states)-1)
		}
		for point, m := range states {
			viewer := object(User)
			for _, asked := range []Object{object(User), object(Content), object(Interaction)} {
				if got, want := o.may(viewer, asked, int64(point)), m.view(viewer, asked); got != want {
					t.Fatalf("%s may view %s at %d: %v, want %v", viewer, asked, point, got, want)
				}
			}
		}
	})
}

// While a write is on its way a check may have either answer, and afterwards one.
func TestJudge(t *testing.T) {
	g, err := New(MinRelationships, 1)
	require.NoError(t, err)
	o := NewOracle(g)
	viewer, content := NewObject(User, 1), publicContent1(t, o)
	judge := func(s Span, may bool) error { return o.Judge(s, Question{viewer, content}, may) }
	require.NoError(t, judge(Span{}, true))
	require.ErrorIs(t, judge(Span{}, false), bench.ErrMismatch)

	before := Span{o.acked.Load(), o.begun.Load()}
	write, _ := o.begin(ToggleBlocked, o.Owner(content), viewer)
	beside := Span{o.acked.Load(), o.begun.Load()}
	o.acknowledge(write)
	after := Span{o.acked.Load(), o.begun.Load()}

	require.NoError(t, judge(before, true))
	require.ErrorIs(t, judge(before, false), bench.ErrMismatch)
	require.NoError(t, judge(beside, true))
	require.NoError(t, judge(beside, false))
	require.ErrorIs(t, judge(after, true), bench.ErrMismatch)
	require.NoError(t, judge(after, false))
	require.ErrorContains(t, judge(after, true), "may user:1 see content:")
}

// publicContent1 returns public content of another user than the first.
func publicContent1(t *testing.T, o *Oracle) Object {
	for n := range o.g.count[Content] {
		c := NewObject(Content, n+1)
		if o.first(Relationship{c, ContentPublic, Everybody}) && o.Owner(c) != 1 {
			return c
		}
	}
	require.Fail(t, "no public content")
	return 0
}

// A write is acknowledged once those before it are, whoever says so first.
func TestAcknowledge(t *testing.T) {
	g, err := New(MinRelationships, 1)
	require.NoError(t, err)
	o := NewOracle(g)
	first, _ := o.begin(ToggleFollower, 1, 2)
	second, _ := o.begin(ToggleFollower, 1, 2)
	o.acknowledge(second)
	o.acknowledge(first)
	require.Equal(t, second, o.acked.Load())
	changed := o.changed()
	require.Len(t, changed, 1)
	require.Equal(t, o.first(changed[0].Relationship), changed[0].Add, "twice is as before")
}
