package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// runLoad loads many blocks in few transactions.
func runLoad(t *testing.T, h Harness) {
	l := newLedger(t, h, history()...)
	want := l.state(t, around()...)
	t.Run("bad block", func(t *testing.T) { testLoadBadBlock(t, h, want) })
	t.Run("another writer", func(t *testing.T) { testLoadAnotherWriter(t, h, l.ents.Temporal()) })
}

// testLoadBadBlock: a refused block ends the load. The blocks before it are
// kept.
func testLoadBadBlock(t *testing.T, h Harness, want state) {
	l := newLedger(t, h)
	bad := newBlock(200, on("fine", opCreate(9)), on("nobody", opDelete))
	blocks := append(history(), bad)
	_, err := l.ents.Load(t.Context(), stream(blocks, nil), &store.LoadOptions{Changes: 1})
	requireRefusal(t, err, store.ErrNotFound, bad, 1)
	require.ErrorContains(t, err, "block 131", "the error says where the store is")
	l.head = 131
	requireSame(t, want, l.state(t, around()...))

	backwards := []entity.Block{newBlock(150), newBlock(149)}
	refuses(t, store.ErrBlockOrder)(l.ents.Load(t.Context(), stream(backwards, nil), nil))

	done := must(l.ents.Load(t.Context(), stream[entity.Block](nil, nil), nil))(t)
	require.Equal(t, uint64(150), done.Head.Number)
	malformed := newBlock(151, on("x", opCreate(1, text("$x", ""))))
	_, err = l.ents.Load(t.Context(), stream([]entity.Block{malformed}, nil), nil)
	requireRefusal(t, err, entity.ErrInvalid, malformed, 0)
}

// testLoadAnotherWriter: another writer commits a block during a load. The load
// fails, so that the block is not between blocks of the load.
func testLoadAnotherWriter(t *testing.T, h Harness, temporal bool) {
	l := newLedger(t, h)
	_, err := l.ents.Load(t.Context(), func(yield func(entity.Block, error) bool) {
		for i, b := range history() {
			if i == 3 { // the source of the stream may write
				call1(t, l.ents.Apply, newBlock(116, on("other", opCreate(5))))
			}
			if !yield(b, nil) {
				return
			}
		}
	}, nil)
	require.ErrorIs(t, err, store.ErrConflict)
	require.EqualValues(t, 116, call(t, l.ents.Head).Number)
	refuses(t, store.ErrHistory, "block 116")(l.ents.Load(t.Context(), stream(history(), nil), nil))
	closeDB(t, l.db)
	if !temporal {
		return // without history there is no rewind
	}

	// A block that replaces one of the same number is another head.
	l = newLedger(t, h)
	once := false
	opts := &store.LoadOptions{Changes: 1, Progress: func(p store.Applied) {
		if once || p.Blocks < 2 {
			return
		}
		once = true
		require.NoError(t, l.ents.Rewind(t.Context(), p.Head.Number-1))
		call1(t, l.ents.Apply, newBlock(p.Head.Number, on("other", opCreate(5))))
	}}
	done, err := l.ents.Load(t.Context(), stream(history(), nil), opts)
	require.True(t, once)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, call(t, l.ents.Head), done.Head, "it says where the store is")
}

// runImport moves histories from one store into another.
func runImport(t *testing.T, h Harness) {
	source := newLedger(t, h.with("arkiv"), history()...)
	t.Run("interrupted", func(t *testing.T) { testImportInterrupted(t, h, source) })
	t.Run("another history", func(t *testing.T) { testImportOther(t, h, source) })
}

// testImportInterrupted: an import that breaks off keeps its first blocks and
// can be repeated.
func testImportInterrupted(t *testing.T, h Harness, source *ledger) {
	l := newLedger(t, h)
	sets := collect(t, source.ents.History(t.Context()))
	for n := range sets {
		done, err := l.ents.Import(t.Context(), stream(sets[:n], errSource), &store.LoadOptions{Changes: 1})
		require.ErrorIs(t, err, errSource)
		require.Equal(t, min(n, 1), done.Blocks, "one more each time")
	}
	done := must(l.ents.Import(t.Context(), stream(sets, nil), nil))(t)
	require.Equal(t, call(t, source.ents.Head), done.Head)
	again := must(l.ents.Import(t.Context(), source.ents.History(t.Context()), nil))(t)
	require.Equal(t, store.Applied{Head: done.Head, Skipped: len(sets)}, again)
	done, err := l.ents.Import(t.Context(), stream(sets[:2], nil), nil)
	require.NoError(t, err, "a source that is behind has nothing new")
	require.Equal(t, 2, done.Skipped)
	for _, err := range source.ents.History(t.Context()) {
		require.NoError(t, err)
		break // a loop that ends early leaves nothing open
	}
}

// testImportOther: the blocks that a store has must be the same in the source,
// whether the source has more blocks, as many, or fewer.
func testImportOther(t *testing.T, h Harness, source *ledger) {
	l := newLedger(t, h)
	l.applyBlocks(t, newBlock(110, on("a", opCreate(1000, v("different")))))
	l.applyBlocks(t, newBlock(111, on("b", opCreate(1000))))
	want := l.state(t)
	sets := collect(t, source.ents.History(t.Context()))
	for name, part := range map[string][]entity.Changeset{
		"more": sets, "as much": sets[:2], "less": sets[:1], "only later blocks": sets[2:],
	} {
		_, err := l.ents.Import(t.Context(), stream(part, nil), nil)
		require.ErrorIs(t, err, store.ErrHistory, name)
		requireSame(t, want, l.state(t), name)
	}
	foreign := entity.Changeset{Block: 120, Changes: []entity.Change{{
		Key: keyOf("a"), Old: &entity.Entity{Key: keyOf("a"), LastModifiedAtBlock: 105},
	}}}
	same := collect(t, l.ents.History(t.Context()))
	if l.ents.Temporal() {
		refuses(t, store.ErrHistory)(l.ents.Import(t.Context(), stream(append(same, foreign), nil), nil))
		requireSame(t, want, l.state(t))
	}
}
