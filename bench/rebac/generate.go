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

// The skews of what is in organizations; see draw.
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
	orgUsers [][]int // by organization, in order
	homes    [][]int // of these, those whose first organization it is
}

// Generate makes a data set. It fails when a size cannot be met, such as more
// entries than an organization has users.
func Generate(size Size, seed uint64) (*Data, error) {
	g := &generator{Data: &Data{Size: size, Seed: seed, Heavy: 1}}
	for _, step := range []func() error{g.makeMembers, g.makeGroups, g.makeGroupMembers, g.makeHierarchy, g.makeResources, g.makeLists} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("generate permissions of size %s: %w", size.Name, err)
		}
	}
	return g.Data, nil
}

func upTo(most int) func(int) int { return func(int) int { return most } }

// curve returns n weights that grow from low to high; an exponent above 1 keeps
// more of them low.
func curve(n int, low, high, exponent float64) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = low + (high-low)*math.Pow(float64(i)/float64(max(n-1, 1)), exponent)
	}
	return weights
}

// weigh returns n weights.
func weigh(n int, weight func(i int) float64) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = weight(i)
	}
	return weights
}

// repeat returns the numbers from 1 on, each as often as its count says.
func repeat(counts []int) (list []int) {
	for i, n := range counts {
		for range n {
			list = append(list, i+1)
		}
	}
	return list
}

// makeMembers deals users to their first organizations and draws further ones. The
// heavy manager is an admin of the smallest organization and member of the largest
// ones.
func (g *generator) makeMembers() error {
	s := g.Size
	// Smallest and largest as in the document, less what everybody gets.
	low := s.Admins + 1
	sizes, err := apportion(s.Memberships, curve(s.Orgs, 31-float64(low), 535-float64(low), orgCurve), low, upTo(s.Users))
	if err != nil {
		return err
	}
	homes, err := apportion(s.Users, weigh(s.Orgs, func(i int) float64 { return float64(sizes[i]) }), 1, func(i int) int { return sizes[i] })
	if err != nil {
		return err
	}
	g.dealHomes(homes)
	r := rand.New(rand.NewPCG(g.Seed, streamMembers))
	all := make([]int, s.Users)
	joined := make([]int, s.Users+1) // organizations of a user
	for i := range all {
		all[i], joined[i+1] = i+1, 1
	}
	g.orgUsers = make([][]int, s.Orgs)
	for org := s.Orgs - 1; org >= 0; org-- {
		users, in := slices.Clone(g.homes[org]), make(map[int]bool, sizes[org])
		for _, user := range users {
			in[user] = true
		}
		if org > 0 && org >= s.Orgs-3 && len(users) < sizes[org] {
			users = append(users, g.Heavy)
		}
		for len(users) < sizes[org] {
			user := draw(r, all, orgSkew, func(user int) bool { return in[user] || user == g.Heavy || joined[user] >= maxOrgs })
			in[user] = true
			joined[user]++
			users = append(users, user)
		}
		slices.Sort(users)
		g.orgUsers[org] = users
		g.addMembers(org)
	}
	slices.SortFunc(g.Members, compareRoles)
	return nil
}

// dealHomes gives each user a first organization, in proportion all along the
// ids, so that each has some of the users that join many others.
func (g *generator) dealHomes(homes []int) {
	g.homes = make([][]int, len(homes))
	for user := 1; user <= g.Size.Users; user++ {
		org := 0
		if user != g.Heavy { // whose is the smallest
			for i := range homes {
				given, best := len(g.homes[i]), len(g.homes[org])
				if given < homes[i] && (best >= homes[org] || given*homes[org] < best*homes[i]) {
					org = i
				}
			}
		}
		g.homes[org] = append(g.homes[org], user)
	}
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
	counts, err := apportion(s.Resources-s.HeavyOrg, curve(rest, mean/2, mean*3/2, 1), 1, upTo(s.Resources))
	g.ResourceOrg = repeat(append([]int{s.HeavyOrg}, counts...))
	return err
}

// makeLists decides who can be on access lists, and how many entries of each
// relation a resource has. The heavy manager is on lists of the organizations of
// which that user is a member and no admin, evenly.
func (g *generator) makeLists() error {
	s := g.Size
	g.setPools()
	r := rand.New(rand.NewPCG(g.Seed, streamCounts))
	poolOf := func(i int) *pool { return &g.pools[g.ResourceOrg[i]-1] }
	groups := func(most int) func(i int) int {
		return func(i int) int { return min(most, len(poolOf(i).groups)) }
	}
	for _, c := range []struct {
		relation   Relation
		total, low int
		high       func(i int) int
	}{
		{ManagerUser, s.ManagerUsers, 1, func(i int) int { return min(4, len(poolOf(i).users)/2) }},
		{ViewerUser, s.ViewerUsers, 1, func(i int) int { return min(21, (len(poolOf(i).users)+1)/2) }},
		{ManagerGroup, s.ManagerGroups, 0, groups(1)},
		{ViewerGroup, s.ViewerGroups, 0, groups(6)},
	} {
		counts, err := apportion(c.total, weigh(s.Resources, func(int) float64 { return 0.02 + r.Float64() }), c.low, c.high)
		if err != nil {
			return fmt.Errorf("entries of relation %d: %w", c.relation, err)
		}
		g.counts[c.relation] = counts
	}
	var lists []int
	for _, m := range g.Members {
		if m.User == g.Heavy && m.Role == Member {
			first, last := span(g.ResourceOrg, m.In)
			for i := first; i < last; i++ {
				lists = append(lists, i)
			}
		}
	}
	g.heavy = make(map[int]bool, s.HeavyDirect)
	for k, i := range lists {
		if (k+1)*s.HeavyDirect/len(lists) > k*s.HeavyDirect/len(lists) {
			g.heavy[i+1] = true
			g.counts[ManagerUser][i]--
		}
	}
	return nil
}

// setPools says who gets onto lists: of the users all but the heavy manager, who
// is put there apart, and the last ones, who are on none.
func (g *generator) setPools() {
	g.pools = make([]pool, g.Size.Orgs)
	for org, users := range g.orgUsers {
		for _, user := range users {
			if user != g.Heavy && user <= g.Size.Users-g.Size.Idle {
				g.pools[org].users = append(g.pools[org].users, user)
			}
		}
	}
	for group, org := range g.GroupOrg {
		g.pools[org-1].groups = append(g.pools[org-1].groups, group+1)
	}
}
