package rebac

import "strconv"

// Size says how much of everything there is. Counts are totals over all
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

	// Entries of the access lists, by relation.
	ManagerUsers  int
	ManagerGroups int
	ViewerUsers   int
	ViewerGroups  int

	// The heavy manager is the managing user of so many resources, and admin of
	// the smallest organization, which has HeavyOrg resources. The regular viewer
	// is the user whose view is nearest to RegularView resources.
	HeavyDirect int
	HeavyOrg    int
	RegularView int
}

// Full is the data set of the user's document. The document configures 16
// organizations of 200 users, 20 groups and 2,000 resources, 3 groups and 2
// organizations a user, and a resource with 2 and 10 users and 1 and 3 groups that
// manage and view it; sizes of organizations are skewed, and what its generator
// came to is this: 1,950 users, 22,084 resources, 364,983 entries of access lists,
// 12.99 of them users a resource. How the entries divide into managing and viewing
// ones it does not say: here they do as configured, 2 to 10 and 1 to 3.
var Full = Size{
	Name: "full", Orgs: 16, Users: 1950, Idle: 113, Memberships: 4117, Admins: 10,
	Groups: 170, GroupMembers: 13411, GroupManagers: 30, Edges: 14, Resources: 22084,
	ManagerUsers: 47812, ManagerGroups: 19528, ViewerUsers: 239059, ViewerGroups: 58584,
	HeavyDirect: 221, HeavyOrg: 600, RegularView: 3145,
}

// Small is about a tenth of Full, for benchmarks by the way.
var Small = Size{
	Name: "small", Orgs: 6, Users: 300, Idle: 12, Memberships: 630, Admins: 8,
	Groups: 30, GroupMembers: 2000, GroupManagers: 12, Edges: 7, Resources: 2000,
	ManagerUsers: 4300, ManagerGroups: 1760, ViewerUsers: 21600, ViewerGroups: 5200,
	HeavyDirect: 40, HeavyOrg: 60, RegularView: 300,
}

// Tiny is for tests that ask everything.
var Tiny = Size{
	Name: "tiny", Orgs: 4, Users: 60, Idle: 3, Memberships: 120, Admins: 3,
	Groups: 12, GroupMembers: 200, GroupManagers: 6, Edges: 4, Resources: 120,
	ManagerUsers: 240, ManagerGroups: 100, ViewerUsers: 800, ViewerGroups: 250,
	HeavyDirect: 8, HeavyOrg: 12, RegularView: 30,
}

// Entries returns the number of entries of access lists.
func (s Size) Entries() int {
	return s.ManagerUsers + s.ManagerGroups + s.ViewerUsers + s.ViewerGroups
}

// Objects returns the number of rows of all relations, which is what the document
// divides the time of ingest by.
func (s Size) Objects() int {
	return s.Orgs + s.Users + s.Memberships + s.Groups + s.GroupMembers + s.GroupManagers + s.Edges + s.Resources + s.Entries()
}

// Times returns the size with n times the organizations and all that is in them.
// Organizations stay as large as they are.
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

// Scaled returns the data set for a part of the document's, which is Full.
func Scaled(scale float64) Size {
	switch {
	case scale < 0.02:
		return Tiny
	case scale < 0.5:
		return Small
	}
	return Full.Times(max(int(scale), 1))
}
