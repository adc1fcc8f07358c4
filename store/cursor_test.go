package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// A cursor belongs to one history: when the store was rewound below its block
// and has passed it again with other blocks, the next page would not fit.
func TestCursorOfAnotherHistory(t *testing.T) {
	ctx := t.Context()
	ents, done := temporary(ctx)
	defer done()
	apply := func(number uint64, ids ...byte) {
		var ops []entity.Op
		for _, id := range ids {
			ops = append(ops, node(id, 4, entity.MaxBlock))
		}
		_, err := ents.Apply(ctx, entity.Block{Number: number, Ops: ops})
		require.NoError(t, err)
	}
	page := func(after store.Cursor) (cursor store.Cursor, keys []byte, err error) {
		snap, err := ents.At(ctx, store.Head)
		require.NoError(t, err)
		defer snap.Close()
		opts := &store.QueryOptions{Limit: 1, After: after}
		for e, err := range snap.Query(ctx, nil, opts) {
			if err != nil {
				return "", nil, err
			}
			keys = append(keys, e.Key[0])
			cursor, err = snap.Cursor(e, opts)
			require.NoError(t, err)
		}
		return cursor, keys, nil
	}
	apply(1, 1, 2)
	apply(2, 3)
	cursor, keys, err := page("")
	require.NoError(t, err)
	require.Equal(t, []byte{3}, keys)
	apply(3, 4)
	_, keys, err = page(cursor)
	require.NoError(t, err)
	require.Equal(t, []byte{2}, keys, "the head has moved, the pages have not")

	require.NoError(t, ents.Rewind(ctx, 1))
	_, _, err = page(cursor)
	require.ErrorIs(t, err, store.ErrBlockRange)
	apply(2, 5)
	apply(3, 6)
	_, _, err = page(cursor)
	require.ErrorIs(t, err, store.ErrBlockRange)
}
