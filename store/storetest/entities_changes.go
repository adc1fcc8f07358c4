package storetest

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// runChanges checks what a store tells of what blocks did.
func runChanges(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout, history()...)
	if !l.ents.Temporal() {
		l.view(t, store.Head, func(s *store.Snapshot) {
			_, err := collect(s.Changes(t.Context(), l.head, l.head))
			require.ErrorIs(t, err, store.ErrUnsupported)
		})
		return
	}
	t.Run("of any range", func(t *testing.T) { testChanges(t, l) })
	t.Run("of what was put off", func(t *testing.T) {
		require.NoError(t, l.ents.Settle(t.Context()))
		testChanges(t, l)
	})
	t.Run("out of range", func(t *testing.T) { testChangesRange(t, l) })
}

// testChanges compares the changes of each block, of all and of the later half with the
// states around each block.
func testChanges(t *testing.T, l *ledger) {
	blocks := history()
	states := map[uint64]map[store.Key]*store.Entity{}
	for _, b := range blocks {
		l.view(t, b.Number, func(s *store.Snapshot) {
			states[b.Number] = map[store.Key]*store.Entity{}
			for _, e := range everything(t, s) {
				states[b.Number][e.Key] = e
			}
		})
	}
	snap := l.at(t, store.Head)
	for i := range blocks {
		for j := i; j < len(blocks); j++ {
			if last := len(blocks) - 1; i != j && (j != last || i != 0 && i != last/2) {
				continue
			}
			list := collected(t, snap.Changes(t.Context(), blocks[i].Number, blocks[j].Number))
			require.Len(t, list, j-i+1)
			for k, set := range list {
				var before map[store.Key]*store.Entity
				if i+k > 0 {
					before = states[blocks[i+k-1].Number]
				}
				what := fmt.Sprintf("block %d of %d to %d", set.Head.Block, blocks[i].Number, blocks[j].Number)
				require.Equal(t, blocks[i+k].Number, set.Head.Block)
				requireChanges(t, set, before, states[set.Head.Block], what)
			}
		}
	}
}

// requireChanges checks that a block's changes lead from one state to the next.
func requireChanges(t *testing.T, set store.BlockChanges, before, after map[store.Key]*store.Entity, what string) {
	t.Helper()
	got := map[store.Key]*store.Entity{}
	maps.Copy(got, before)
	for _, e := range set.Expired {
		require.Contains(t, got, e.Key, what)
		require.LessOrEqual(t, e.Expiration, set.Head.Block, what)
		delete(got, e.Key)
	}
	for _, c := range set.Changed {
		require.True(t, c.Old != nil || c.New != nil, what)
		if c.Old != nil {
			requireSame(t, got[c.Old.Key], c.Old, what)
			delete(got, c.Old.Key)
		}
		if c.New != nil {
			require.NotContains(t, got, c.New.Key, what)
			require.Equal(t, set.Head.Block, c.New.LastModifiedAtBlock, what)
			got[c.New.Key] = c.New
		}
	}
	requireSame(t, after, got, what)
}

// testChangesRange: blocks above the head have done nothing yet, and what is below the
// horizon is not known.
func testChangesRange(t *testing.T, l *ledger) {
	l.view(t, store.Head, func(s *store.Snapshot) {
		_, err := collect(s.Changes(t.Context(), l.head, l.head+1))
		require.ErrorIs(t, err, store.ErrBlockRange)
		none := collected(t, s.Changes(t.Context(), 0, 5))
		require.Empty(t, none)
	})
	require.NoError(t, l.ents.Prune(t.Context(), 115))
	l.view(t, store.Head, func(s *store.Snapshot) {
		_, err := collect(s.Changes(t.Context(), 115, 120))
		require.ErrorIs(t, err, store.ErrBlockRange)
		list := collected(t, s.Changes(t.Context(), 116, 120))
		require.Len(t, list, 1)
	})
}
