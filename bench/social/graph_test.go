package social

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// published is AuthZed's table, for 1M and 100M relationships.
var published = map[Relation][2]int{
	UserPublic:       {2_604, 260_436},
	UserFollowers:    {2_604, 260_436},
	Self:             {5_209, 520_873},
	Follower:         {52_083, 5_208_329},
	Creator:          {104_167, 10_416_658},
	Parent:           {104_167, 10_416_658},
	ContentPublic:    {180_989, 18_098_892},
	ContentFollowers: {183_594, 18_359_412},
	Owner:            {364_583, 36_458_304},
}

// The relations have the numbers of AuthZed's table but for what rounding to whole users takes.
func TestProportions(t *testing.T) {
	g, err := New(1_000_000, 1)
	require.NoError(t, err)
	got := map[Relation]int{}
	for r := range g.Relationships() {
		got[r.Relation]++
	}
	for r := UserPublic; r < relationsEnd; r++ {
		if want, ok := published[r]; ok {
			require.InDelta(t, want[0], got[r], 100, r)
		} else {
			require.Zero(t, got[r], r)
		}
	}
	big, err := New(100_000_000, 1)
	require.NoError(t, err)
	require.InEpsilon(t, published[Self][1], big.count[User], 0.0002)
	require.InEpsilon(t, published[Owner][1], big.count[Content], 0.0002)
	require.InEpsilon(t, published[Creator][1], big.count[Interaction], 0.0002)
}

// The stream is in order without repetition, has as many relationships as asked
// for, and each object has what an object has.
func TestStream(t *testing.T) {
	for seed, n := range []int{MinRelationships, 9_999, 10_001, 50_191} {
		g, err := New(n, uint64(seed))
		require.NoError(t, err)
		all := slices.Collect(g.Relationships())
		require.Len(t, all, g.Len(), n)
		require.True(t, slices.IsSortedFunc(all, compareRelationships), n)
		require.Len(t, slices.Compact(slices.Clone(all)), len(all), n)
		for _, r := range all {
			require.LessOrEqual(t, r.Object.Number(), g.count[r.Object.Kind()])
			require.LessOrEqual(t, r.Subject.Number(), g.count[r.Subject.Kind()])
			if r.Relation == Follower || r.Relation == Blocked {
				require.NotEqual(t, r.Object, r.Subject)
			}
		}
		first := slices.Collect(func(yield func(Relationship) bool) {
			for r := range g.Relationships() {
				if r.Object.Kind() == Interaction || !yield(r) {
					return
				}
			}
		})
		require.Equal(t, all[:len(first)], first, "a reader may stop")
	}
}

func compareRelationships(a, b Relationship) int {
	return slices.Compare([]int64{int64(a.Object), int64(a.Relation), int64(a.Subject)}, []int64{int64(b.Object), int64(b.Relation), int64(b.Subject)})
}

// The same configuration gives the same bytes, another seed others.
func TestGolden(t *testing.T) {
	hash := func(relationships int, seed uint64) string {
		g, err := New(relationships, seed)
		require.NoError(t, err)
		h := sha256.New()
		for r := range g.Relationships() {
			fmt.Fprintln(h, int64(r.Object), int64(r.Relation), int64(r.Subject))
		}
		return hex.EncodeToString(h.Sum(nil)[:8])
	}
	require.Equal(t, "559849b30a636b4d", hash(20_000, 1))
	require.NotEqual(t, hash(20_000, 1), hash(20_000, 2))
}

// A fifth of the users have four fifths of the content and of the followers, and
// some are far ahead.
func TestPareto(t *testing.T) {
	g, err := New(500_000, 1)
	require.NoError(t, err)
	count := map[Relation][]int{Owner: make([]int, g.count[User]+1), Follower: make([]int, g.count[User]+1), Creator: make([]int, g.count[User]+1)}
	reactions := make([]int, g.count[Content]+1)
	for r := range g.Relationships() {
		switch r.Relation {
		case Owner, Creator:
			count[r.Relation][r.Subject]++
		case Follower:
			count[r.Relation][r.Object]++
		case Parent:
			reactions[r.Subject.Number()]++
		}
	}
	for relation, list := range count {
		require.InDelta(t, 0.8, topShare(list, 0.2), 0.02, relation)
		require.Greater(t, slices.Max(list), 40*sum(list)/len(list), relation)
	}
	popular := 0
	for rank := range g.count[Content] / 5 {
		popular += reactions[g.at(forParent, rank)+1]
	}
	require.InDelta(t, 0.8, float64(popular)/float64(sum(reactions)), 0.01)
}

func topShare(list []int, part float64) float64 {
	list = slices.Sorted(slices.Values(list))
	top := list[len(list)-int(part*float64(len(list))):]
	return float64(sum(top)) / float64(sum(list))
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

func TestPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3_000).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "seed"), 1)
		seen := make([]bool, n)
		for i := range n {
			at := p.at(i)
			if at < 0 || at >= n || seen[at] {
				t.Fatalf("%d goes to %d of %d", i, at, n)
			}
			seen[at] = true
		}
	})
}

func TestSizes(t *testing.T) {
	for _, n := range []int{0, MinRelationships - 1, math.MaxInt} {
		_, err := New(n, 1)
		require.ErrorContains(t, err, "give", n)
	}
}

// Of 1,000 users and a factor of 1 %, every hundredth takes part, as in AuthZed's
// example; each as often as the others.
func TestActive(t *testing.T) {
	g := &Graph{count: [kinds]int{User: 1_000, Content: 1_001, Interaction: 3}}
	a := newActive(g, 0.01)
	require.Equal(t, []int{10, 11, 1}, []int{a.size(User), a.size(Content), a.size(Interaction)})
	r, seen := rand.New(rand.NewPCG(1, 2)), map[Object]int{}
	for range 10_000 {
		seen[a.pick(r, User)]++
		require.NotEqual(t, NewObject(User, 1), a.other(r, NewObject(User, 1)))
	}
	require.Len(t, seen, 10)
	for o, n := range seen {
		require.Equal(t, 1, o.Number()%100)
		require.InDelta(t, 1_000, n, 200)
	}
	require.Equal(t, NewObject(Interaction, 1), a.pick(r, Interaction))
	require.Equal(t, 1_000, newActive(g, 1).size(User))
}
