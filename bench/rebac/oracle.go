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
	data  *Data
	words int // of a set

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

// NewOracle reads a data set.
func NewOracle(d *Data) *Oracle {
	o := &Oracle{data: d, words: d.Size.Users/64 + 1}
	o.admins, o.members, o.managers = o.sets(d.Size.Orgs), o.sets(d.Size.Groups), o.sets(d.Size.Groups)
	for _, m := range d.Members {
		if m.Role == Manager {
			o.admins[m.In-1].add(m.User)
		}
	}
	for _, m := range d.GroupMembers {
		o.members[m.In-1].add(m.User)
		if m.Role == Manager {
			o.managers[m.In-1].add(m.User)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range d.Hierarchy {
			m := o.members[e.Parent-1].union(o.members[e.Child-1])
			g := o.managers[e.Parent-1].union(o.managers[e.Child-1])
			changed = changed || m || g
		}
	}
	o.lists = make([][]Entry, d.Size.Resources)
	all := make([]Entry, 0, d.Size.Entries())
	for e := range d.Entries() {
		all = append(all, e)
		n := len(o.lists[e.Resource-1]) + 1
		o.lists[e.Resource-1] = all[len(all)-n:]
	}
	return o
}

func (o *Oracle) sets(n int) []set {
	list := make([]set, n)
	for i := range list {
		list[i] = make(set, o.words)
	}
	return list
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

// May tells whether a user may.
func (o *Oracle) May(p Permission, user, resource int) bool {
	if o.admins[o.data.ResourceOrg[resource-1]-1].has(user) {
		return true
	}
	for _, e := range o.lists[resource-1] {
		if o.grants(e, p, user) {
			return true
		}
	}
	return false
}

// grants tells whether one entry of a list is enough.
func (o *Oracle) grants(e Entry, p Permission, user int) bool {
	switch e.Relation {
	case ManagerUser:
		return e.Subject == user
	case ManagerGroup:
		return o.managers[e.Subject-1].has(user)
	case ViewerUser:
		return p == View && e.Subject == user
	case ViewerGroup:
		return p == View && o.members[e.Subject-1].has(user)
	}
	return false
}

// Resources calls f for each resource for which a user may, in order.
func (o *Oracle) Resources(p Permission, user int, f func(resource int)) {
	for resource := 1; resource <= o.data.Size.Resources; resource++ {
		if o.May(p, user, resource) {
			f(resource)
		}
	}
}

// Users calls f for each user who may, in order.
func (o *Oracle) Users(p Permission, resource int, f func(user int)) {
	may := make(set, o.words)
	may.union(o.admins[o.data.ResourceOrg[resource-1]-1])
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
	for i, w := range may {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + bits.TrailingZeros64(w))
		}
	}
}

// views returns for each user how many resources the user may view.
func (o *Oracle) views() []int {
	counts := make([]int, o.data.Size.Users+1)
	for resource := 1; resource <= o.data.Size.Resources; resource++ {
		o.Users(View, resource, func(user int) { counts[user]++ })
	}
	return counts
}
