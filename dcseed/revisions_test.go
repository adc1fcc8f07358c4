package dcseed

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOrderIsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPopulation(Class(rapid.IntRange(1, 2).Draw(t, "class")), rapid.Uint64().Draw(t, "seed"),
			rapid.IntRange(1, 5).Draw(t, "dcs"), rapid.IntRange(1, 2_000).Draw(t, "per dc"), 1, 0)
		seen := make([]bool, p.count)
		for place := range p.count {
			index := p.at(place)
			if seen[index] || p.place(index) != place || p.index(p.ref(index)) != index {
				t.Fatalf("place %d has entity %d, which is at place %d and was seen: %t", place, index, p.place(index), seen[index])
			}
			seen[index] = true
		}
	})
}

// The largest model must not overflow.
func TestOrderOfTheLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPopulation(ClassNode, rapid.Uint64().Draw(t, "seed"), MaxDCs, MaxNodes*workloadsPerNode, 1, 0)
		index := rapid.Uint64Range(0, p.count-1).Draw(t, "index")
		require.Equal(t, index, p.at(p.place(index)))
		require.Less(t, p.place(index), p.count)
	})
}

// The closed formulas agree with counting the revisions block by block.
func TestRevisionsMatchTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		m, err := New(Config{
			Seed: rapid.Uint64().Draw(t, "seed"), DCs: rapid.IntRange(1, 3).Draw(t, "dcs"),
			NodesPerDC: nodes, Payload: 1, PerBlock: rapid.IntRange(1, 50).Draw(t, "per block"),
			NodeUpdates: rapid.IntRange(1, 3*nodes).Draw(t, "updates"), WorkloadUpdates: nodes,
		})
		require.NoError(t, err)
		counts := map[Ref]uint64{}
		for block := m.firstLoad; block < m.firstLoad+8; block++ {
			ordinal := uint64(0)
			for r, revision := range m.revisions(block) {
				counts[r]++
				require.Equal(t, counts[r], revision)
				require.Equal(t, spot{block, ordinal}, m.spot(r, revision))
				ordinal++
			}
			for _, p := range []*population{&m.nodes, &m.workloads} {
				for i := range p.count {
					require.Equal(t, counts[p.ref(i)], p.revisions(i, block-m.firstLoad+1))
				}
			}
		}
	})
}
