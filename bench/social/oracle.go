package social

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Oracle knows every relationship at every point in the history of writes, and
// therefore the answer to every question. Writes are numbered from 1 in the
// order in which the engine runs them; point n is the state after n writes. Its
// methods may be called from several goroutines.
type Oracle struct {
	g            *Graph       // the initial state
	begun, acked atomic.Int64 // numbers of writes

	mu    sync.RWMutex
	flips map[Relationship][]int64 // the writes that added or deleted a relationship, in order
}

// NewOracle returns the oracle of a graph before any write.
func NewOracle(g *Graph) *Oracle { return &Oracle{g: g, flips: map[Relationship][]int64{}} }

// Owner returns the owner of a piece of content.
func (o *Oracle) Owner(content Object) Object { return o.g.twoRelationships(content)[0].Subject }

// first reports whether a relationship exists in the initial state.
func (o *Oracle) first(r Relationship) bool {
	if r.Relation == Follower {
		_, found := slices.BinarySearch(o.g.followers[r.Object.Number()-1], r.Subject)
		return found
	}
	two := o.g.twoRelationships(r.Object)
	return two[0] == r || two[1] == r
}

// has reports whether a relationship exists at a point. The caller holds the
// lock.
func (o *Oracle) has(r Relationship, point int64) bool {
	flips, _ := slices.BinarySearch(o.flips[r], point+1)
	return o.first(r) != (flips%2 == 1)
}

// may reports whether a viewer may see an object at a point. The caller holds
// the lock.
func (o *Oracle) may(viewer, object Object, point int64) bool {
	has := func(object Object, r Relation, subject Object) bool {
		return o.has(Relationship{object, r, subject}, point)
	}
	if object.Kind() == Interaction {
		two := o.g.twoRelationships(object) // its creator and parent
		return !has(two[0].Subject, Blocked, viewer) && o.may(viewer, two[1].Subject, point)
	}
	owner, public, followers := object, UserPublic, UserFollowers
	if object.Kind() == Content {
		owner, public, followers = o.Owner(object), ContentPublic, ContentFollowers
	}
	return viewer == owner || !has(owner, Blocked, viewer) &&
		(has(object, public, Everybody) || has(object, followers, owner) && has(owner, Follower, viewer))
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

// Change adds or deletes a relationship.
type Change struct {
	Relationship
	Add bool
}

// The kinds of writes. Each removes its relationship if it exists, or adds it
// if it does not.
const (
	ToggleFollower   = "follower"   // a user follows another or stops
	ToggleBlocked    = "blocked"    // a user blocks another or stops
	ToggleVisibility = "visibility" // content becomes public or is for followers
)

// Toggles are all kinds of writes.
var Toggles = []string{ToggleFollower, ToggleBlocked, ToggleVisibility}

// begin numbers a write and returns its changes. It is called while the write
// has the engine's write transaction, so that numbers are in commit order.
func (o *Oracle) begin(toggle string, object, subject Object) (write int64, changes []Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	flip := func(relation Relation, subject Object) {
		r := Relationship{object, relation, subject}
		changes = append(changes, Change{r, !o.has(r, o.begun.Load())})
	}
	switch toggle {
	case ToggleFollower:
		flip(Follower, subject)
	case ToggleBlocked:
		flip(Blocked, subject)
	default:
		flip(ContentPublic, Everybody)
		flip(ContentFollowers, o.Owner(object))
		// Deletions come first, so that an object never has two visibilities.
		if changes[0].Add {
			slices.Reverse(changes)
		}
	}
	write = o.begun.Load() + 1
	for _, c := range changes {
		o.flips[c.Relationship] = append(o.flips[c.Relationship], write)
	}
	o.begun.Store(write)
	return write, changes
}

// acknowledge records that a write, and all writes before it, are committed.
func (o *Oracle) acknowledge(write int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked.Store(max(o.acked.Load(), write))
}

// void records that a write was rolled back.
func (o *Oracle) void(write int64, changes []Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range changes {
		o.flips[c.Relationship] = slices.DeleteFunc(o.flips[c.Relationship], func(w int64) bool { return w == write })
	}
}

// changed returns every relationship that a write has touched, in order, and
// whether it exists at the last point.
func (o *Oracle) changed() []Change {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]Change, 0, len(o.flips))
	for r := range o.flips {
		list = append(list, Change{r, o.has(r, o.begun.Load())})
	}
	slices.SortFunc(list, func(a, b Change) int { return int(a.Object - b.Object) })
	return list
}
