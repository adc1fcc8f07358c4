package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// runSnapshots checks that a read view stands still.
func runSnapshots(t *testing.T, h Harness, layout string) {
	t.Run("stand still", func(t *testing.T) { testStandStill(t, h, layout) })
	t.Run("range", func(t *testing.T) { testSnapshotRange(t, h, layout) })
	t.Run("bounded", func(t *testing.T) { testReadersBounded(t, h, layout) })
	t.Run("whole blocks", func(t *testing.T) { testWholeBlocks(t, h, layout) })
}

// testStandStill: neither blocks nor a rewind, nor a prune, change what an open
// snapshot shows.
func testStandStill(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	blocks := history()
	l.applyBlocks(t, blocks[:5]...)
	head := l.at(t, store.Head)
	past := head
	if l.ents.Temporal() {
		past = l.at(t, 112)
	}
	wantHead, wantPast, at := everything(t, head), everything(t, past), head.Head()
	check := func(after string) {
		t.Helper()
		requireSame(t, wantHead, everything(t, head), after)
		requireSame(t, wantPast, everything(t, past), after)
		for _, e := range wantHead {
			got, err := head.Get(t.Context(), e.Key)
			require.NoError(t, err)
			requireSame(t, e, got, after)
		}
		n := countOf(t, past, nil)
		require.EqualValues(t, len(wantPast), n, after)
		require.Equal(t, at, head.Head())
		require.Equal(t, blocks[4].Number, head.Block())
	}
	for _, b := range blocks[5:] {
		l.applyBlocks(t, b)
		check("blocks")
	}
	if l.ents.Temporal() {
		require.NoError(t, l.ents.Rewind(t.Context(), 111))
		check("rewind")
		l.applyBlocks(t, newBlock(112, on("a", opDelete)))
	}
	current := headOf(t, l.ents)
	require.NoError(t, l.ents.Prune(t.Context(), current.Block))
	check("prune")
}

func testSnapshotRange(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout, history()...)
	for _, block := range []uint64{l.head + 1, 1 << 40, 1<<63 - 1, 1 << 63, store.Head - 1} {
		_, err := l.ents.At(t.Context(), block)
		require.ErrorIs(t, err, store.ErrBlockRange, "block %d", block)
	}
	for _, block := range []uint64{0, 1, 109, 113, l.head - 1} {
		l.view(t, block, func(s *store.Snapshot) { require.Equal(t, block, s.Block()) })
	}
	require.Equal(t, l.head, l.at(t, l.head).Block())
	s := l.at(t, store.Head)
	require.Equal(t, l.head, s.Block())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second Close does nothing")
	_, err := s.Get(t.Context(), keyOf("a"))
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = collect(s.Query(t.Context(), nil, nil))
	require.ErrorIs(t, err, store.ErrClosed)
}

// testReadersBounded: a snapshot too many waits until it is cancelled or
// another is closed.
func testReadersBounded(t *testing.T, h Harness, layout string) {
	url := h.NewURL(t)
	db := h.open(t, url, &store.Options{Readers: 2})
	ents := entitiesOf(t, db, store.EntityOptions{Layout: layout})
	l := &ledger{t: t, h: h, url: url, layout: layout, db: db, ents: ents, head: firstBlock}
	first, second := l.at(t, store.Head), l.at(t, store.Head)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ents.At(done, store.Head)
	require.ErrorIs(t, err, context.Canceled)
	l.applyBlocks(t, history()[0])

	opened := make(chan error, 1)
	go func() {
		s, err := ents.At(context.WithoutCancel(t.Context()), store.Head)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	require.NoError(t, first.Close())
	require.NoError(t, <-opened)
	require.Empty(t, everything(t, second))
}

// counted are the entities of testWholeBlocks.
const counted, countedBlocks = 20, 25

// testWholeBlocks reads while blocks are applied that set a counter of every
// entity to the block's number: a reader must never see two values.
func testWholeBlocks(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	round := func(op func(uint64) store.Op) {
		list := make([]store.Op, counted)
		for i := range list {
			list[i] = on(fmt.Sprintf("counter %d", i), op(l.head+1))
		}
		l.apply(t, list...)
	}
	round(func(block uint64) store.Op { return opCreate(1000, number("block", block)) })
	var readers sync.WaitGroup
	stop := make(chan struct{})
	errs := make(chan error, 2)
	for range cap(errs) {
		readers.Go(func() { errs <- l.watch(stop) })
	}
	for range countedBlocks {
		round(func(block uint64) store.Op { return opUpdate(1000, number("block", block)) })
	}
	close(stop)
	readers.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// watch looks at the store until it is told to stop, and once after.
func (l *ledger) watch(stop <-chan struct{}) error {
	ctx := context.Background()
	for last := uint64(0); ; {
		s, err := l.ents.At(ctx, store.Head)
		if err != nil {
			return err
		}
		if s.Block() < last {
			return fmt.Errorf("head went from %d back to %d", last, s.Block())
		}
		last = s.Block()
		if err := errors.Join(oneBlock(ctx, s), s.Close()); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// oneBlock checks that every counter shows the snapshot's block.
func oneBlock(ctx context.Context, s *store.Snapshot) error {
	list, err := collect(s.Query(ctx, nil, nil))
	if err != nil {
		return err
	}
	for _, e := range list {
		if n := e.NumericAttributes["block"]; n != s.Block() || len(list) != counted {
			return fmt.Errorf("at block %d: %d entities, one with counter %d", s.Block(), len(list), n)
		}
	}
	n, err := s.Count(ctx, query.Compare{Name: "block", Op: query.Equal, Value: query.Number(s.Block())})
	if err == nil && n != counted {
		err = fmt.Errorf("at block %d: %d of %d counters found by their value", s.Block(), n, counted)
	}
	return err
}
