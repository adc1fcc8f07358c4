package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// runEntities tests blocks, snapshots, pruning and loading on each layout, in
// cases that random histories do not reach.
func runEntities(t *testing.T, h Harness) {
	suites := parts[Harness]{
		{"blocks", runBlocks},
		{"open", runOpen},
		{"load", runLoad},
		{"import", runImport},
	}
	layouts := h.layouts()
	if h.slow() {
		layouts, suites = layouts[len(layouts)-1:], suites[:2]
	}
	for _, h.layout = range layouts {
		if h.repeats() {
			continue
		}
		h := h
		if schemas.HasRuns(h.layout) && !h.slow() {
			newURL := h.NewURL
			h.NewURL = func(t testing.TB) string { return withParams(t, newURL(t), "backlog", smallBacklog) }
		}
		t.Run(h.layout, func(t *testing.T) { suites.run(t, h) })
	}
}

func runBlocks(t *testing.T, h Harness) {
	l := newLedger(t, h)
	parts[*ledger]{
		{"not kept", testNotKept},
		{"many operations", testManyOperations},
		{"many attributes", testManyAttributes},
		{"malformed", testMalformed},
		{"incomplete", testIncomplete},
	}.run(t, l)
	parts[Harness]{
		{"pruned rows", testPrunedRows},
		{"of another hash", testOtherHashes},
		{"chain", testChain},
		{"horizon of a history", testHorizonOfHistory},
	}.run(t, h)
}

// testNotKept: the caller may change a block and its parts after Apply.
func testNotKept(t *testing.T, l *ledger) {
	op := on("kept", opCreate(50, content("c", "payload"), text("t", "x"), number("n", 1)))
	l.apply(t, op)
	op.Content[0], op.StringAttributes["t"], op.NumericAttributes["n"] = 'X', "y", 2
	e := l.get(t, op.Key)
	require.Equal(t, "payload x 1", string(e.Content)+" "+e.StringAttributes["t"]+" "+string('0'+rune(e.NumericAttributes["n"])))
	e.Content[0], e.StringAttributes["t"] = 'X', "y"
	require.Equal(t, "payload", string(l.get(t, op.Key).Content))
}

// testManyOperations applies a block with more keys than fit into one
// statement.
func testManyOperations(t *testing.T, l *ledger) {
	const n = 1100
	block := func(op entity.Op) entity.Block {
		b := entity.Block{Number: l.head + 1}
		for i := range n {
			op.Key, op.TxIndex = entity.Key{0: 0xee, 30: byte(i >> 8), 31: byte(i)}, uint32(i)
			b.Ops = append(b.Ops, op)
		}
		return b
	}
	many := query.Compare{Name: "many", Op: query.Equal, Value: query.Text("yes")}
	count := func() int {
		list := l.find(t, many, &store.QueryOptions{Parts: store.Content})
		for _, e := range list {
			require.Equal(t, "payload", string(e.Content))
		}
		return len(list)
	}
	l.applyBlocks(t, block(opCreate(50, text("many", "yes"), content("c", "payload"))))
	require.Equal(t, n, count())
	l.applyBlocks(t, block(opOwner(bob)))
	require.Equal(t, n, count())
	l.applyBlocks(t, block(opExpire))
	require.Zero(t, count())
}

func testManyAttributes(t *testing.T, l *ledger) {
	op := on("wide", opCreate(100, content("", strings.Repeat("varve", 100_000))))
	for i := range 500 {
		text(fmt.Sprintf("s%d", i), strings.Repeat("x", i))(&op)
		number(fmt.Sprintf("n%d", i), uint64(i))(&op)
	}
	l.apply(t, op)
	e := l.get(t, op.Key)
	requireSame(t, []any{op.StringAttributes, op.NumericAttributes, op.Content}, []any{e.StringAttributes, e.NumericAttributes, e.Content})
	l.apply(t, on("wide", opUpdate(100, text("s1", "y"))))
	require.Empty(t, l.find(t, query.Compare{Name: "n7", Op: query.Equal, Value: query.Number(7)}, nil))
}

// testMalformed: a block with a malformed operation is refused with the
// operation's position and leaves no trace.
func testMalformed(t *testing.T, l *ledger) {
	want := l.state(t)
	for name, op := range map[string]entity.Op{
		"reserved string name":      opCreate(9, text("$key", "x")),
		"reserved numeric name":     opCreate(9, number("$sequence", 1)),
		"reserved unknown name":     opCreate(9, text("$", "x")),
		"empty string name":         opCreate(9, text("", "x")),
		"empty numeric name":        opCreate(9, number("", 1)),
		"string name not UTF-8":     opCreate(9, text("a\xff", "x")),
		"numeric name not UTF-8":    opCreate(9, number("\xc3", 1)),
		"string value not UTF-8":    opCreate(9, text("a", "\xed\xa0\x80")),
		"content type not UTF-8":    opCreate(9, content("\xff", "")),
		"unknown operation":         {Kind: entity.Expire + 1},
		"no operation":              {},
		"update, reserved name":     opUpdate(9, text("$owner", "x")),
		"update, value not UTF-8":   opUpdate(9, text("a", "\x80")),
		"operation index too large": {Kind: entity.Create, BTL: 9, OpIndex: math.MaxUint16 + 1},
	} {
		b := newBlock(l.head+1, on("fine", opCreate(9)), on("x", op))
		b.Ops[1].OpIndex = max(b.Ops[1].OpIndex, op.OpIndex)
		_, err := l.ents.Apply(t.Context(), b)
		requireRefusal(t, err, store.ErrInvalid, b, 1)
		require.ErrorContains(t, err, fmt.Sprintf("block %d, tx 0, op %d", b.Number, b.Ops[1].OpIndex), name)
	}
	for _, high := range []uint64{entity.MaxBlockNumber + 1, math.MaxInt64, math.MaxUint64} {
		refuses(t, store.ErrInvalid)(l.ents.Apply(t.Context(), newBlock(high)))
	}
	requireSame(t, want, l.state(t))
}

// testIncomplete: an operation that lacks a field, or has the position of another
// one, is refused with the field's name.
func testIncomplete(t *testing.T, l *ledger) {
	l.apply(t, on("owned", opCreate(50)), on("free", opCreate(50, owner(entity.Address{}))))
	want := l.state(t)
	unowned := opUpdate(50, owner(entity.Address{}))
	for _, c := range []struct {
		field string
		bad   int // the operation that is refused
		ops   ops
	}{
		{"BTL", 0, ops{on("x", opCreate(0))}},
		{"BTL", 1, ops{on("x", opCreate(9)), on("owned", opUpdate(0))}},
		{"Owner", 0, ops{on("owned", unowned)}},
		{"Owner", 1, ops{on("x", opCreate(9)), on("x", unowned)}},
		{"OpIndex", 1, ops{on("x", opCreate(9)), on("y", opCreate(9))}},
		{"OpIndex", 2, ops{on("x", opCreate(9)), on("x", opDelete), on("x", opCreate(9))}},
	} {
		b := newBlock(l.head+1, c.ops...)
		for i := range b.Ops {
			if c.field == "OpIndex" {
				b.Ops[i].TxIndex, b.Ops[i].OpIndex = 3, 7
			}
		}
		_, err := l.ents.Apply(t.Context(), b)
		requireRefusal(t, err, store.ErrInvalid, b, c.bad)
		require.ErrorContains(t, err, c.field)
	}
	// A feed counts each kind of operation of a transaction separately, so creates may be
	// out of order, and operations of different kinds may have the same position.
	b := newBlock(l.head+1, on("x", opCreate(9)), on("y", opCreate(9)), on("x", opUpdate(9)), on("owned", opExtend(0)))
	for i, index := range []uint32{1, 0, 1, 1} {
		b.Ops[i].TxIndex, b.Ops[i].OpIndex = 0, index
	}
	requireSame(t, want, l.state(t))
	l.applyBlocks(t, b)
	require.Equal(t, entity.MakeSequence(l.head, 0, 0), l.get(t, keyOf("y")).Sequence)
	// An entity without an owner remains without one.
	l.apply(t, on("free", unowned))
	require.Zero(t, l.get(t, keyOf("free")).Owner)
	l.apply(t, on("x", opOwner(entity.Address{})), on("x", unowned))
	require.Zero(t, l.get(t, keyOf("x")).Owner)
}

// testPrunedRows: after Prune, only versions that can be read remain.
func testPrunedRows(t *testing.T, h Harness) {
	l := newLedger(t, h, history()...)
	full := call(t, l.ents.Summary)
	require.NoError(t, l.ents.Prune(t.Context(), l.head))
	summary := call(t, l.ents.Summary)
	for table, rows := range summary.Tables {
		require.LessOrEqual(t, rows, full.Tables[table])
	}
	require.Equal(t, full.Live, summary.Tables["payloads"]+summary.Tables["versions"], "the layout has one of them")
}

// chained gives a block a hash and a time.
func chained(b entity.Block) entity.Block {
	b.Hash, b.Time = entity.Hash{0: 1, 31: byte(b.Number)}, 1_700_000_000+2*b.Number
	return b
}

// testOtherHashes: blocks with other hashes are another history, even if they
// make the same changes.
func testOtherHashes(t *testing.T, h Harness) {
	l := newLedger(t, h)
	blocks := []entity.Block{chained(newBlock(110, on("a", opCreate(1000)))), chained(newBlock(111))}
	l.applyBlocks(t, blocks...)
	for _, i := range []int{0, 1} {
		others := []entity.Block{blocks[0], blocks[1]}
		others[i].Hash = entity.Hash{0: 2}
		refuses(t, store.ErrHistory)(l.ents.Load(t.Context(), stream(others, nil), nil))
		others[i].Hash = entity.Hash{}
		_, err := l.ents.Load(t.Context(), stream(others, nil), nil)
		require.NoError(t, err, "a feed may know no hashes")
	}
	sets := collect(t, l.ents.History(t.Context()))
	more := slices.Concat(sets, []entity.Changeset{{Block: 112}})
	for _, list := range [][]entity.Changeset{sets, more} {
		must(l.ents.Import(t.Context(), stream(list, nil), nil))(t)
		if !l.ents.Temporal() {
			return // without history there is no rewind
		}
		require.NoError(t, l.ents.Rewind(t.Context(), 111))
		list[len(sets)-1].Hash = entity.Hash{0: 2}
		refuses(t, store.ErrHistory)(l.ents.Import(t.Context(), stream(list, nil), nil))
		list[len(sets)-1].Hash = blocks[1].Hash
	}
}

// testHorizonOfHistory: the first changeset of a history, and no other one, says
// from which block on it is complete, also where that one changes nothing.
func testHorizonOfHistory(t *testing.T, h Harness) {
	l := newLedger(t, h)
	l.applyBlocks(t, chained(newBlock(110)), chained(newBlock(111, on("a", opCreate(1000)))), chained(newBlock(112, on("b", opCreate(1000)))))
	if l.ents.Temporal() {
		require.NoError(t, l.ents.Prune(t.Context(), 112))
	}
	var horizons []uint64
	for _, set := range collect(t, l.ents.History(t.Context())) {
		horizons = append(horizons, set.Horizon)
	}
	require.Equal(t, []uint64{112, 0, 0}, horizons)
}

func testChain(t *testing.T, h Harness) {
	l := newLedger(t, h)
	_, ok, err := l.ents.Chain(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	ours := store.Chain{ID: 1337, Genesis: entity.Hash{31: 9}}
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
