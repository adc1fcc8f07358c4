package rebac

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// makeGroups gives organizations groups by the number of their users.
func (g *generator) makeGroups() error {
	byUsers := weigh(g.Size.Orgs, func(org int) float64 { return float64(len(g.orgUsers[org])) })
	counts, err := apportion(g.Size.Groups, byUsers, 1, upTo(g.Size.Groups))
	g.GroupOrg = repeat(counts)
	return err
}

// makeGroupMembers decides the sizes of groups, a few of them large, and deals
// each user to a group of the first organization; the rest is drawn.
func (g *generator) makeGroupMembers() error {
	s := g.Size
	r := rand.New(rand.NewPCG(g.Seed, streamGroups))
	usersOf := func(i int) []int { return g.orgUsers[g.GroupOrg[i]-1] }
	weights := weigh(s.Groups, func(i int) float64 { return (0.1 + math.Pow(r.Float64(), 4)) * float64(len(usersOf(i))) })
	largest := s.GroupMembers * 388 / 100 / s.Groups // 306 where the mean is 79
	low := min(18, s.GroupMembers/s.Groups/2)
	sizes, err := apportion(s.GroupMembers, weights, low, func(i int) int { return min(len(usersOf(i)), largest) })
	if err != nil {
		return err
	}
	in := make([]map[int]bool, s.Groups)
	for i := range in {
		in[i] = make(map[int]bool, sizes[i])
	}
	g.dealGroups(sizes, in)
	for i, members := range in {
		for len(members) < sizes[i] {
			members[draw(r, usersOf(i), memberSkew, func(user int) bool { return members[user] })] = true
		}
		for user := range members {
			g.GroupMembers = append(g.GroupMembers, Role{User: user, In: i + 1, Role: Member})
		}
	}
	if err := g.addManagers(r); err != nil {
		return err
	}
	slices.SortFunc(g.GroupMembers, compareRoles)
	return nil
}

// dealGroups puts each user into a group of the first organization.
func (g *generator) dealGroups(sizes []int, in []map[int]bool) {
	for org, users := range g.homes {
		first, last := span(g.GroupOrg, org+1)
		next := 0
		for _, user := range users {
			for range last - first {
				group := first + next%(last-first)
				next++
				if len(in[group]) < sizes[group] {
					in[group][user] = true
					break
				}
			}
		}
	}
}

// addManagers gives about two managers to every third of as many groups as there
// are managers: 30 make 21 groups with 1 to 3.
func (g *generator) addManagers(r *rand.Rand) error {
	s := g.Size
	managed := min(max(s.GroupManagers*7/10, 1), s.Groups)
	counts, err := apportion(s.GroupManagers, weigh(managed, func(int) float64 { return r.Float64() }), 1, upTo(3))
	if err != nil {
		return fmt.Errorf("managers of groups: %w", err)
	}
	for i, n := range counts {
		group := i * s.Groups / managed
		users := g.orgUsers[g.GroupOrg[group]-1]
		at := r.IntN(len(users))
		for range n {
			if users[at] == g.Heavy {
				at = (at + 1) % len(users)
			}
			g.GroupMembers = append(g.GroupMembers, Role{User: users[at], In: group + 1, Role: Manager})
			at = (at + 1) % len(users)
		}
	}
	return nil
}

// makeHierarchy puts groups of one organization into others: five in seven edges
// make pairs, one in seven a second child, one in seven a third level. 14 edges
// have 12 parents.
func (g *generator) makeHierarchy() error {
	pairs := (g.Size.Edges*5 + 6) / 7
	second := g.Size.Edges / 7
	third := g.Size.Edges - pairs - second
	for org := g.Size.Orgs; org >= 1 && len(g.Hierarchy) < g.Size.Edges; org-- {
		first, last := span(g.GroupOrg, org)
		n := last - first
		if n >= 2 && pairs > 0 {
			g.Hierarchy = append(g.Hierarchy, Edge{Child: first + 2, Parent: first + 1})
			pairs--
		}
		switch {
		case n >= 3 && third > 0:
			g.Hierarchy = append(g.Hierarchy, Edge{Child: first + 3, Parent: first + 2})
			third--
		case n >= 3 && second > 0:
			g.Hierarchy = append(g.Hierarchy, Edge{Child: first + 3, Parent: first + 1})
			second--
		}
	}
	if len(g.Hierarchy) < g.Size.Edges {
		return fmt.Errorf("room for %d of %d edges of the hierarchy", len(g.Hierarchy), g.Size.Edges)
	}
	return nil
}
