package storetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/storetest/model"
)

// runOpen tests new stores, the record of layout and rules in a database, and
// refused calls.
var runOpen = parts[Harness]{
	{"new store", testNewStore},
	{"extend adds", testExtendAdds},
	{"other layout", testOtherLayout},
	{"foreign tables", testForeignTables},
	{"refused", testRefused},
}.run

// testNewStore: a store without blocks is empty at block 0 and can be read at
// no other block.
func testNewStore(t *testing.T, h Harness) {
	l := newLedger(t, h)
	require.Equal(t, h.layout, l.ents.Layout())
	head := call(t, l.ents.Head)
	require.Equal(t, store.BlockHeader{Empty: true}, head)
	for _, block := range []uint64{0, store.Head} {
		s := l.at(t, block)
		require.Zero(t, s.Number())
		require.Equal(t, head, s.Head())
		require.Empty(t, everything(t, s))
		refuses(t, store.ErrNotFound)(s.Get(t.Context(), keyOf("x")))
	}
	refuses(t, store.ErrBlockRange)(l.ents.At(t.Context(), 1))
	again := call1(t, l.db.Entities, nil)
	require.Same(t, l.ents, again)

	var backup bytes.Buffer
	contents := must(l.db.Backup(t.Context(), &backup, nil))(t)
	restored := h.open(t, h.NewURL(t), nil)
	require.Equal(t, contents, must(restored.Restore(t.Context(), &backup, nil))(t))
	copied := call1(t, restored.Entities, nil) // a store without rows has the tables, too
	call1(t, copied.Apply, newBlock(0, on("genesis", opCreate(5))))
}

func testOtherLayout(t *testing.T, h Harness) {
	other := "simple"
	if h.layout == other {
		other = "arkiv"
	}
	l := newLedger(t, h, history()...)
	want := l.state(t)
	refuse := func(name string) {
		t.Helper()
		_, err := l.db.Entities(t.Context(), &store.EntityOptions{Layout: name})
		require.ErrorIs(t, err, store.ErrLayout)
		require.ErrorContains(t, err, h.layout)
		require.ErrorContains(t, err, name)
	}
	refuse(other)
	closeDB(t, l.db)
	l.db = h.open(t, l.url, nil)
	refuse(other)
	refuse("no such layout")
	_, err := l.db.Entities(t.Context(), nil)
	require.NoError(t, err, "the store knows its layout")
	closeDB(t, l.db)
	l.open()
	requireSame(t, want, l.state(t))

	db := h.open(t, h.NewURL(t), nil)
	_, err = db.Entities(t.Context(), &store.EntityOptions{Layout: "no such layout"})
	require.ErrorIs(t, err, store.ErrLayout)
	require.ErrorContains(t, err, h.layout, "the error lists the layouts")
	_, err = db.Entities(t.Context(), &store.EntityOptions{Layout: h.layout})
	require.NoError(t, err, "nothing was made by the failed call")
}

// testForeignTables: a database with tables of another program is not changed.
func testForeignTables(t *testing.T, h Harness) {
	db := h.open(t, h.NewURL(t), nil)
	inTx(t, db.Engine(), func(tx driver.Tx) {
		exec(t, tx, "CREATE TABLE accounts (id INTEGER)")
	})
	for range 2 {
		refuses(t, store.ErrLayout)(db.Entities(t.Context(), &store.EntityOptions{Layout: h.layout}))
	}
}

// everyCall returns a function for each method of a store and of its snapshot.
func everyCall(ctx context.Context, l *ledger, s *store.Snapshot) (writes, reads map[string]error) {
	_, apply := l.ents.Apply(ctx, newBlock(l.head+1))
	_, load := l.ents.Load(ctx, stream(history(), nil), nil)
	writes = map[string]error{"apply": apply, "load": load, "prune": l.ents.Prune(ctx, l.head)}
	if l.ents.Temporal() {
		writes["rewind"] = l.ents.Rewind(ctx, l.head)
	}
	_, head := l.ents.Head(ctx)
	opened, at := l.ents.At(ctx, store.Head)
	if at == nil {
		at = opened.Close() // a history needs three of the four readers
	}
	_, summary := l.ents.Summary(ctx)
	_, changes := model.Collect(l.ents.History(ctx))
	_, get := s.Get(ctx, keyOf("a"))
	_, count := s.Count(ctx, nil)
	_, found := model.Collect(s.Query(ctx, nil, nil))
	return writes, map[string]error{
		"head": head, "at": at, "summary": summary, "history": changes, "get": get, "count": count, "query": found,
	}
}

// testRefused: every call of a read-only store, of a closed one or with a
// cancelled context returns that error and changes nothing.
func testRefused(t *testing.T, h Harness) {
	l := newLedger(t, h, history()[0])
	want := l.state(t)
	refused := func(ctx context.Context, s *store.Snapshot, write, read error) {
		t.Helper()
		writes, reads := everyCall(ctx, l, s)
		for name, err := range writes {
			require.ErrorIs(t, err, write, name)
		}
		for name, err := range reads {
			require.ErrorIs(t, err, read, name)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	s := l.at(t, store.Head)
	refused(done, s, context.Canceled, context.Canceled)
	requireSame(t, want, l.state(t))
	require.Len(t, everything(t, s), 3, "the snapshot is usable")
	s = l.at(t, store.Head) // a new one, which has cached nothing
	closeDB(t, l.db)
	require.NoError(t, l.db.Close(), "a second Close does nothing")
	refused(t.Context(), s, store.ErrClosed, store.ErrClosed)
	if h.Server {
		return // its databases are not opened for reading only
	}
	l.db = h.open(t, l.url, &store.Options{ReadOnly: true})
	l.ents = call1(t, l.db.Entities, &store.EntityOptions{Layout: h.layout})
	refused(t.Context(), l.at(t, store.Head), store.ErrReadOnly, nil)
	requireSame(t, want, l.state(t))
}

// testExtendAdds: a store in which ExtendBTL counts from the block cannot be
// opened with the other rule.
func testExtendAdds(t *testing.T, h Harness) {
	l := newLedger(t, h)
	closeDB(t, l.db)
	l.db = h.open(t, l.url, nil)
	refuses(t, store.ErrLayout)(l.db.Entities(t.Context(), &store.EntityOptions{Layout: h.layout, ExtendAdds: true}))
}
