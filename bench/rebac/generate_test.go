package rebac

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func generate(t *testing.T, s Size) *Data {
	t.Helper()
	d, err := Generate(s, 1)
	require.NoError(t, err)
	return d
}

// digest is a hash of everything in a data set.
func digest(d *Data) string {
	h := sha256.New()
	fmt.Fprintln(h, d.Members, d.Admins, d.GroupOrg, d.GroupMembers, d.GroupManagers, d.Hierarchy, d.ResourceOrg, d.Heavy)
	for e := range d.Entries() {
		fmt.Fprintln(h, e.Resource, e.Relation, e.Subject)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// TestGolden: the same seed gives the same bytes, in this version and the next.
func TestGolden(t *testing.T) {
	require.Equal(t, "7a81ce153388a162", digest(generate(t, Tiny)))
	require.Equal(t, "1db48a11055ce6ee", digest(generate(t, Small)))
	other, err := Generate(Tiny, 1+1)
	require.NoError(t, err)
	require.NotEqual(t, digest(generate(t, Tiny)), digest(other))
}

// TestCounts: a data set has exactly what its size says, and no row twice.
func TestCounts(t *testing.T) {
	for _, s := range []Size{Tiny, Small, Full, Tiny.Times(3)} {
		t.Run(s.Name, func(t *testing.T) {
			d := generate(t, s)
			require.Equal(t, s.Memberships-s.Orgs*s.Admins, total(d.Members))
			require.Equal(t, s.Orgs*s.Admins, total(d.Admins))
			require.Len(t, d.GroupOrg, s.Groups)
			require.Equal(t, s.GroupMembers, total(d.GroupMembers))
			require.Equal(t, s.GroupManagers, total(d.GroupManagers))
			require.Len(t, d.Hierarchy, s.Edges)
			require.Len(t, d.ResourceOrg, s.Resources)
			counts := map[Relation]int{}
			last := Entry{}
			direct := 0
			for e := range d.Entries() {
				counts[e.Relation]++
				if !before(last, e) {
					t.Fatalf("%v, then %v", last, e)
				}
				last = e
				if e.Relation == ManagerUser && e.Subject == d.Heavy {
					direct++
				}
			}
			require.Equal(t, map[Relation]int{
				ManagerUser: s.ManagerUsers, ManagerGroup: s.ManagerGroups, ViewerUser: s.ViewerUsers, ViewerGroup: s.ViewerGroups,
			}, counts)
			require.Equal(t, s.HeavyDirect, direct)
			for org := range d.Members {
				distinct(t, slices.Concat(d.Members[org], d.Admins[org]))
			}
			for group := range d.GroupMembers {
				distinct(t, d.GroupMembers[group])
				distinct(t, d.GroupManagers[group])
			}
		})
	}
}

func before(a, b Entry) bool {
	switch {
	case a.Resource != b.Resource:
		return a.Resource < b.Resource
	case a.Relation != b.Relation:
		return a.Relation < b.Relation
	}
	return a.Subject < b.Subject
}

func total(lists [][]int) int { return len(slices.Concat(lists...)) }

func distinct(t *testing.T, users []int) {
	t.Helper()
	slices.Sort(users)
	require.Len(t, slices.Compact(slices.Clone(users)), len(users), "%v", users)
}

// spreadOf is the mean, least and most of counts.
type spreadOf struct {
	n, min, max int
	mean        float64
}

func spreadOver[K comparable](counts map[K]int) spreadOf {
	s := spreadOf{n: len(counts)}
	sum := 0
	for _, n := range counts {
		if s.min == 0 || n < s.min {
			s.min = n
		}
		s.max = max(s.max, n)
		sum += n
	}
	s.mean = float64(sum) / float64(len(counts))
	return s
}

// TestSkew holds the full data set against the document's table of distributions: means to 1 %,
// most to a tenth. What is least of skewed counts is not fitted but for organizations.
func TestSkew(t *testing.T) {
	d := generate(t, Full)
	users, orgs, members, in := map[int]int{}, map[int]int{}, map[int]int{}, map[int]int{}
	for org := range d.Members {
		for _, user := range slices.Concat(d.Members[org], d.Admins[org]) {
			orgs[org]++
			users[user]++
		}
	}
	for group, list := range d.GroupMembers {
		members[group] = len(list)
		for _, user := range list {
			in[user]++
		}
	}
	listed, lists := map[int]int{}, map[int]int{}
	for e := range d.Entries() {
		if e.Relation == ManagerUser || e.Relation == ViewerUser {
			listed[e.Subject]++
			lists[e.Resource]++
		}
	}
	parents := map[int]int{}
	for _, e := range d.Hierarchy {
		parents[e.Parent]++
	}
	for _, c := range []struct {
		name      string
		got, want spreadOf
	}{
		{"users of an organization", spreadOver(orgs), spreadOf{16, 31, 535, 257.31}},
		{"organizations of a user", spreadOver(users), spreadOf{1950, 1, 8, 2.11}},
		{"members of a group", spreadOver(members), spreadOf{170, 18, 306, 78.89}},
		{"groups of a user", spreadOver(in), spreadOf{1950, 1, 31, 6.89}},
		{"groups in a group", spreadOver(parents), spreadOf{12, 1, 2, 1.17}},
		{"resources of a user", spreadOver(listed), spreadOf{1837, 1, 875, 156.22}},
		{"users of a resource", spreadOver(lists), spreadOf{22084, 2, 25, 12.99}},
	} {
		t.Log(c.name, c.got)
		require.Equal(t, c.want.n, c.got.n, c.name)
		require.InEpsilon(t, c.want.mean, c.got.mean, 0.01, c.name)
		require.InEpsilon(t, c.want.max, c.got.max, 0.1, c.name)
	}
	require.InDelta(t, 31, spreadOver(orgs).min, 1)
}

// TestImpossible: a size that cannot be met is an error and not another size.
func TestImpossible(t *testing.T) {
	for _, change := range []func(s *Size){
		func(s *Size) { s.Edges = 100 },
		func(s *Size) { s.ViewerUsers = 100_000 },
		func(s *Size) { s.GroupMembers = 10_000 },
		func(s *Size) { s.Memberships = s.Orgs },
	} {
		s := Tiny
		change(&s)
		_, err := Generate(s, 1)
		require.Error(t, err)
	}
}
