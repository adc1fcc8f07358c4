package rebac

import (
	"math"
	"math/rand/v2"
	"slices"
)

// How far lists lean to the first users and groups of an organization: 1 is
// evenly. With these a few users are on several times as many lists as the rest.
const (
	userSkew  = 1.04
	groupSkew = 1.2
)

// writer makes access lists one after the other.
type writer struct {
	data    *Data
	rand    *rand.Rand
	entries []Entry // of one list; used again
	taken   []int   // by place in orgData.users or groups: the turn in which it was taken
	turn    int

	// The heavy manager gets onto some of the lists of some organizations.
	heavyIn map[int]bool
	lists   int // of these organizations
	passed  int // of these so far
}

func newWriter(d *Data) *writer {
	w := &writer{data: d, rand: rand.New(rand.NewPCG(d.Seed, streamEntries)), heavyIn: d.heavyOrgs()}
	longest := 0
	for i := range d.orgs {
		longest = max(longest, len(d.orgs[i].users), len(d.orgs[i].groups))
	}
	w.taken = make([]int, longest)
	for _, org := range d.ResourceOrg {
		if w.heavyIn[org] {
			w.lists++
		}
	}
	return w
}

// heavyOrgs are the organizations in which the heavy manager is on lists: those
// of which that user is a member and no admin.
func (d *Data) heavyOrgs() map[int]bool {
	in := map[int]bool{}
	for _, m := range d.Members {
		if m.User == d.Heavy && m.Role == Member {
			in[m.In] = true
		}
	}
	return in
}

// list returns the access list of a resource, in order. It is overwritten by the
// next one.
func (w *writer) list(resource int) []Entry {
	d := w.data
	number := d.ResourceOrg[resource-1]
	org := &d.orgs[number-1]
	w.entries = w.entries[:0]
	managers := int(d.counts[ManagerUser][resource-1])
	w.turn++
	if w.heavyIn[number] {
		if spread(w.passed, w.lists, d.Size.HeavyDirect) {
			w.entries = append(w.entries, Entry{resource, ManagerUser, d.Heavy})
			managers--
		}
		w.passed++
	}
	// A user manages or views a resource, and is on its list once.
	w.take(resource, ManagerUser, managers, org.users, userSkew)
	w.take(resource, ViewerUser, int(d.counts[ViewerUser][resource-1]), org.users, userSkew)
	w.turn++
	w.take(resource, ManagerGroup, int(d.counts[ManagerGroup][resource-1]), org.groups, groupSkew)
	w.turn++
	w.take(resource, ViewerGroup, int(d.counts[ViewerGroup][resource-1]), org.groups, groupSkew)
	slices.SortFunc(w.entries, func(a, b Entry) int {
		if a.Relation != b.Relation {
			return int(a.Relation) - int(b.Relation)
		}
		return a.Subject - b.Subject
	})
	return w.entries
}

// take puts n more subjects onto the list that were not taken in this turn.
func (w *writer) take(resource int, relation Relation, n int, from []int, skew float64) {
	for range n {
		i := skewed(w.rand, len(from), skew)
		for w.taken[i] == w.turn {
			i = (i + 1) % len(from)
		}
		w.taken[i] = w.turn
		w.entries = append(w.entries, Entry{resource, relation, from[i]})
	}
}

// skewed draws a place below n; with a skew above 1 low ones more often.
func skewed(r *rand.Rand, n int, skew float64) int {
	return int(math.Pow(r.Float64(), skew) * float64(n))
}
