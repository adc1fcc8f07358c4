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
// It takes about 15 bytes for a piece of content or an interaction, which is 9 a
// relationship.
type Oracle struct {
	g *Graph

	// The first state, by the number of the object.
	userPublic, contentPublic []bool
	owner, creator, parent    []uint32
	followers, blocked        edges

	begun, acked atomic.Int64 // writes

	mu      sync.RWMutex
	changes map[Relationship][]change // in the order of writes
	rows    int                       // at the last point
}

// change is what a write has made of a relationship.
type change struct {
	write   int64
	present bool
}

// edges are users by user, compactly: those of user n are list[from[n]:from[n+1]].
type edges struct {
	from []uint32
	list []uint32
}

func (e *edges) has(object, subject Object) bool {
	_, found := slices.BinarySearch(e.of(object), uint32(subject))
	return found
}

func (e *edges) of(object Object) []uint32 {
	n := object.Number()
	return e.list[e.from[n]:e.from[n+1]]
}

// NewOracle reads a graph.
func NewOracle(g *Graph) *Oracle {
	users, content, interactions := g.Count(User)+1, g.Count(Content)+1, g.Count(Interaction)+1
	o := &Oracle{
		g: g, userPublic: make([]bool, users), contentPublic: make([]bool, content),
		owner: make([]uint32, content), creator: make([]uint32, interactions), parent: make([]uint32, interactions),
		followers: edges{from: make([]uint32, users+1)}, blocked: edges{from: make([]uint32, users+1)},
		changes: map[Relationship][]change{},
	}
	for r := range g.Relationships() {
		o.learn(r)
		o.rows++
	}
	return o
}

func (o *Oracle) learn(r Relationship) {
	n := r.Object.Number()
	switch r.Relation {
	case UserPublic:
		o.userPublic[n] = true
	case ContentPublic:
		o.contentPublic[n] = true
	case Owner:
		o.owner[n] = uint32(r.Subject)
	case Creator:
		o.creator[n] = uint32(r.Subject)
	case Parent:
		o.parent[n] = uint32(r.Subject.Number())
	case Follower:
		o.followers.list = append(o.followers.list, uint32(r.Subject))
	case Blocked:
		o.blocked.list = append(o.blocked.list, uint32(r.Subject))
	case Self: // the relations of a user end with those above or this one
	}
	if r.Object.Kind() == User {
		o.followers.from[n+1] = uint32(len(o.followers.list))
		o.blocked.from[n+1] = uint32(len(o.blocked.list))
	}
}

// first tells whether a relationship is in the first state.
func (o *Oracle) first(r Relationship) bool {
	n := r.Object.Number()
	switch r.Relation {
	case UserPublic:
		return o.userPublic[n] && r.Subject == Everybody
	case UserFollowers:
		return !o.userPublic[n] && r.Subject == r.Object
	case Self:
		return r.Subject == r.Object
	case Follower:
		return o.followers.has(r.Object, r.Subject)
	case Blocked:
		return o.blocked.has(r.Object, r.Subject)
	case Owner:
		return r.Subject == Object(o.owner[n])
	case ContentPublic:
		return o.contentPublic[n] && r.Subject == Everybody
	case ContentFollowers:
		return !o.contentPublic[n] && r.Subject == Object(o.owner[n])
	case Creator:
		return r.Subject == Object(o.creator[n])
	case Parent:
		return r.Subject == NewObject(Content, int(o.parent[n]))
	}
	return false
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

// May tells whether a viewer may see an object at a point.
func (o *Oracle) May(viewer, object Object, point int64) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.may(viewer, object, point)
}

func (o *Oracle) may(viewer, object Object, point int64) bool {
	has := func(object Object, r Relation, subject Object) bool {
		return o.has(Relationship{object, r, subject}, point)
	}
	switch object.Kind() {
	case User:
		return viewer == object || !has(object, Blocked, viewer) &&
			(has(object, UserPublic, Everybody) || has(object, UserFollowers, object) && has(object, Follower, viewer))
	case Content:
		owner := o.ownerOf(object)
		return viewer == owner || !has(owner, Blocked, viewer) &&
			(has(object, ContentPublic, Everybody) || has(object, ContentFollowers, owner) && has(owner, Follower, viewer))
	case Interaction:
		parent := NewObject(Content, int(o.parent[object.Number()]))
		return !has(Object(o.creator[object.Number()]), Blocked, viewer) && o.may(viewer, parent, point)
	}
	return false
}

func (o *Oracle) ownerOf(content Object) Object { return Object(o.owner[content.Number()]) }

// Visible returns the content that a viewer may see at a point, from one on,
// at most so many.
func (o *Oracle) Visible(viewer, from Object, limit int, point int64) []Object {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var list []Object
	for n := from.Number(); n <= o.g.Count(Content) && len(list) < limit; n++ {
		if c := NewObject(Content, n); o.may(viewer, c, point) {
			list = append(list, c)
		}
	}
	return list
}

// Viewers returns who may see a piece of content at a point, in order: the
// owner, and either Everybody or the followers who are not blocked.
func (o *Oracle) Viewers(content Object, point int64) []Object {
	o.mu.RLock()
	defer o.mu.RUnlock()
	owner := o.ownerOf(content)
	list := []Object{owner}
	if o.has(Relationship{content, ContentPublic, Everybody}, point) {
		list = append(list, Everybody)
	}
	if o.has(Relationship{content, ContentFollowers, owner}, point) {
		for _, f := range o.followersOf(owner, point) {
			if !o.has(Relationship{owner, Blocked, f}, point) {
				list = append(list, f)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// followersOf goes through every change, of which there are few.
func (o *Oracle) followersOf(user Object, point int64) []Object {
	var list []Object
	for _, n := range o.followers.of(user) {
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

// Rows returns the number of relationships at the last point.
func (o *Oracle) Rows() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.rows
}

// Point returns the last point that has been acknowledged.
func (o *Oracle) Point() int64 { return o.acked.Load() }
