package rebac

import (
	"maps"
	"slices"
)

// Permission is an action that a user may be allowed to do.
type Permission string

// The permissions.
const (
	Manage Permission = "manage"
	View   Permission = "view"
)

// set is a set of users.
type set map[int]bool

func (s set) list() []int { return slices.Sorted(maps.Keys(s)) }

// Oracle knows every answer. It keeps sets of users. It does not compute the
// closure as the stores do: it joins the sets of child groups to their parents'
// until nothing changes.
type Oracle struct {
	data *Data

	admins   []set     // by organization
	members  []set     // by group, with managers and the members of child groups
	managers []set     // by group, with the managers of child groups
	lists    [][]Entry // by resource
}

// NewOracle reads a data set.
func NewOracle(d *Data) *Oracle {
	o := &Oracle{
		data: d, lists: make([][]Entry, d.Size.Resources),
		admins: sets(d.Admins), members: sets(d.GroupMembers, d.GroupManagers), managers: sets(d.GroupManagers),
	}
	for changed := true; changed; {
		changed = false
		for _, e := range d.Hierarchy {
			for _, groups := range [][]set{o.members, o.managers} {
				before := len(groups[e.Parent-1])
				maps.Copy(groups[e.Parent-1], groups[e.Child-1])
				changed = changed || len(groups[e.Parent-1]) > before
			}
		}
	}
	for e := range d.Entries() {
		o.lists[e.Resource-1] = append(o.lists[e.Resource-1], e)
	}
	return o
}

// sets returns the users at each position of any of the lists.
func sets(lists ...[][]int) []set {
	sets := make([]set, len(lists[0]))
	for i := range sets {
		sets[i] = set{}
	}
	for _, places := range lists {
		for i, users := range places {
			for _, user := range users {
				sets[i][user] = true
			}
		}
	}
	return sets
}

// listed returns the users whom an entry of the resource's list permits.
func (o *Oracle) listed(p Permission, resource int) set {
	may := set{}
	for _, e := range o.lists[resource-1] {
		switch {
		case e.Relation == ManagerUser, e.Relation == ViewerUser && p == View:
			may[e.Subject] = true
		case e.Relation == ManagerGroup:
			maps.Copy(may, o.managers[e.Subject-1])
		case e.Relation == ViewerGroup && p == View:
			maps.Copy(may, o.members[e.Subject-1])
		}
	}
	return may
}

// users returns all permitted users.
func (o *Oracle) users(p Permission, resource int) set {
	may := o.listed(p, resource)
	maps.Copy(may, o.admins[o.data.ResourceOrg[resource-1]-1])
	return may
}

// May reports whether a user has a permission.
func (o *Oracle) May(p Permission, user, resource int) bool { return o.users(p, resource)[user] }
