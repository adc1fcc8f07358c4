package rebac

import "iter"

// The roles of users in organizations and groups.
const (
	Member  = 0 // of an organization or a group
	Manager = 1 // an admin of the organization, or a manager of the group
)

// Relation is what an entry of an access list says of its subject.
type Relation int8

// The relations, as they are stored.
const (
	ManagerUser  Relation = 1
	ManagerGroup Relation = 2
	ViewerUser   Relation = 3
	ViewerGroup  Relation = 4
)

// Role is a user with a role in an organization or a group.
type Role struct {
	User, In int
	Role     int
}

// Edge is a group that lies in another.
type Edge struct{ Child, Parent int }

// Entry is one line of a resource's access list.
type Entry struct {
	Resource int
	Relation Relation
	Subject  int // a user or a group, as the relation says
}

// Data is a generated data set. Ids of users, organizations, groups and resources
// count from 1. The same size and seed give the same data.
type Data struct {
	Size Size
	Seed uint64

	Members      []Role // of organizations, by user and organization
	GroupOrg     []int  // the organization of group i+1
	GroupMembers []Role // by themselves, not through other groups; by user, group and role
	Hierarchy    []Edge
	ResourceOrg  []int // the organization of resource i+1

	// Heavy manages exactly HeavyDirect + HeavyOrg resources.
	Heavy int

	orgs   []orgData
	counts [5][]uint8 // entries of each resource, by relation
}

// orgData is what the access lists of an organization are made of.
type orgData struct {
	users  []int // those that get onto lists; the first ones more often
	groups []int
}

// Entries streams the access lists by resource, relation and subject.
func (d *Data) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		w := newWriter(d)
		for resource := 1; resource <= d.Size.Resources; resource++ {
			for _, e := range w.list(resource) {
				if !yield(e) {
					return
				}
			}
		}
	}
}
