package storetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// history is blocks with gaps that do everything to several keys, some of it
// within one block.
func history() []store.Block {
	return []store.Block{
		newBlock(110, on("a", opCreate(1000, v("a1"), number("n", 1))), on("b", opCreate(3, v("b1"))), on("c", opCreate(1000, v("c1")))),
		newBlock(111, on("a", opUpdate(1000, v("a2"), content("c", "two"))), on("d", opCreate(2, v("d1")))),
		newBlock(112),
		newBlock(115, on("b", opExpire), on("c", opOwner(bob)), on("c", opExtend(9)), on("e", opCreate(0, v("e1")))),
		newBlock(120, on("d", opCreate(1000, v("d2"))), on("a", opDelete), on("f", opCreate(2, v("f1"))), on("f", opUpdate(30, v("f2")))),
		newBlock(121, on("a", opCreate(1000, v("a3"))), on("f", opDelete), on("f", opCreate(4, v("f3"), number("n", math.MaxUint64)))),
		newBlock(130, on("a", opUpdate(1000, v("a4"))), on("a", opUpdate(1000, v("a5"))), on("d", opExpire), on("c", opExpire)),
		newBlock(131, on("c", opCreate(5, v("c2"))), on("b", opCreate(5, v("b2"))), on("b", opDelete)),
	}
}

// otherHistory goes on differently from any block of history below 130.
func otherHistory() []store.Block {
	return []store.Block{
		newBlock(140, on("x", opCreate(1000, v("x1"))), on("y", opCreate(1000, v("y1")))),
		newBlock(150, on("x", opUpdate(5, v("x2"))), on("y", opDelete)),
	}
}

// around are the blocks of history, some in its gaps, and one before it.
func around() []uint64 { return []uint64{109, 110, 111, 112, 113, 115, 117, 120, 121, 125, 130, 131} }

func runRewind(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	if !l.ents.Temporal() {
		t.Run("refused", func(t *testing.T) { testRewindRefused(t, l) })
		return
	}
	before := map[uint64]state{l.head: l.state(t)} // the empty store
	for _, b := range history() {
		l.applyBlocks(t, b)
		before[b.Number] = l.state(t, around()...)
	}
	t.Run("a value that came back", func(t *testing.T) { testRewindReturned(t, h, layout) })
	t.Run("down and up again", func(t *testing.T) { testRewindDown(t, l, before) })
	t.Run("other blocks", func(t *testing.T) { testRewindOther(t, l) })
	t.Run("out of range", func(t *testing.T) { testRewindRange(t, l) })
}

// headAt is the last block of history at or below a number.
func headAt(block uint64) uint64 {
	head := uint64(firstBlock)
	for _, b := range history() {
		if b.Number <= block {
			head = b.Number
		}
	}
	return head
}

// testRewindDown rewinds to blocks and into gaps, and compares with what
// the store was when that block was the last. Then it loads the rest again.
func testRewindDown(t *testing.T, l *ledger, before map[uint64]state) {
	for i, to := range around() {
		require.NoError(t, l.ents.Rewind(t.Context(), to))
		l.head = headAt(to)
		requireSame(t, before[l.head], l.state(t, around()...), "rewound to %d", to)
		head := headOf(t, l.ents)
		require.Equal(t, to < 110, head.Empty)
		if i%4 == 0 {
			l.reopen(t)
			requireSame(t, before[l.head], l.state(t, around()...), "rewound to %d and opened again", to)
		}
		loadInto(t, l.ents, stream(history(), nil), store.LoadOptions{})
		l.head = 131
		requireSame(t, before[l.head], l.state(t, around()...), "rewound to %d and loaded again", to)
	}
	for i := len(history()) - 1; i > 0; i-- {
		l.head = history()[i-1].Number
		require.NoError(t, l.ents.Rewind(t.Context(), l.head))
		requireSame(t, before[l.head], l.state(t, around()...), "one block after the other down to %d", l.head)
	}
	for _, b := range history()[1:] {
		l.applyBlocks(t, b)
		requireSame(t, before[b.Number], l.state(t, around()...), "block %d again", b.Number)
	}
}

// testRewindOther rewinds far at once and goes on with other blocks, like a
// store that never saw the ones rewound.
func testRewindOther(t *testing.T, l *ledger) {
	for _, to := range []uint64{125, 115, 110, 50} {
		fresh := newLedger(t, l.h, l.layout)
		require.NoError(t, l.ents.Rewind(t.Context(), to))
		l.head = headAt(to)
		for _, b := range history() {
			if b.Number <= to {
				fresh.applyBlocks(t, b)
			}
		}
		for _, b := range otherHistory() {
			l.applyBlocks(t, b)
			fresh.applyBlocks(t, b)
		}
		require.NoError(t, l.ents.Rewind(t.Context(), 145))
		l.head = 140
		l.applyBlocks(t, otherHistory()[1:]...)
		requireSame(t, fresh.state(t, around()...), l.state(t, around()...), "rewound to %d", to)
		require.NoError(t, l.ents.Rewind(t.Context(), 0))
		l.applyBlocks(t, history()...)
		require.NoError(t, fresh.db.Close())
	}
}

func testRewindRange(t *testing.T, l *ledger) {
	want := l.state(t, around()...)
	for _, above := range []uint64{l.head + 1, math.MaxInt64, math.MaxUint64} {
		require.ErrorIs(t, l.ents.Rewind(t.Context(), above), store.ErrBlockRange)
	}
	require.NoError(t, l.ents.Rewind(t.Context(), l.head))
	requireSame(t, want, l.state(t, around()...))
}

func testRewindRefused(t *testing.T, l *ledger) {
	l.applyBlocks(t, history()...)
	want := l.state(t)
	for _, to := range []uint64{0, 115, 131, 1000} {
		require.ErrorIs(t, l.ents.Rewind(t.Context(), to), store.ErrUnsupported)
	}
	requireSame(t, want, l.state(t))
}

func runPrune(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout, history()...)
	full := l.state(t, around()...)
	t.Run("drops what nobody can see", func(t *testing.T) { testPruneRows(t, l, full) })
	for _, before := range []uint64{109, 110, 116, 121, 130} {
		require.NoError(t, l.ents.Prune(t.Context(), before))
		checkPruned(t, l, full, before)
	}
	require.NoError(t, l.ents.Prune(t.Context(), 112), "an older block is pruned already")
	checkPruned(t, l, full, 130)
	l.reopen(t)
	checkPruned(t, l, full, 130)
	t.Run("rewind", func(t *testing.T) { testPruneRewind(t, l, full) })
	t.Run("head", func(t *testing.T) {
		require.NoError(t, l.ents.Prune(t.Context(), l.head))
		checkPruned(t, l, full, l.head)
		require.ErrorIs(t, l.ents.Prune(t.Context(), l.head+1), store.ErrBlockRange)
		require.ErrorIs(t, l.ents.Prune(t.Context(), math.MaxUint64), store.ErrBlockRange)
	})
}

// checkPruned: nothing below a block can be read, everything from it on as
// before, and the digest is that of the whole history.
func checkPruned(t testing.TB, l *ledger, full state, before uint64) {
	t.Helper()
	summary := summaryOf(t, l.ents)
	require.Equal(t, before, summary.Horizon)
	require.Equal(t, []any{full.Summary.Digest, full.Summary.Head, full.Summary.Live, full.Summary.Blocks},
		[]any{summary.Digest, summary.Head, summary.Live, summary.Blocks})
	if !l.ents.Temporal() {
		requireSame(t, full.Content, l.state(t).Content)
		return
	}
	for _, block := range around() {
		if block < before {
			_, err := l.ents.At(t.Context(), block)
			require.ErrorIs(t, err, store.ErrBlockRange, "block %d", block)
			require.ErrorIs(t, l.ents.Rewind(t.Context(), block), store.ErrBlockRange, "block %d", block)
			continue
		}
		l.view(t, block, func(s *store.Snapshot) {
			requireSame(t, full.Content[block], everything(t, s), "block %d, pruned before %d", block, before)
		})
	}
}

func testPruneRows(t *testing.T, l *ledger, full state) {
	other := newLedger(t, l.h, l.layout)
	other.applyBlocks(t, history()...)
	require.NoError(t, other.ents.Prune(t.Context(), other.head))
	summary := summaryOf(t, other.ents)
	for i, table := range summary.Tables {
		require.LessOrEqual(t, table.Rows, full.Summary.Tables[i].Rows)
	}
	payloads := summary.Tables[len(summary.Tables)-1]
	require.Equal(t, full.Summary.Live, payloads.Rows, "rows of %s", payloads.Table)
}

// testPruneRewind: a store that was pruned rewinds to what is left.
func testPruneRewind(t *testing.T, l *ledger, full state) {
	if !l.ents.Temporal() {
		require.ErrorIs(t, l.ents.Rewind(t.Context(), l.head), store.ErrUnsupported)
		return
	}
	require.NoError(t, l.ents.Rewind(t.Context(), 130))
	l.head = 130
	l.view(t, 130, func(s *store.Snapshot) { requireSame(t, full.Content[130], everything(t, s)) })
	blocks := history()
	l.applyBlocks(t, blocks[len(blocks)-1])
	checkPruned(t, l, full, 130)
}

// testRewindReturned rewinds past the block in which an entity gets a value back
// that an earlier version had: that version must be found by it still.
func testRewindReturned(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	l.applyBlocks(t, newBlock(110, on("a", opCreate(1000, v("one")))))
	l.applyBlocks(t, newBlock(120, on("a", opUpdate(1000, v("two")))))
	l.applyBlocks(t, newBlock(130, on("a", opUpdate(1000, v("one")))))
	require.NoError(t, l.ents.Rewind(t.Context(), 125))
	require.NoError(t, l.ents.Settle(t.Context()))
	_, err := l.ents.Verify(t.Context())
	require.NoError(t, err)
	snap := snapshotAt(t, l.ents, 115)
	defer snap.Close()
	n := countOf(t, snap, parse(t, `v = "one"`))
	require.EqualValues(t, 1, n)
}
