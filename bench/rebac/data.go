package rebac

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
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

	Members       [][]int // users of organization i+1 who are no admins, in order
	Admins        [][]int
	GroupOrg      []int   // the organization of group i+1
	GroupMembers  [][]int // users of group i+1 by themselves, not through other groups
	GroupManagers [][]int // some may be members too
	Hierarchy     []Edge
	ResourceOrg   []int // the organization of resource i+1

	// Heavy manages exactly HeavyDirect + HeavyOrg resources.
	Heavy int

	pools  []pool
	counts [5][]int     // entries of each resource, by relation
	heavy  map[int]bool // the resources whose list the heavy manager is on
}

// pool is what the access lists of an organization are made of.
type pool struct {
	users     []int // those that get onto lists; the first ones more often
	groups    []int
	resources []int
}

// How far lists lean to the first users and groups of an organization: 1 is
// evenly. With these a few users are on several times as many lists as the rest.
const (
	userSkew  = 1.04
	groupSkew = 1.2
)

// stream returns the random numbers of a purpose.
func (d *Data) stream(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(d.Seed, purpose)) }

// Entries streams the access lists by resource, relation and subject.
func (d *Data) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		r := d.stream(streamEntries)
		var list []Entry
		for i := range d.ResourceOrg {
			list = d.list(r, i+1, list[:0])
			for _, e := range list {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// list appends the access list of a resource. A user manages or views it, and is on
// the list once; a group may do both.
func (d *Data) list(r *rand.Rand, resource int, list []Entry) []Entry {
	from := 0
	add := func(relation Relation, pool []int, skew float64) {
		for range d.counts[relation][resource-1] {
			subject := draw(r, pool, skew, func(id int) bool {
				return slices.ContainsFunc(list[from:], func(e Entry) bool { return e.Subject == id })
			})
			list = append(list, Entry{resource, relation, subject})
		}
	}
	if d.heavy[resource] {
		list = append(list, Entry{resource, ManagerUser, d.Heavy})
	}
	p := &d.pools[d.ResourceOrg[resource-1]-1]
	add(ManagerUser, p.users, userSkew)
	add(ViewerUser, p.users, userSkew)
	from = len(list)
	add(ManagerGroup, p.groups, groupSkew)
	from = len(list)
	add(ViewerGroup, p.groups, groupSkew)
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}
