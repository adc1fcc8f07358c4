package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// stream yields blocks and then, unless it is nil, an error.
func stream(blocks []store.Block, err error) iter.Seq2[store.Block, error] {
	return func(yield func(store.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Block{}, err)
		}
	}
}

var errSource = errors.New("the source broke")

// runLoad checks loading of many blocks in few transactions.
func runLoad(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	for _, b := range history() {
		l.applyBlock(t, b)
	}
	want := l.state(t, around()...)
	t.Run("batches", func(t *testing.T) { testLoadBatches(t, h, layout, want) })
	t.Run("interrupted", func(t *testing.T) { testLoadInterrupted(t, h, layout, want) })
	t.Run("bad block", func(t *testing.T) { testLoadBadBlock(t, h, layout, want) })
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
			head, err := l.ents.Head(t.Context())
			require.NoError(t, err)
			require.Equal(t, p.Head, head, "the head that was told is committed")
		}}
		done, err := l.ents.Load(t.Context(), stream(history(), nil), opts)
		require.NoError(t, err)
		l.head = done.Head.Block
		requireSame(t, want, l.state(t, around()...), "batches of %d", changes)
		require.Equal(t, len(history()), done.Blocks)
		require.NotEmpty(t, told)
		require.Equal(t, done, told[len(told)-1])
		if changes == 1 {
			require.Len(t, told, len(history()))
		}

		told = nil
		again, err := l.ents.Load(t.Context(), stream(history(), nil), opts)
		require.NoError(t, err)
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
		head, err := l.ents.Head(t.Context())
		require.NoError(t, err)
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

	done, err = l.ents.Load(t.Context(), stream(history(), nil), store.LoadOptions{})
	require.NoError(t, err)
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

	done, err := l.ents.Load(t.Context(), stream(nil, nil), store.LoadOptions{})
	require.NoError(t, err)
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
	head, err := l.ents.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(116), head.Block)
	done, err := l.ents.Load(t.Context(), stream(history(), nil), store.LoadOptions{})
	require.NoError(t, err)
	require.Equal(t, uint64(131), done.Head.Block)
}
