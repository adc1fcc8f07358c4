package compact

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

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
