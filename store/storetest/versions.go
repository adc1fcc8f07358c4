package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// ApplyVersions creates entities in block 1 and updates all of them in each
// later block, with payloads of size bytes, and then flushes. Tests of the cost
// of a long history use it.
func ApplyVersions(t *testing.T, ents *store.Entities, keys, blocks, size int) {
	t.Helper()
	for number := range blocks {
		block := entity.Block{Number: uint64(number) + 1}
		for i := range keys {
			op := entity.Op{
				Kind: entity.Update, OpIndex: uint32(i), Key: entity.Key{byte(i), byte(i >> 8)},
				BTL: 1000, Content: make([]byte, size),
				StringAttributes: map[string]string{"group": fmt.Sprint(i % 100)},
			}
			copy(op.Content, fmt.Sprint(block.Number, " ", i))
			if number == 0 {
				op.Kind = entity.Create
			}
			block.Ops = append(block.Ops, op)
		}
		_, err := ents.Apply(t.Context(), block)
		require.NoError(t, err)
	}
	require.NoError(t, ents.Flush(t.Context()))
}
