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
type Oracle struct {
	g            *Graph       // the first state
	begun, acked atomic.Int64 // writes

	mu      sync.RWMutex
	changes map[Relationship][]change // in the order of writes
}

// change is what a write has made of a relationship.
type change struct {
	write   int64
	present bool
}

// NewOracle returns the oracle of a graph before any write.
func NewOracle(g *Graph) *Oracle { return &Oracle{g: g, changes: map[Relationship][]change{}} }

// Owner returns who owns a piece of content.
func (o *Oracle) Owner(content Object) Object { return o.g.two(content)[0].Subject }

// first tells whether a relationship is in the first state.
func (o *Oracle) first(r Relationship) bool {
	if r.Relation == Follower {
		_, found := slices.BinarySearch(o.g.followers[r.Object.Number()-1], r.Subject)
		return found
	}
	two := o.g.two(r.Object)
	return two[0] == r || two[1] == r
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
		owner := o.Owner(object)
		return viewer == owner || !has(owner, Blocked, viewer) &&
			(has(object, ContentPublic, Everybody) || has(object, ContentFollowers, owner) && has(owner, Follower, viewer))
	}
	two := o.g.two(object) // its creator and parent
	return !has(two[0].Subject, Blocked, viewer) && o.may(viewer, two[1].Subject, point)
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
	owner := o.Owner(content)
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
	for _, f := range o.g.followers[user.Number()-1] {
		if o.has(Relationship{user, Follower, f}, point) {
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
		if was := o.first(c.Relationship); c.Add && !was {
			n++
		} else if was && !c.Add {
			n--
		}
	}
	return n
}

// Point returns the last point that has been acknowledged.
func (o *Oracle) Point() int64 { return o.acked.Load() }
