package rebac

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Relation is what an access-list entry grants its subject.
type Relation int8

// The relations, with their stored values.
const (
	ManagerUser  Relation = 1
	ManagerGroup Relation = 2
	ViewerUser   Relation = 3
	ViewerGroup  Relation = 4
)

// Edge is the membership of a child group in a parent group.
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
	GroupMembers  [][]int // direct members of group i+1, not through other groups
	GroupManagers [][]int // some may be members too
	Hierarchy     []Edge
	ResourceOrg   []int // the organization of resource i+1

	// Heavy is the user who manages exactly HeavyDirect + HeavyOrg resources.
	Heavy int

	pools  []pool
	counts [5][]int     // entries of each resource, by relation
	heavy  map[int]bool // the resources whose list the heavy manager is on
}

// pool has the users and groups that may be on an organization's access lists.
type pool struct {
	users     []int // users that may be on access lists; the first ones are more frequent
	groups    []int
	resources []int
}

// How strongly access lists prefer an organization's first users and groups: 1
// is evenly. With these values a few users are on several times as many lists
// as the rest.
const (
	userSkew  = 1.04
	groupSkew = 1.2
)

// stream returns the random numbers for one purpose.
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

// list appends the access list of a resource. A user manages or views it, and
// occurs once; a group may do both.
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

// Size is the number of objects of each kind. Counts are totals over all
// organizations and are met exactly.
type Size struct {
	Name          string // in names of benchmarks
	Orgs          int
	Users         int
	Idle          int // users on no access list
	Memberships   int // of users in organizations
	Admins        int // in each organization
	Groups        int
	GroupMembers  int
	GroupManagers int
	Edges         int // of the group hierarchy
	Resources     int

	// Access-list entries, by relation.
	ManagerUsers  int
	ManagerGroups int
	ViewerUsers   int
	ViewerGroups  int

	// The heavy manager is the managing user of HeavyDirect resources, and an
	// admin of the smallest organization, which has HeavyOrg resources. The
	// regular viewer is the user whose number of viewable resources is nearest
	// to RegularView.
	HeavyDirect int
	HeavyOrg    int
	RegularView int
}

// Full is the data set of the benchmark's document. The document configures 16
// organizations of 200 users, 20 groups and 2,000 resources; 3 groups and 2
// organizations a user; and for each resource 2 managing and 10 viewing users,
// and 1 managing and 3 viewing groups. Sizes of organizations are skewed. Its
// generator produced 1,950 users, 22,084 resources and 364,983 access-list
// entries, on average 12.99 users a resource. The document does not say how
// entries divide into managing and viewing; here they follow the configuration,
// 2 to 10 and 1 to 3.
var Full = Size{
	Name: "full", Orgs: 16, Users: 1950, Idle: 113, Memberships: 4117, Admins: 10,
	Groups: 170, GroupMembers: 13411, GroupManagers: 30, Edges: 14, Resources: 22084,
	ManagerUsers: 47812, ManagerGroups: 19528, ViewerUsers: 239059, ViewerGroups: 58584,
	HeavyDirect: 221, HeavyOrg: 600, RegularView: 3145,
}

// Small is about a tenth of Full, for quick benchmarks.
var Small = Size{
	Name: "small", Orgs: 6, Users: 300, Idle: 12, Memberships: 630, Admins: 8,
	Groups: 30, GroupMembers: 2000, GroupManagers: 12, Edges: 7, Resources: 2000,
	ManagerUsers: 4300, ManagerGroups: 1760, ViewerUsers: 21600, ViewerGroups: 5200,
	HeavyDirect: 40, HeavyOrg: 60, RegularView: 300,
}

// Tiny is for tests that ask every question.
var Tiny = Size{
	Name: "tiny", Orgs: 4, Users: 60, Idle: 3, Memberships: 120, Admins: 3,
	Groups: 12, GroupMembers: 200, GroupManagers: 6, Edges: 4, Resources: 120,
	ManagerUsers: 240, ManagerGroups: 100, ViewerUsers: 800, ViewerGroups: 250,
	HeavyDirect: 8, HeavyOrg: 12, RegularView: 30,
}

// Entries returns the number of access-list entries.
func (s Size) Entries() int {
	return s.ManagerUsers + s.ManagerGroups + s.ViewerUsers + s.ViewerGroups
}

// Objects returns the number of rows of all relations. The document divides the
// load time by it.
func (s Size) Objects() int {
	return s.Orgs + s.Users + s.Memberships + s.Groups + s.GroupMembers + s.GroupManagers + s.Edges + s.Resources + s.Entries()
}

// Times returns the size with n times as many organizations, each as large as
// before.
func (s Size) Times(n int) Size {
	if n == 1 {
		return s
	}
	s.Name += "x" + strconv.Itoa(n)
	for _, count := range []*int{
		&s.Orgs, &s.Users, &s.Idle, &s.Memberships, &s.Groups, &s.GroupMembers, &s.GroupManagers, &s.Edges,
		&s.Resources, &s.ManagerUsers, &s.ManagerGroups, &s.ViewerUsers, &s.ViewerGroups,
	} {
		*count *= n
	}
	return s
}

// Scaled returns the data set of a share of Full.
func Scaled(scale float64) Size {
	switch {
	case scale < 0.02:
		return Tiny
	case scale < 0.5:
		return Small
	}
	return Full.Times(max(int(scale), 1))
}
