package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// runImport moves histories from one store into another.
func runImport(t *testing.T, h Harness, layout string) {
	source := newLedger(t, h, "arkiv", history()...)
	want := newLedger(t, h, layout, history()...)
	full := want.state(t, around()...)
	require.NoError(t, want.db.Close())
	t.Run("same store", func(t *testing.T) { testImportSame(t, h, layout, source, full) })
	t.Run("interrupted", func(t *testing.T) { testImportInterrupted(t, h, layout, source, full) })
	t.Run("another history", func(t *testing.T) { testImportOther(t, h, layout, source) })
	t.Run("export", func(t *testing.T) { testExport(t, h, layout) })
	t.Run("empty", func(t *testing.T) {
		sets := collected(t, newLedger(t, h, layout).ents.History(t.Context()))
		require.Empty(t, sets)
	})
}

// dropBlocks leaves out what depends on empty blocks, which a history has no
// trace of.
func dropBlocks(s state) state {
	s.Summary.Blocks = 0
	return s
}

func testImportSame(t *testing.T, h Harness, layout string, source *ledger, full state) {
	for _, changes := range []int{0, 1} {
		l := newLedger(t, h, layout)
		done := importInto(t, l.ents, source.ents.History(t.Context()), store.LoadOptions{Changes: changes})
		l.head = done.Head.Block
		requireSame(t, dropBlocks(full), dropBlocks(l.state(t, around()...)))
		again := importInto(t, l.ents, source.ents.History(t.Context()), store.LoadOptions{})
		require.Zero(t, again.Blocks)
		require.Equal(t, done.Blocks, again.Skipped)
		l.apply(t, on("x", opCreate(5)), on("a", opUpdate(5)))
		require.NoError(t, l.db.Close())
	}
}

func testImportInterrupted(t *testing.T, h Harness, layout string, source *ledger, full state) {
	l := newLedger(t, h, layout)
	sets := collected(t, source.ents.History(t.Context()))
	for n := range sets {
		done, err := l.ents.Import(t.Context(), stream(sets[:n], errSource), store.LoadOptions{Changes: 1})
		require.ErrorIs(t, err, errSource)
		require.Equal(t, min(n, 1), done.Blocks, "one more each time")
	}
	done := importInto(t, l.ents, stream(sets, nil), store.LoadOptions{})
	l.head = done.Head.Block
	requireSame(t, dropBlocks(full), dropBlocks(l.state(t, around()...)))
	done, err := l.ents.Import(t.Context(), stream(sets[:2], nil), store.LoadOptions{})
	require.NoError(t, err, "a source that is behind has nothing new")
	require.Equal(t, 2, done.Skipped)
}

// testImportOther: what a store holds already must be what the source says,
// whether the source has more, as much, or less.
func testImportOther(t *testing.T, h Harness, layout string, source *ledger) {
	l := newLedger(t, h, layout)
	l.applyBlocks(t, newBlock(110, on("a", opCreate(1000, v("different")))))
	l.applyBlocks(t, newBlock(111, on("b", opCreate(1000))))
	want := l.state(t)
	sets := collected(t, source.ents.History(t.Context()))
	for name, part := range map[string][]entity.Changeset{
		"more": sets, "as much": sets[:2], "less": sets[:1], "only later blocks": sets[2:],
	} {
		_, err := l.ents.Import(t.Context(), stream(part, nil), store.LoadOptions{})
		require.ErrorIs(t, err, store.ErrHistory, name)
		requireSame(t, want, l.state(t), name)
	}
	foreign := entity.Changeset{Block: 120, Changes: []entity.Change{{
		Key: keyOf("a"), Old: &entity.Entity{Key: keyOf("a"), LastModifiedAtBlock: 105},
	}}}
	same := collected(t, l.ents.History(t.Context()))
	if l.ents.Temporal() {
		_, err := l.ents.Import(t.Context(), stream(append(same, foreign), nil), store.LoadOptions{})
		require.ErrorIs(t, err, store.ErrHistory)
		requireSame(t, want, l.state(t))
	}
}

// testExport: what a store gives away makes the same store, as far as its
// layout remembers.
func testExport(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout, history()...)
	l.apply(t, on("brief", opCreate(1)))
	l.apply(t)
	l.apply(t, on("brief", opCreate(9)), on("brief", opDelete))
	l.apply(t)
	copied := newLedger(t, h, layout)
	done := importInto(t, copied.ents, l.ents.History(t.Context()), store.LoadOptions{})
	require.Equal(t, l.head, done.Head.Block, "empty blocks at the end advance the head")
	copied.head = l.head
	if l.ents.Temporal() {
		requireSame(t, dropBlocks(l.state(t, around()...)), dropBlocks(copied.state(t, around()...)))
		_, err := copied.ents.Apply(t.Context(), newBlock(l.head+1, on("brief", opExpire)))
		require.ErrorIs(t, err, store.ErrNotFound, "that its last life was ended is copied")
	} else {
		requireSame(t, l.state(t).Content, copied.state(t).Content)
	}
	for set, err := range l.ents.History(t.Context()) {
		require.NoError(t, err)
		require.NotEmpty(t, set.Changes)
		break // a reader that stops early leaves nothing open
	}
	require.NoError(t, l.db.Close())
}
