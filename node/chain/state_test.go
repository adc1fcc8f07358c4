package chain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestFollowFromState: a store that has only the state at a block, without the
// block's hash or chain, is continued when it is adopted.
func TestFollowFromState(t *testing.T) {
	c := chaintest.New(1337, 5)
	c.Grow(40)
	state := stateOf(t, c.Blocks())
	c.Grow(20)

	f := &chain.Follower{Client: serve(t, c), Store: state, Once: true}
	require.ErrorIs(t, f.Run(t.Context()), chain.ErrOtherChain)
	_, known, err := state.Chain(t.Context())
	require.NoError(t, err)
	require.False(t, known, "nothing is recorded of a store that is refused")
	f.Adopt = true
	for _, depth := range []int{1, 5} {
		require.NoError(t, f.Run(t.Context()))
		whole := open(t, newURL(t, "compact"))
		for _, b := range c.Blocks() {
			_, err := whole.Apply(t.Context(), b)
			require.NoError(t, err)
		}
		require.Equal(t, all(t, whole), all(t, state))
		c.Reorganise(depth, depth+3)
	}
	require.ErrorIs(t, state.Rewind(t.Context(), c.Blocks()[38].Number), store.ErrBlockRange)
}

// stateOf returns a store of what blocks have left, without their hashes.
func stateOf(t *testing.T, blocks []entity.Block) *store.Entities {
	t.Helper()
	fed, state := open(t, newURL(t, "compact")), open(t, newURL(t, "compact"))
	for _, b := range blocks {
		b.Hash, b.Time = entity.Hash{}, 0
		_, err := fed.Apply(t.Context(), b)
		require.NoError(t, err)
	}
	require.NoError(t, fed.Prune(t.Context(), blocks[len(blocks)-1].Number))
	_, err := state.Import(t.Context(), fed.History(t.Context()), nil)
	require.NoError(t, err)
	return state
}

// all returns the entities at the head.
func all(t *testing.T, ents *store.Entities) (list []*entity.Entity) {
	t.Helper()
	s, err := ents.At(t.Context(), store.Head)
	require.NoError(t, err)
	for e, err := range s.Query(t.Context(), nil, nil) {
		require.NoError(t, err)
		list = append(list, e)
	}
	require.NoError(t, s.Close())
	require.NotEmpty(t, list)
	return list
}
