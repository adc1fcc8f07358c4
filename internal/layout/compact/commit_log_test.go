package compact

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/entity"
)

// TestLookup: the last change of a key is found in a long log, whatever of it is merged.
func TestLookup(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const blocks, keys = 5 * lookupCost, 3 * lookupCost
	for range 20 {
		var nodes []*node
		for block := range int64(blocks) {
			nodes = append(nodes, newNode(block, tip{}, []change{{key: entity.Key{byte(rnd.IntN(keys))}}}, nodes))
		}
		nodes = after(nodes, rnd.Int64N(blocks)-1)
		at := rnd.Int64N(blocks)
		for n := range keys {
			var want *change
			for _, node := range nodes {
				if node.block <= at && node.changes[0].key[0] == byte(n) {
					want = &node.changes[0]
				}
			}
			require.Same(t, want, lookup(nodes, at, entity.Key{byte(n)}))
		}
	}
}

// TestHaving: the changes that have a term of each list are found and, when the
// lists have one term each, no others.
func TestHaving(t *testing.T) {
	terms := rapid.Custom(func(t *rapid.T) lsm.Term {
		return lsm.Term{Space: rapid.Uint32Range(1, 2).Draw(t, "space"), Value: rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 1, 1, -1).Draw(t, "value")}
	})
	rapid.Check(t, func(t *rapid.T) {
		held := rapid.SliceOfN(rapid.SliceOfNDistinct(terms, 0, 6, rapid.ID), 1, 20).Draw(t, "terms of each change")
		lists := rapid.SliceOfN(rapid.SliceOfNDistinct(terms, 0, 3, rapid.ID), 1, 4).Draw(t, "lists")
		n := &node{index: map[lsm.Term][]int32{}}
		n.once.Do(func() {})
		for i, list := range held {
			for _, term := range list {
				n.index[term] = append(n.index[term], int32(i))
			}
		}

		got := n.having(lists, nil)

		single := !slices.ContainsFunc(lists, func(l []lsm.Term) bool { return len(l) != 1 })
		var want []int32
		for i, list := range held {
			has := func(term lsm.Term) bool { return slices.Contains(list, term) }
			if !slices.ContainsFunc(lists, func(l []lsm.Term) bool { return !slices.ContainsFunc(l, has) }) {
				want = append(want, int32(i))
			}
		}
		require.True(t, slices.IsSorted(got))
		require.Subset(t, got, want)
		if single {
			require.Equal(t, append([]int32{}, want...), append([]int32{}, got...))
		}
	})
}
