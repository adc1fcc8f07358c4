package rebac

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Streams of random numbers, one for each purpose, so that one does not depend on
// how many another draws.
const (
	streamMembers = iota + 1
	streamGroups
	streamCounts
	streamEntries
	streamQuestions
)

// The skews of what is in organizations; see skewed.
const (
	orgCurve   = 1.245 // of the sizes of organizations
	orgSkew    = 1.6   // of users over the organizations that they join beside their own
	memberSkew = 1.05  // of group members over the users of an organization
)

// maxOrgs is in how many organizations a user can be.
const maxOrgs = 8

// generator makes the relations that are kept in memory.
type generator struct {
	*Data
	orgUsers [][]int // by organization
	homes    [][]int // of these, those whose first organization it is
}

// Generate makes a data set. It fails when a size cannot be met, such as more
// entries than an organization has users.
func Generate(size Size, seed uint64) (*Data, error) {
	g := &generator{Data: &Data{Size: size, Seed: seed, Heavy: 1}}
	for _, step := range []func() error{g.makeMembers, g.makeGroups, g.makeGroupMembers, g.makeHierarchy, g.makeResources, g.makeCounts} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("generate permissions of size %s: %w", size.Name, err)
		}
	}
	return g.Data, nil
}

func unlimited(int) int { return math.MaxInt32 }

// curve returns n weights that grow from low to high; an exponent above 1 keeps
// more of them low.
func curve(n int, low, high, exponent float64) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = low + (high-low)*math.Pow(float64(i)/float64(max(n-1, 1)), exponent)
	}
	return weights
}

// makeMembers deals users to their first organizations and draws further ones. The
// heavy manager is an admin of the smallest organization and member of the largest
// ones.
func (g *generator) makeMembers() error {
	s := g.Size
	// Smallest and largest as in the document, less what everybody gets.
	low := s.Admins + 1
	weights := curve(s.Orgs, 31-float64(low), 535-float64(low), orgCurve)
	sizes, err := apportion(s.Memberships, weights, low, func(int) int { return s.Users })
	if err != nil {
		return err
	}
	shares := make([]float64, len(sizes))
	for i, n := range sizes {
		shares[i] = float64(n)
	}
	homes, err := apportion(s.Users, shares, 1, func(i int) int { return sizes[i] })
	if err != nil {
		return err
	}
	g.orgUsers, g.homes = make([][]int, s.Orgs), make([][]int, s.Orgs)
	joined := make([]int, s.Users+1) // organizations of a user
	g.dealHomes(homes, joined)
	r := rand.New(rand.NewPCG(g.Seed, streamMembers))
	for org := s.Orgs - 1; org >= 0; org-- {
		in := make(map[int]bool, sizes[org])
		for _, user := range g.orgUsers[org] {
			in[user] = true
		}
		if org > 0 && org >= s.Orgs-3 && len(g.orgUsers[org]) < sizes[org] {
			g.join(org, g.Heavy, in, joined)
		}
		for len(g.orgUsers[org]) < sizes[org] {
			user := skewed(r, s.Users, orgSkew) + 1
			for in[user] || user == g.Heavy || joined[user] >= maxOrgs {
				user = user%s.Users + 1
			}
			g.join(org, user, in, joined)
		}
		slices.Sort(g.orgUsers[org])
		g.addMembers(org)
	}
	slices.SortFunc(g.Members, compareRoles)
	return nil
}

// dealHomes gives each user a first organization, in proportion all along the
// ids, so that each has some of the users that join many others.
func (g *generator) dealHomes(homes, joined []int) {
	given := make([]int, len(homes))
	for user := 1; user <= g.Size.Users; user++ {
		org := 0
		if user > 1 { // the heavy manager's is the smallest
			for i := range homes {
				if given[i] < homes[i] && (given[org] >= homes[org] || given[i]*homes[org] < given[org]*homes[i]) {
					org = i
				}
			}
		}
		given[org]++
		g.homes[org] = append(g.homes[org], user)
		g.orgUsers[org] = append(g.orgUsers[org], user)
		joined[user]++
	}
}

func (g *generator) join(org, user int, in map[int]bool, joined []int) {
	in[user] = true
	joined[user]++
	g.orgUsers[org] = append(g.orgUsers[org], user)
}

// addMembers makes the roles of an organization: its first users but the heavy
// manager, who is admin of the smallest alone, are its admins.
func (g *generator) addMembers(org int) {
	admins := 0
	for _, user := range g.orgUsers[org] {
		role := Member
		if admins < g.Size.Admins && (user != g.Heavy || org == 0) {
			role = Manager
			admins++
		}
		g.Members = append(g.Members, Role{User: user, In: org + 1, Role: role})
	}
}

func compareRoles(a, b Role) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.In, b.In), cmp.Compare(a.Role, b.Role))
}

// makeResources gives organizations resources by their rank: the smallest has as
// many as the heavy manager needs.
func (g *generator) makeResources() error {
	s := g.Size
	rest := s.Orgs - 1
	mean := float64(s.Resources-s.HeavyOrg) / float64(rest)
	counts, err := apportion(s.Resources-s.HeavyOrg, curve(rest, mean/2, mean*3/2, 1), 1, unlimited)
	if err != nil {
		return err
	}
	for org, n := range append([]int{s.HeavyOrg}, counts...) {
		for range n {
			g.ResourceOrg = append(g.ResourceOrg, org+1)
		}
	}
	return nil
}

// makeCounts decides how many entries of each relation a resource has.
func (g *generator) makeCounts() error {
	s := g.Size
	r := rand.New(rand.NewPCG(g.Seed, streamCounts))
	g.setPools()
	managers := func(i int) int { return min(4, len(g.poolOf(i).users)/2) }
	viewers := func(i int) int { return min(21, (len(g.poolOf(i).users)+1)/2) }
	groups := func(most int) func(i int) int {
		return func(i int) int { return min(most, len(g.poolOf(i).groups)) }
	}
	for _, c := range []struct {
		relation Relation
		total    int
		low      int
		high     func(i int) int
	}{
		{ManagerUser, s.ManagerUsers, 1, managers},
		{ViewerUser, s.ViewerUsers, 1, viewers},
		{ManagerGroup, s.ManagerGroups, 0, groups(1)},
		{ViewerGroup, s.ViewerGroups, 0, groups(6)},
	} {
		weights := make([]float64, s.Resources)
		for i := range weights {
			weights[i] = 0.02 + r.Float64()
		}
		counts, err := apportion(c.total, weights, c.low, c.high)
		if err != nil {
			return fmt.Errorf("entries of relation %d: %w", c.relation, err)
		}
		g.counts[c.relation] = make([]uint8, s.Resources)
		for i, n := range counts {
			g.counts[c.relation][i] = uint8(n)
		}
	}
	return nil
}

func (g *generator) poolOf(resource int) *orgData { return &g.orgs[g.ResourceOrg[resource]-1] }

// setPools says who gets onto lists: of the users all but the heavy manager, who
// is put there apart, and the last ones, who are on none.
func (g *generator) setPools() {
	g.orgs = make([]orgData, g.Size.Orgs)
	for org, users := range g.orgUsers {
		for _, user := range users {
			if user != g.Heavy && user <= g.Size.Users-g.Size.Idle {
				g.orgs[org].users = append(g.orgs[org].users, user)
			}
		}
	}
	for group, org := range g.GroupOrg {
		g.orgs[org-1].groups = append(g.orgs[org-1].groups, group+1)
	}
}
