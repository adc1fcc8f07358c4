package social

import "slices"

// Change adds or deletes a relationship.
type Change struct {
	Relationship
	Add bool
}

// The kinds of writes: what one changes was there and goes, or the other way round.
const (
	ToggleFollower   = "follower"   // a user follows another or stops
	ToggleBlocked    = "blocked"    // a user blocks another or stops
	ToggleVisibility = "visibility" // content becomes public or is for followers
)

// Toggles are all kinds of writes.
var Toggles = []string{ToggleFollower, ToggleBlocked, ToggleVisibility}

// plan returns the changes that a write makes now. The caller holds the lock.
func (o *Oracle) plan(toggle string, object, subject Object) []Change {
	flip := func(relation Relation, subject Object) Change {
		r := Relationship{object, relation, subject}
		return Change{r, !o.has(r, o.begun.Load())}
	}
	switch toggle {
	case ToggleFollower:
		return []Change{flip(Follower, subject)}
	case ToggleBlocked:
		return []Change{flip(Blocked, subject)}
	}
	// What goes comes first, so that there is always one visibility at most.
	list := []Change{flip(ContentPublic, Everybody), flip(ContentFollowers, o.Owner(object))}
	if list[0].Add {
		slices.Reverse(list)
	}
	return list
}

// begin numbers a write and remembers its changes. It is called while the write
// has the engine's transaction, so that numbers are in the order of commits.
func (o *Oracle) begin(toggle string, object, subject Object) (write int64, changes []Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changes = o.plan(toggle, object, subject)
	write = o.begun.Load() + 1
	for _, c := range changes {
		o.changes[c.Relationship] = append(o.changes[c.Relationship], change{write, c.Add})
	}
	o.begun.Store(write)
	return write, changes
}

// acknowledge tells that a write is committed, and so are those before it.
func (o *Oracle) acknowledge(write int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked.Store(max(o.acked.Load(), write))
}

// void tells that a write was rolled back.
func (o *Oracle) void(write int64, changes []Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range changes {
		o.changes[c.Relationship] = slices.DeleteFunc(o.changes[c.Relationship], func(c change) bool { return c.write == write })
	}
}

// changed returns every relationship that a write has touched, and whether it is
// there at the last point, in order.
func (o *Oracle) changed() []Change {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]Change, 0, len(o.changes))
	for r := range o.changes {
		list = append(list, Change{r, o.has(r, o.begun.Load())})
	}
	slices.SortFunc(list, func(a, b Change) int { return int(a.Object - b.Object) })
	return list
}
