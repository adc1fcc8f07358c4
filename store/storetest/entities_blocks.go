package storetest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// runBlocks checks what a store keeps of a block beside what it changed.
func runBlocks(t *testing.T, h Harness, layout string) {
	t.Run("kept", func(t *testing.T) { testBlocksKept(t, h, layout) })
	t.Run("rewound", func(t *testing.T) { testBlocksRewound(t, h, layout) })
	t.Run("copied", func(t *testing.T) { testBlocksCopied(t, h, layout) })
	t.Run("others", func(t *testing.T) { testBlocksOthers(t, h, layout) })
	t.Run("damaged", func(t *testing.T) { testBlocksDamaged(t, h, layout) })
	t.Run("chain", func(t *testing.T) { testChain(t, h, layout) })
}

// chained gives a block the hash and time that the tests expect of a branch.
func chained(b store.Block, branch byte) store.Block {
	b.Hash, b.Time = store.Hash{0: branch, 31: byte(b.Number)}, 1_700_000_000+2*b.Number
	return b
}

// chainedHistory is history with blocks of every kind: of a chain or not, and empty.
func chainedHistory() []store.Block {
	list := history()
	list = append(list, newBlock(132), newBlock(133), newBlock(140, on("last", opCreate(9))), newBlock(141))
	for i := range list {
		if i%4 != 1 {
			list[i] = chained(list[i], 1)
		}
	}
	return list
}

// blocksOf returns what a store says of each number up to its head.
func blocksOf(t testing.TB, ents *store.Entities) (list []store.BlockHead) {
	t.Helper()
	head := headOf(t, ents)
	for n := uint64(100); n <= head.Block; n++ {
		b, err := ents.BlockAt(t.Context(), n)
		require.NoError(t, err)
		list = append(list, b)
	}
	return list
}

// identifiedOnly leaves out the blocks that a history has no trace of.
func identifiedOnly(list []store.BlockHead) (kept []store.BlockHead) {
	for _, b := range list {
		if b.Hash != (store.Hash{}) && (len(kept) == 0 || kept[len(kept)-1] != b) {
			kept = append(kept, b)
		}
	}
	return kept
}

func testBlocksKept(t *testing.T, h Harness, layout string) {
	l, plain := newLedger(t, h, layout), newLedger(t, h, layout)
	for _, b := range chainedHistory() {
		applied, err := l.ents.Apply(t.Context(), b)
		require.NoError(t, err)
		b.Hash, b.Time = store.Hash{}, 0
		same, err := plain.ents.Apply(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, same.Head.Digest, applied.Head.Digest, "the digest is of what changed")
	}
	for _, opened := range []string{"", "again", "for reading only"} {
		switch {
		case opened == "again":
			l.reopen(t)
		case opened != "" && !h.Server:
			require.NoError(t, l.db.Close())
			l.url = withParams(t, l.url, "read_only", "true")
			l.open()
		}
		last := store.BlockHead{Empty: true}
		list := chainedHistory()
		for n := uint64(0); n <= 150; n++ {
			if len(list) > 0 && list[0].Number == n {
				last = store.BlockHead{Block: n, Hash: list[0].Hash, Time: list[0].Time}
				list = list[1:]
			}
			got, err := l.ents.BlockAt(t.Context(), n)
			require.NoError(t, err)
			last.Digest = got.Digest
			require.Equal(t, last, got, "block %d opened %s", n, opened)
			if n >= 110 && n <= 141 {
				l.head = 141
				l.view(t, n, func(s *store.Snapshot) {
					require.Equal(t, last, s.At(), "block %d", n)
					seen, err := s.BlockAt(t.Context(), n)
					require.NoError(t, err)
					require.Equal(t, last, seen)
				})
			}
		}
		head := headOf(t, l.ents)
		require.Equal(t, last, head)
	}
}

func testBlocksRewound(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	if !l.ents.Temporal() {
		t.Skip("the layout keeps no history")
	}
	l.applyBlocks(t, chainedHistory()...)
	before := blocksOf(t, l.ents)
	require.NoError(t, l.ents.Prune(t.Context(), 120))
	require.Equal(t, before, blocksOf(t, l.ents), "blocks are told apart whatever was pruned of them")
	require.NoError(t, l.ents.Rewind(t.Context(), 132))
	require.Equal(t, before[:33], blocksOf(t, l.ents))
	l.applyBlocks(t, chained(newBlock(133), 2))
	head := headOf(t, l.ents)
	require.Equal(t, store.Hash{0: 2, 31: 133}, head.Hash)
	require.Equal(t, before[32].Digest, head.Digest, "an empty block")
}

func testBlocksCopied(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout, chainedHistory()...)
	require.NoError(t, l.ents.SetChain(t.Context(), store.Chain{ID: 7, Genesis: store.Hash{7}}))
	want := blocksOf(t, l.ents)
	t.Run("history", func(t *testing.T) {
		copied := newLedger(t, h, layout)
		for range 2 {
			importInto(t, copied.ents, l.ents.History(t.Context()), store.LoadOptions{Changes: 2})
			requireCopied(t, l.ents.Temporal(), want, blocksOf(t, copied.ents))
		}
	})
	t.Run("operations", func(t *testing.T) {
		copied := newLedger(t, h, layout)
		for range 2 {
			loadInto(t, copied.ents, entity.Operations(l.ents.History(t.Context())), store.LoadOptions{Changes: 2})
			requireCopied(t, false, want, blocksOf(t, copied.ents))
		}
	})
	t.Run("backup", func(t *testing.T) {
		var backup bytes.Buffer
		contents, err := l.db.Backup(t.Context(), &backup, nil)
		require.NoError(t, err)
		require.Equal(t, want[len(want)-1], contents.Head)
		db := h.open(t, h.quickURL(t), nil)
		_, err = db.Restore(t.Context(), &backup, &contents, nil)
		require.NoError(t, err)
		ents := entitiesOf(t, db, store.EntityOptions{})
		require.Equal(t, want, blocksOf(t, ents))
		chain, ok, err := ents.Chain(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, store.Chain{ID: 7, Genesis: store.Hash{7}}, chain)
	})
}

// requireCopied compares blocks, and where all versions were copied their digests.
func requireCopied(t testing.TB, digests bool, want, got []store.BlockHead) {
	t.Helper()
	want, got = identifiedOnly(want), identifiedOnly(got)
	require.Len(t, got, len(want))
	for i := range want {
		if !digests {
			got[i].Digest = want[i].Digest
		}
		require.Equal(t, want[i], got[i])
	}
}

// testBlocksOthers: blocks of another hash are another history, though they change the
// same.
func testBlocksOthers(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	blocks := []store.Block{chained(newBlock(110, on("a", opCreate(1000))), 1), chained(newBlock(111), 1)}
	l.applyBlocks(t, blocks...)
	for _, i := range []int{0, 1} {
		others := []store.Block{blocks[0], blocks[1]}
		others[i].Hash = store.Hash{0: 2}
		_, err := l.ents.Load(t.Context(), stream(others, nil), store.LoadOptions{})
		require.ErrorIs(t, err, store.ErrHistory)
		others[i].Hash = store.Hash{}
		_, err = l.ents.Load(t.Context(), stream(others, nil), store.LoadOptions{})
		require.NoError(t, err, "a feed may know no hashes")
	}
	sets := collected(t, l.ents.History(t.Context()))
	more := slices.Concat(sets, []entity.Changeset{{Block: 112}})
	for _, list := range [][]entity.Changeset{sets, more} {
		importInto(t, l.ents, stream(list, nil), store.LoadOptions{})
		if !l.ents.Temporal() {
			return // what was imported cannot be taken back
		}
		require.NoError(t, l.ents.Rewind(t.Context(), 111))
		list[len(sets)-1].Hash = store.Hash{0: 2}
		_, err := l.ents.Import(t.Context(), stream(list, nil), store.LoadOptions{})
		require.ErrorIs(t, err, store.ErrHistory)
		list[len(sets)-1].Hash = blocks[1].Hash
	}
}

// testBlocksDamaged: a hash or time that is not what was recorded is found.
func testBlocksDamaged(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	l.applyBlocks(t, chained(newBlock(110, on("a", opCreate(1000))), 1))
	l.applyBlocks(t, chained(newBlock(111), 1))
	tx := begin(t, l.db.Engine())
	_, err := tx.Exec(t.Context(), "UPDATE varve_blocks SET digest = (SELECT digest FROM varve_blocks WHERE block = 110) WHERE block = 111")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	_, err = l.ents.Head(t.Context())
	require.ErrorIs(t, err, store.ErrCorrupt)
	_, err = l.ents.Verify(t.Context())
	require.ErrorIs(t, err, store.ErrCorrupt)
}

func testChain(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	_, ok, err := l.ents.Chain(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	ours := store.Chain{ID: 1337, Genesis: store.Hash{31: 9}}
	for range 2 {
		require.NoError(t, l.ents.SetChain(t.Context(), ours))
		l.reopen(t)
		got, ok, err := l.ents.Chain(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, ours, got)
	}
	for _, other := range []store.Chain{{ID: 1338, Genesis: ours.Genesis}, {ID: 1337}} {
		require.ErrorIs(t, l.ents.SetChain(t.Context(), other), store.ErrHistory)
	}
	require.NoError(t, l.ents.SetChain(t.Context(), ours))
}
