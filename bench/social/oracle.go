package social

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Oracle knows every relationship at every point of a history of writes, and so
// the answer to every question. Writes are numbered from 1 in the order in which
// the engine runs them; point n is the state after n of them. Its methods may be
// called from several goroutines.
//
// It takes about 7 bytes a relationship.
type Oracle struct {
	g *Graph

	// The first state. Those of the nth object of a kind are at from[kind][n-1] up
	// to from[kind][n]: relations in order, and the numbers of their subjects.
	from      [kinds][]uint32
	relations []Relation
	subjects  []uint32

	begun, acked atomic.Int64 // writes

	mu      sync.RWMutex
	changes map[Relationship][]change // in the order of writes
}

// change is what a write has made of a relationship.
type change struct {
	write   int64
	present bool
}

// NewOracle reads a graph.
func NewOracle(g *Graph) *Oracle {
	o := &Oracle{
		g: g, changes: map[Relationship][]change{},
		relations: make([]Relation, 0, g.Len()), subjects: make([]uint32, 0, g.Len()),
	}
	for k := range o.from {
		o.from[k] = make([]uint32, g.Count(Kind(k))+1)
	}
	for r := range g.Relationships() {
		ends, n := o.from[r.Object.Kind()], r.Object.Number()
		if ends[n] == 0 { // the object's first
			ends[n-1] = uint32(len(o.subjects))
		}
		o.relations, o.subjects = append(o.relations, r.Relation), append(o.subjects, uint32(r.Subject.Number()))
		ends[n] = uint32(len(o.subjects))
	}
	return o
}

// of returns the numbers of the subjects of a relation in the first state, in order.
func (o *Oracle) of(object Object, relation Relation) []uint32 {
	ends, n := o.from[object.Kind()], object.Number()
	relations, subjects := o.relations[ends[n-1]:ends[n]], o.subjects[ends[n-1]:ends[n]]
	first, _ := slices.BinarySearch(relations, relation)
	last, _ := slices.BinarySearch(relations, relation+1)
	return subjects[first:last]
}

// user returns the user of a relation that has one subject and never changes.
func (o *Oracle) user(object Object, relation Relation) Object {
	return Object(o.of(object, relation)[0])
}

// Owner returns who owns a piece of content.
func (o *Oracle) Owner(content Object) Object { return o.user(content, Owner) }

// first tells whether a relationship is in the first state.
func (o *Oracle) first(r Relationship) bool {
	_, found := slices.BinarySearch(o.of(r.Object, r.Relation), uint32(r.Subject.Number()))
	return found
}

// has tells whether a relationship is there at a point. The caller holds the
// lock.
func (o *Oracle) has(r Relationship, point int64) bool {
	list := o.changes[r]
	after := sort.Search(len(list), func(i int) bool { return list[i].write > point })
	if after == 0 {
		return o.first(r)
	}
	return list[after-1].present
}

// may tells whether a viewer may see an object at a point. The caller holds the lock.
func (o *Oracle) may(viewer, object Object, point int64) bool {
	has := func(object Object, r Relation, subject Object) bool {
		return o.has(Relationship{object, r, subject}, point)
	}
	switch object.Kind() {
	case User:
		return viewer == object || !has(object, Blocked, viewer) &&
			(has(object, UserPublic, Everybody) || has(object, UserFollowers, object) && has(object, Follower, viewer))
	case Content:
		owner := o.user(object, Owner)
		return viewer == owner || !has(owner, Blocked, viewer) &&
			(has(object, ContentPublic, Everybody) || has(object, ContentFollowers, owner) && has(owner, Follower, viewer))
	}
	parent := NewObject(Content, int(o.of(object, Parent)[0]))
	return !has(o.user(object, Creator), Blocked, viewer) && o.may(viewer, parent, point)
}

// visible returns the content that a viewer may see at a point, from one on,
// at most so many. The caller holds the lock.
func (o *Oracle) visible(viewer, from Object, limit int, point int64) []Object {
	var list []Object
	for n := from.Number(); n <= o.g.Count(Content) && len(list) < limit; n++ {
		if c := NewObject(Content, n); o.may(viewer, c, point) {
			list = append(list, c)
		}
	}
	return list
}

// viewers returns who may see a piece of content at a point, in order: the
// owner, and either Everybody or the followers who are not blocked. The caller holds
// the lock.
func (o *Oracle) viewers(content Object, point int64) []Object {
	owner := o.user(content, Owner)
	list := []Object{owner}
	if o.has(Relationship{content, ContentPublic, Everybody}, point) {
		list = append(list, Everybody)
	}
	if o.has(Relationship{content, ContentFollowers, owner}, point) {
		for _, f := range o.followers(owner, point) {
			if !o.has(Relationship{owner, Blocked, f}, point) {
				list = append(list, f)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// followers goes through every change, of which there are few.
func (o *Oracle) followers(user Object, point int64) []Object {
	var list []Object
	for _, n := range o.of(user, Follower) {
		if f := Object(n); o.has(Relationship{user, Follower, f}, point) {
			list = append(list, f)
		}
	}
	for r := range o.changes {
		if r.Object == user && r.Relation == Follower && !o.first(r) && o.has(r, point) {
			list = append(list, r.Subject)
		}
	}
	return list
}

// rows returns the number of relationships at the last point.
func (o *Oracle) rows() int {
	n := o.g.Len()
	for _, c := range o.changed() {
		switch was := o.first(c.Relationship); {
		case c.Add && !was:
			n++
		case was && !c.Add:
			n--
		}
	}
	return n
}

// Point returns the last point that has been acknowledged.
func (o *Oracle) Point() int64 { return o.acked.Load() }
