package rebac

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/bench/graph"
)

// Random streams, one for each purpose, so that no stream depends on how many
// numbers another has drawn.
const (
	streamMembers = iota + 1
	streamGroups
	streamCounts
	streamEntries
	streamQuestions
)

// The skews of the members of organizations; see draw.
const (
	orgCurve   = 1.245 // of the sizes of organizations
	orgSkew    = 1.6   // of users over the further organizations that they join
	memberSkew = 1.05  // of group members over the users of an organization
)

// maxOrgs is the maximum number of organizations of a user.
const maxOrgs = 8

// generator generates the relations that are kept in memory.
type generator struct {
	*Data
	firstOrgs []int   // the first organization of user i+1
	orgUsers  [][]int // by organization, in order
}

// Generate generates a data set. It fails when a size cannot be met, such as
// more entries than an organization has users.
func Generate(size Size, seed uint64) (*Data, error) {
	g := &generator{Data: &Data{Size: size, Seed: seed, Heavy: 1}}
	for _, step := range []func() error{g.makeMembers, g.makeGroups, g.makeHierarchy, g.makeResources, g.makeLists} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("generate permissions of size %s: %w", size.Name, err)
		}
	}
	return g.Data, nil
}

// curve returns n weights that grow from low to high; an exponent above 1 keeps
// more of them low.
func curve(n int, low, high, exponent float64) func(i int) float64 {
	return func(i int) float64 { return low + (high-low)*math.Pow(float64(i)/float64(max(n-1, 1)), exponent) }
}

// repeat returns the numbers from 1 on, each as often as its count.
func repeat(counts []int) (list []int) {
	for i, n := range counts {
		list = append(list, slices.Repeat([]int{i + 1}, n)...)
	}
	return list
}

// draw draws an id from a pool; a skew above 1 prefers the first ones. If the
// id is taken, it returns the next free one.
func draw(r *rand.Rand, pool []int, skew float64, taken func(id int) bool) int {
	at := int(math.Pow(r.Float64(), skew) * float64(len(pool)))
	for taken(pool[at]) {
		at = (at + 1) % len(pool)
	}
	return pool[at]
}

// fill draws ids for a list until it has its size.
func fill(r *rand.Rand, list []int, size int, pool []int, skew float64, taken func(id int) bool) []int {
	in := make(map[int]bool, size)
	for _, id := range list {
		in[id] = true
	}
	for len(list) < size {
		id := draw(r, pool, skew, func(id int) bool { return in[id] || taken(id) })
		in[id] = true
		list = append(list, id)
	}
	return list
}

// ids returns the positions, from 1 on, of a value in a list.
func ids(list []int, value int) (ids []int) {
	first, _ := slices.BinarySearch(list, value)
	for i := first; i < len(list) && list[i] == value; i++ {
		ids = append(ids, i+1)
	}
	return ids
}

// makeMembers assigns users to their first organizations and draws further
// ones, the largest organization first. The heavy manager is an admin of only
// the smallest organization and a member of the largest ones.
func (g *generator) makeMembers() error {
	s, r := g.Size, g.stream(streamMembers)
	// Smallest and largest as in the document, less the number that every
	// organization gets.
	low := s.Admins + 1
	sizes, err := graph.Divide(s.Memberships, s.Orgs, low, curve(s.Orgs, 31-float64(low), 535-float64(low), orgCurve), graph.UpTo(s.Users))
	if err != nil {
		return err
	}
	counts, err := graph.Divide(s.Users, s.Orgs, 1, func(i int) float64 { return float64(sizes[i]) }, func(i int) int { return sizes[i] })
	if err != nil {
		return err
	}
	g.firstOrgs = repeat(counts)
	others := g.firstOrgs[g.Heavy:] // the heavy manager's is the smallest organization
	r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	all, joined := make([]int, s.Users), make([]int, s.Users+1)
	g.orgUsers, g.Members, g.Admins = make([][]int, s.Orgs), make([][]int, s.Orgs), make([][]int, s.Orgs)
	for i, org := range g.firstOrgs {
		all[i], joined[i+1] = i+1, 1
		g.orgUsers[org-1] = append(g.orgUsers[org-1], i+1)
	}
	for org := s.Orgs - 1; org >= 0; org-- {
		users := g.orgUsers[org]
		if org > 0 && org >= s.Orgs-3 {
			users = append(users, g.Heavy)
		}
		users = fill(r, users, sizes[org], all, orgSkew, func(user int) bool { return user == g.Heavy || joined[user] == maxOrgs })
		for _, user := range users[len(g.orgUsers[org]):] {
			joined[user]++
		}
		slices.Sort(users)
		g.orgUsers[org] = users
		for _, user := range users {
			if len(g.Admins[org]) < s.Admins && (user != g.Heavy || org == 0) {
				g.Admins[org] = append(g.Admins[org], user)
			} else {
				g.Members[org] = append(g.Members[org], user)
			}
		}
	}
	return nil
}

// makeGroups gives organizations groups in proportion to their users, with a
// few large groups. Each user is assigned to a group of the first organization;
// the other members are drawn. 30 groups have 21 managers in groups of 1 to 3.
func (g *generator) makeGroups() error {
	s, r := g.Size, g.stream(streamGroups)
	counts, err := graph.Divide(s.Groups, s.Orgs, 1, func(i int) float64 { return float64(len(g.orgUsers[i])) }, graph.UpTo(s.Groups))
	if err != nil {
		return err
	}
	g.GroupOrg = repeat(counts)
	usersOf := func(group int) []int { return g.orgUsers[g.GroupOrg[group]-1] }
	largest := s.GroupMembers * 388 / 100 / s.Groups // 306 where the mean is 79
	sizes, err := graph.Divide(s.GroupMembers, s.Groups, min(18, s.GroupMembers/s.Groups/2),
		func(i int) float64 { return (0.1 + math.Pow(r.Float64(), 4)) * float64(len(usersOf(i))) },
		func(i int) int { return min(len(usersOf(i)), largest) })
	if err != nil {
		return err
	}
	managed := min(max(s.GroupManagers*7/10, 1), s.Groups)
	managers, err := graph.Divide(s.GroupManagers, managed, 1, func(int) float64 { return r.Float64() }, graph.UpTo(3))
	if err != nil {
		return fmt.Errorf("managers of groups: %w", err)
	}
	g.GroupMembers, g.GroupManagers = make([][]int, s.Groups), make([][]int, s.Groups)
	dealt := make([]int, s.Orgs)
	for i, org := range g.firstOrgs {
		groups := ids(g.GroupOrg, org)
		group := groups[dealt[org-1]%len(groups)] - 1
		dealt[org-1]++
		g.GroupMembers[group] = append(g.GroupMembers[group], i+1)
	}
	for group, members := range g.GroupMembers {
		if len(members) > sizes[group] {
			return errors.New("groups are too small for each user to be in one")
		}
		g.GroupMembers[group] = fill(r, members, sizes[group], usersOf(group), memberSkew, func(int) bool { return false })
	}
	for i, n := range managers {
		group := i * s.Groups / managed
		g.GroupManagers[group] = fill(r, nil, n, usersOf(group), 1, func(user int) bool { return user == g.Heavy })
	}
	return nil
}

// makeHierarchy puts groups of an organization into others. Of seven edges five
// form pairs, one adds a second child, and one a third level. So 14 edges have
// 12 parents.
func (g *generator) makeHierarchy() error {
	pairs, second := (g.Size.Edges*5+6)/7, g.Size.Edges/7
	third := g.Size.Edges - pairs - second
	for org := g.Size.Orgs; org >= 1; org-- {
		groups := ids(g.GroupOrg, org)
		add := func(left *int, child, parent int) bool {
			if *left == 0 || child >= len(groups) {
				return false
			}
			g.Hierarchy = append(g.Hierarchy, Edge{groups[child], groups[parent]})
			*left--
			return true
		}
		add(&pairs, 1, 0)
		if !add(&third, 2, 1) {
			add(&second, 2, 0)
		}
	}
	if len(g.Hierarchy) < g.Size.Edges {
		return fmt.Errorf("room for %d of %d edges of the hierarchy", len(g.Hierarchy), g.Size.Edges)
	}
	return nil
}

// makeResources gives organizations resources by size. The smallest gets as
// many as the heavy manager needs.
func (g *generator) makeResources() error {
	rest, orgs := g.Size.Resources-g.Size.HeavyOrg, g.Size.Orgs-1
	counts, err := graph.Divide(rest, orgs, 1, curve(orgs, 1, 3, 1), graph.UpTo(rest))
	g.ResourceOrg = repeat(append([]int{g.Size.HeavyOrg}, counts...))
	return err
}

// makeLists decides who can be on access lists, and how many entries of each
// relation a resource has; the last users of an organization are on none. The
// heavy manager is put on lists separately, evenly over the resources of the
// organizations it belongs to.
func (g *generator) makeLists() error {
	s, r := g.Size, g.stream(streamCounts)
	g.pools = make([]pool, s.Orgs)
	var heavy []int
	for org, users := range g.orgUsers {
		g.pools[org].users = slices.DeleteFunc(slices.Clone(users), func(user int) bool { return user == g.Heavy || user > s.Users-s.Idle })
		g.pools[org].groups, g.pools[org].resources = ids(g.GroupOrg, org+1), ids(g.ResourceOrg, org+1)
		if slices.Contains(g.Members[org], g.Heavy) {
			heavy = append(heavy, g.pools[org].resources...)
		}
	}
	poolOf := func(i int) *pool { return &g.pools[g.ResourceOrg[i]-1] }
	for _, c := range []struct {
		relation   Relation
		total, low int
		high       func(i int) int
	}{
		{ManagerUser, s.ManagerUsers, 1, func(i int) int { return min(4, len(poolOf(i).users)/2) }},
		{ViewerUser, s.ViewerUsers, 1, func(i int) int { return min(21, (len(poolOf(i).users)+1)/2) }},
		{ManagerGroup, s.ManagerGroups, 0, func(i int) int { return min(1, len(poolOf(i).groups)) }},
		{ViewerGroup, s.ViewerGroups, 0, func(i int) int { return min(6, len(poolOf(i).groups)) }},
	} {
		counts, err := graph.Divide(c.total, s.Resources, c.low, func(int) float64 { return 0.02 + r.Float64() }, c.high)
		if err != nil {
			return fmt.Errorf("entries of relation %d: %w", c.relation, err)
		}
		g.counts[c.relation] = counts
	}
	g.heavy = make(map[int]bool, s.HeavyDirect)
	for k := range s.HeavyDirect {
		resource := heavy[k*len(heavy)/s.HeavyDirect]
		g.heavy[resource] = true
		g.counts[ManagerUser][resource-1]--
	}
	return nil
}
