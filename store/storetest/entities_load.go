package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// stream yields what is in a list and then, unless it is nil, an error.
func stream[T any](list []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

var errSource = errors.New("the source broke")

// runLoad checks loading of many blocks in few transactions.
func runLoad(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout, history()...)
	want := l.state(t, around()...)
	t.Run("batches", func(t *testing.T) { testLoadBatches(t, h, layout, want) })
	t.Run("interrupted", func(t *testing.T) { testLoadInterrupted(t, h, layout, want) })
	t.Run("bad block", func(t *testing.T) { testLoadBadBlock(t, h, layout, want) })
	t.Run("another history", func(t *testing.T) { testLoadOther(t, h, layout) })
	t.Run("pruned", func(t *testing.T) { testLoadPruned(t, h, layout) })
	t.Run("another writer", func(t *testing.T) { testLoadAnotherWriter(t, h, layout) })
}

// testLoadBatches: the size of transactions does not change what is stored, and
// a stream that the store holds already is skipped.
func testLoadBatches(t *testing.T, h Harness, layout string, want state) {
	for _, changes := range []int{0, 1, 3, 1000} {
		l := newLedger(t, h, layout)
		var told []store.Loaded
		opts := store.LoadOptions{Changes: changes, Progress: func(p store.Loaded) {
			told = append(told, p)
			head := headOf(t, l.ents)
			require.Equal(t, p.Head, head, "the head that was told is committed")
		}}
		done := loadInto(t, l.ents, stream(history(), nil), opts)
		l.head = done.Head.Block
		requireSame(t, want, l.state(t, around()...), "batches of %d", changes)
		require.Equal(t, len(history()), done.Blocks)
		require.NotEmpty(t, told)
		require.Equal(t, done, told[len(told)-1])
		if changes == 1 {
			require.Len(t, told, len(history()))
		}

		told = nil
		again := loadInto(t, l.ents, stream(history(), nil), opts)
		require.Equal(t, store.Loaded{Head: done.Head, Skipped: len(history())}, again)
		require.Empty(t, told)
		require.NoError(t, l.db.Close())
	}
}

// testLoadInterrupted: after an error of the source, or a cancellation, the
// store is at the block that Progress told of, and the same stream goes on.
func testLoadInterrupted(t *testing.T, h Harness, layout string, want state) {
	l := newLedger(t, h, layout)
	var told store.BlockHead
	opts := store.LoadOptions{Changes: 7, Progress: func(p store.Loaded) { told = p.Head }}
	check := func(done store.Loaded, err, cause error) {
		t.Helper()
		require.ErrorIs(t, err, cause)
		head := headOf(t, l.ents)
		require.Equal(t, told, head)
		require.Equal(t, told, done.Head)
	}
	done, err := l.ents.Load(t.Context(), stream(history()[:5], errSource), opts)
	check(done, err, errSource)
	require.Equal(t, history()[4].Number, told.Block, "what came before the error is kept")

	ctx, cancel := context.WithCancel(t.Context())
	opts.Changes, opts.Progress = 1, func(p store.Loaded) { told = p.Head; cancel() }
	done, err = l.ents.Load(ctx, stream(history(), nil), opts)
	check(done, err, context.Canceled)

	done = loadInto(t, l.ents, stream(history(), nil), store.LoadOptions{})
	l.head = done.Head.Block
	requireSame(t, want, l.state(t, around()...))
	require.Equal(t, len(history()), done.Blocks+done.Skipped)
}

// testLoadBadBlock: a block that is refused ends the load; those before it are
// kept.
func testLoadBadBlock(t *testing.T, h Harness, layout string, want state) {
	l := newLedger(t, h, layout)
	bad := newBlock(200, fine("1"), on("nobody", opDelete))
	blocks := append(history(), bad)
	_, err := l.ents.Load(t.Context(), stream(blocks, nil), store.LoadOptions{Changes: 1})
	requireRefusal(t, err, store.ErrNotFound, bad, 1)
	require.ErrorContains(t, err, "block 131", "the error says where the store is")
	l.head = 131
	requireSame(t, want, l.state(t, around()...))

	backwards := []store.Block{newBlock(150), newBlock(149)}
	_, err = l.ents.Load(t.Context(), stream(backwards, nil), store.LoadOptions{})
	require.ErrorIs(t, err, store.ErrBlockOrder)

	done := loadInto(t, l.ents, stream[store.Block](nil, nil), store.LoadOptions{})
	require.Equal(t, uint64(150), done.Head.Block)
	malformed := newBlock(151, on("x", opCreate(1, text("$x", ""))))
	_, err = l.ents.Load(t.Context(), stream([]store.Block{malformed}, nil), store.LoadOptions{})
	requireRefusal(t, err, entity.ErrInvalid, malformed, 0)
}

// testLoadAnotherWriter: somebody who writes between two transactions of a load
// must not end up between its blocks.
func testLoadAnotherWriter(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	once := false
	opts := store.LoadOptions{Changes: 1, Progress: func(store.Loaded) {
		if !once {
			once = true
			_, err := l.ents.Apply(t.Context(), newBlock(116, on("other", opCreate(5))))
			require.NoError(t, err)
		}
	}}
	_, err := l.ents.Load(t.Context(), stream(history(), nil), opts)
	require.ErrorIs(t, err, store.ErrConflict)
	head := headOf(t, l.ents)
	require.Equal(t, uint64(116), head.Block)
	_, err = l.ents.Load(t.Context(), stream(history(), nil), store.LoadOptions{})
	require.ErrorIs(t, err, store.ErrHistory)
	require.ErrorContains(t, err, "block 116")
	require.NoError(t, l.db.Close())
	if !temporal(t, h, layout) {
		return // what follows rewinds
	}

	// Another block of the same number is another head.
	l = newLedger(t, h, layout)
	once = false
	opts.Progress = func(p store.Loaded) {
		if once || p.Blocks < 2 {
			return
		}
		once = true
		require.NoError(t, l.ents.Rewind(t.Context(), p.Head.Block-1))
		_, err := l.ents.Apply(t.Context(), newBlock(p.Head.Block, on("other", opCreate(5))))
		require.NoError(t, err)
	}
	done, err := l.ents.Load(t.Context(), stream(history(), nil), opts)
	require.True(t, once)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, headOf(t, l.ents), done.Head, "it says where the store is")
}

// testLoadOther: blocks that a load skips must be those that the store holds, at
// whatever block the stream begins.
func testLoadOther(t *testing.T, h Harness, layout string) {
	const fork = 120 // the first block that is not the stream's
	foreign := map[string][]store.Block{
		"other keys":     {newBlock(fork, on("x", opCreate(1000, v("x"))))},
		"another value":  {withOp(history()[4], 3, opUpdate(30, v("else")))},
		"another owner":  {withOp(history()[4], 0, opCreate(1000, v("d2"), owner(carol)))},
		"another life":   {withOp(history()[4], 3, opUpdate(31, v("f2")))},
		"one more":       {newBlock(fork, append(history()[4].Ops, on("x", opCreate(1000)))...)},
		"between":        {newBlock(118, on("x", opCreate(1000))), history()[4]},
		"several":        {newBlock(119, on("x", opCreate(1000))), newBlock(fork, on("y", opCreate(1000))), newBlock(121, on("x", opUpdate(7)))},
		"behind the end": {history()[4], newBlock(121, on("x", opCreate(1000))), newBlock(140)},
	}
	if temporal(t, h, layout) { // others have forgotten what was live
		foreign["one less"] = []store.Block{newBlock(fork, history()[4].Ops[1:]...)}
		foreign["a delete"] = []store.Block{newBlock(fork, on("a", opDelete))}
		foreign["nothing"] = []store.Block{newBlock(fork)}
	}
	for name, blocks := range foreign {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, h, layout, append(history()[:4], blocks...)...)
			want := l.state(t, around()...)
			for from := range 5 {
				_, err := l.ents.Load(t.Context(), stream(history()[from:], nil), store.LoadOptions{})
				if from == 4 && name == "between" {
					continue // the stream begins behind it
				}
				require.ErrorIs(t, err, store.ErrHistory, "from block %d", history()[from].Number)
				require.ErrorContains(t, err, "block 1")
				requireSame(t, want, l.state(t, around()...))
			}
			require.NoError(t, l.db.Close())
		})
	}
}

// withOp puts another operation on the same key in the place of one.
func withOp(b store.Block, i int, op store.Op) store.Block {
	ops := slices.Clone(b.Ops)
	op.Key = ops[i].Key
	ops[i] = op
	return newBlock(b.Number, ops...)
}

func temporal(t *testing.T, h Harness, layout string) bool {
	l := newLedger(t, h, layout)
	defer l.db.Close()
	return l.ents.Temporal()
}

// testLoadPruned: a store that has forgotten versions is fed the same stream
// again, and a store that adds lifetimes up.
func testLoadPruned(t *testing.T, h Harness, layout string) {
	adds := newLedgerAdding(t, h, layout)
	loadInto(t, adds.ents, stream(history(), nil), store.LoadOptions{})
	done := loadInto(t, adds.ents, stream(history(), nil), store.LoadOptions{})
	require.Equal(t, len(history()), done.Skipped)
	for _, before := range around()[1:] {
		l := newLedger(t, h, layout)
		if !l.ents.Temporal() {
			return
		}
		l.applyBlocks(t, history()...)
		require.NoError(t, l.ents.Prune(t.Context(), before))
		for from := range history() {
			done, err := l.ents.Load(t.Context(), stream(history()[from:], nil), store.LoadOptions{})
			require.NoError(t, err, "pruned before %d, from block %d", before, history()[from].Number)
			require.Equal(t, len(history())-from, done.Skipped)
		}
		other := withOp(history()[7], 0, opCreate(5, v("else")))
		_, err := l.ents.Load(t.Context(), stream([]store.Block{other}, nil), store.LoadOptions{})
		require.ErrorIs(t, err, store.ErrHistory)
		require.NoError(t, l.db.Close())
	}
}

// newLedgerAdding opens a new store in which ExtendBTL adds to the old
// expiration.
func newLedgerAdding(t *testing.T, h Harness, layout string) *ledger {
	l := newLedger(t, h, layout)
	require.NoError(t, l.db.Close())
	l.url = h.quickURL(t)
	l.db = h.open(t, l.url, nil)
	l.ents = entitiesOf(t, l.db, store.EntityOptions{Layout: layout, ExtendAdds: true})
	return l
}
