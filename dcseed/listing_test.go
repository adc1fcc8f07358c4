package dcseed

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listing that follows from others, block by block, is the answer that looking
// at all nodes finds.
func TestListing(t *testing.T) {
	cases := []Config{{NodesPerDC: 1, Payload: 5, NodeUpdates: 3, WorkloadUpdates: 7}, small(), expiring()}
	for seed := range uint64(1_000) { // few of the first matches match for long
		cases = append(cases, Config{Seed: seed, DCs: 1, NodesPerDC: 60, Payload: 5, NodeUpdates: 3, WorkloadUpdates: 1})
	}
	for i, cfg := range cases {
		m := newModel(t, cfg)
		o, rnd := NewOracle(m), rand.New(rand.NewPCG(1, uint64(i)))
		blocks, step, limits := uint64(40), uint64(3), []int{0, 1, 3}
		if i == 2 {
			blocks, step = 8_000, 40 // until nodes have expired
		}
		if i > 2 {
			limits = []int{1}
		}
		for _, limit := range limits {
			for _, q := range []Query{m.NodesInDC(1, m.FirstLoadBlock()-2), m.AvailableGPUNodes(m.cfg.DCs, m.FirstLoadBlock()-1)} {
				q.Limit = limit
				for l := o.List(q); l.Block() <= m.FirstLoadBlock()+blocks; l = l.At(l.Block() + 1 + rnd.Uint64N(step)) {
					require.Equal(t, o.Expected(q.At(l.Block())).Keys, l.Keys(), "%+v, %s, limit %d, block %d", cfg, q, limit, l.Block())
				}
			}
		}
	}
}
