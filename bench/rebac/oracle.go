package rebac

import "math/bits"

// Permission is what is asked for.
type Permission string

// The permissions.
const (
	Manage Permission = "manage"
	View   Permission = "view"
)

// Oracle knows every answer. It holds sets of users, and comes by its closure
// otherwise than the stores do: it joins sets until nothing changes.
type Oracle struct {
	data *Data

	admins   []set // by organization
	members  []set // by group, managers and those of groups below included
	managers []set // by group, those of groups below included
	lists    [][]Entry
}

// set is a set of users, a bit each.
type set []uint64

func (s set) has(user int) bool { return s[user>>6]>>(user&63)&1 != 0 }
func (s set) add(user int)      { s[user>>6] |= 1 << (user & 63) }

// union adds a set and tells whether that changed anything.
func (s set) union(o set) bool {
	changed := false
	for i, w := range o {
		if s[i]|w != s[i] {
			s[i] |= w
			changed = true
		}
	}
	return changed
}

// each calls f for each user, in order.
func (s set) each(f func(user int)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + bits.TrailingZeros64(w))
		}
	}
}

// NewOracle reads a data set.
func NewOracle(d *Data) *Oracle {
	o := &Oracle{data: d, lists: make([][]Entry, d.Size.Resources)}
	o.admins, o.managers = o.sets(d.Admins), o.sets(d.GroupManagers)
	o.members = o.sets(d.GroupMembers)
	for i := range o.members {
		o.members[i].union(o.managers[i])
	}
	for changed := true; changed; {
		changed = false
		for _, e := range d.Hierarchy {
			m := o.members[e.Parent-1].union(o.members[e.Child-1])
			g := o.managers[e.Parent-1].union(o.managers[e.Child-1])
			changed = changed || m || g
		}
	}
	all := make([]Entry, 0, d.Size.Entries())
	for e := range d.Entries() {
		all = append(all, e)
		n := len(o.lists[e.Resource-1]) + 1
		o.lists[e.Resource-1] = all[len(all)-n:]
	}
	return o
}

func (o *Oracle) newSet() set { return make(set, o.data.Size.Users/64+1) }

func (o *Oracle) sets(lists [][]int) []set {
	sets := make([]set, len(lists))
	for i, users := range lists {
		sets[i] = o.newSet()
		for _, user := range users {
			sets[i].add(user)
		}
	}
	return sets
}

// Closure returns the number of pairs of a user and a group that the user has a
// role in.
func (o *Oracle) Closure() (n int) {
	for _, s := range o.members {
		for _, w := range s {
			n += bits.OnesCount64(w)
		}
	}
	return n
}

// listed returns the users who may by an entry of the resource's list.
func (o *Oracle) listed(p Permission, resource int) set {
	may := o.newSet()
	for _, e := range o.lists[resource-1] {
		switch {
		case e.Relation == ManagerUser, e.Relation == ViewerUser && p == View:
			may.add(e.Subject)
		case e.Relation == ManagerGroup:
			may.union(o.managers[e.Subject-1])
		case e.Relation == ViewerGroup && p == View:
			may.union(o.members[e.Subject-1])
		}
	}
	return may
}

// users returns the users who may.
func (o *Oracle) users(p Permission, resource int) set {
	may := o.listed(p, resource)
	may.union(o.admins[o.data.ResourceOrg[resource-1]-1])
	return may
}

// May tells whether a user may.
func (o *Oracle) May(p Permission, user, resource int) bool { return o.users(p, resource).has(user) }
