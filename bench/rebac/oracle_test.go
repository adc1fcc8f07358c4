package rebac

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOracle: its sets agree with a search by hand, one user and resource after
// the other, up the hierarchy.
func TestOracle(t *testing.T) {
	d := generate(t, Tiny)
	o := NewOracle(d)
	var has func(user, group int, manager bool) bool
	has = func(user, group int, manager bool) bool {
		if slices.Contains(d.GroupManagers[group-1], user) || !manager && slices.Contains(d.GroupMembers[group-1], user) {
			return true
		}
		for _, e := range d.Hierarchy {
			if e.Parent == group && has(user, e.Child, manager) {
				return true
			}
		}
		return false
	}
	manages := map[[2]int]bool{}
	views := map[[2]int]bool{}
	for e := range d.Entries() {
		for user := 1; user <= d.Size.Users; user++ {
			at := [2]int{user, e.Resource}
			byUser, byGroup := e.Relation == ManagerUser || e.Relation == ViewerUser, e.Relation == ManagerGroup || e.Relation == ViewerGroup
			if e.Relation == ManagerUser && e.Subject == user || e.Relation == ManagerGroup && has(user, e.Subject, true) {
				manages[at] = true
			}
			if byUser && e.Subject == user || byGroup && has(user, e.Subject, e.Relation == ManagerGroup) {
				views[at] = true
			}
		}
	}
	for i, org := range d.ResourceOrg {
		for _, user := range d.Admins[org-1] {
			manages[[2]int{user, i + 1}] = true
			views[[2]int{user, i + 1}] = true
		}
	}
	for user := 1; user <= d.Size.Users; user++ {
		for resource := 1; resource <= d.Size.Resources; resource++ {
			require.Equal(t, manages[[2]int{user, resource}], o.May(Manage, user, resource))
			require.Equal(t, views[[2]int{user, resource}], o.May(View, user, resource))
		}
	}
	users := 0
	for resource := 1; resource <= d.Size.Resources; resource++ {
		for _, user := range o.users(View, resource).list() {
			require.True(t, views[[2]int{user, resource}])
			users++
		}
	}
	require.Equal(t, len(views), users)
}

// TestScenarios: the heavy manager has as many resources as the size says, and a
// scenario's questions are of its kind.
func TestScenarios(t *testing.T) {
	for _, s := range []Size{Tiny, Small, Full} {
		d := generate(t, s)
		o := NewOracle(d)
		list, err := Scenarios(d, o)
		require.NoError(t, err)
		for _, sc := range list {
			switch sc.Name {
			case "list-manage-heavy":
				require.Equal(t, s.HeavyDirect+s.HeavyOrg, sc.Questions[0].Want.Count, s.Name)
			case "list-view-regular":
				require.InEpsilon(t, s.RegularView, sc.Questions[0].Want.Count, 0.1, s.Name)
			case "check-denied":
				for _, q := range sc.Questions {
					require.False(t, o.May(View, q.User, q.Resource))
				}
			}
			if sc.Kind == Check && sc.Name != "check-denied" {
				for _, q := range sc.Questions {
					require.True(t, o.May(sc.Permission, q.User, q.Resource), sc.Name)
				}
			}
		}
	}
}
