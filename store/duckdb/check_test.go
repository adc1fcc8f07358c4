package duckdb_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestVerifyMemory: a history of more payloads than the memory holds is compared
// with its digest.
func TestVerifyMemory(t *testing.T) {
	db, err := store.Open(t.Context(), "duckdb://"+newPath(t), &store.Options{Memory: 96 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	const keys, blocks, size = 400, 20, 16 << 10
	for number := uint64(1); number <= blocks; number++ {
		block := entity.Block{Number: number}
		for i := range uint32(keys) {
			op := entity.Op{
				Kind: entity.Update, OpIndex: i, Key: entity.Key{byte(i), byte(i >> 8)}, BTL: 1000, Content: make([]byte, size),
				StringAttributes: map[string]string{"group": fmt.Sprint(i % 100)},
			}
			copy(op.Content, fmt.Sprint(number, " ", i))
			if number == 1 {
				op.Kind = entity.Create
			}
			block.Ops = append(block.Ops, op)
		}
		_, err := ents.Apply(t.Context(), block)
		require.NoError(t, err)
	}
	require.NoError(t, ents.Flush(t.Context()))
	v, err := ents.Verify(t.Context())
	require.NoError(t, err)
	require.True(t, v.Digest)
}
