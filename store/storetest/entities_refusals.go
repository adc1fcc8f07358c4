package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// refusal is a block that a store must refuse for its operation at.
type refusal struct {
	name   string
	before [][]store.Op // blocks that it takes first
	ops    []store.Op
	at     int
	want   error
}

// fine is an operation that could be applied and must not be, because of what
// comes after or before it in the block.
func fine(name string) store.Op { return on("fine "+name, opCreate(9, text("fine", "yes"))) }

func unfit() []refusal {
	live := [][]store.Op{{on("x", opCreate(1000))}}
	gone := [][]store.Op{{on("x", opCreate(1))}, {}}
	deleted := [][]store.Op{{on("x", opCreate(1000))}, {on("x", opDelete)}}
	brief := append(slices.Clone(gone), []store.Op{on("x", opCreate(1000)), on("x", opDelete)})
	list := []refusal{
		{"create a live key", live, ops{on("x", opCreate(9))}, 0, store.ErrExists},
		{"create twice", nil, ops{on("x", opCreate(9)), on("x", opCreate(9))}, 1, store.ErrExists},
		{"create after update", live, ops{on("x", opUpdate(9)), on("x", opCreate(9))}, 1, store.ErrExists},
		{"update after delete", live, ops{on("x", opDelete), on("x", opUpdate(9))}, 1, store.ErrNotFound},
		{"delete twice", live, ops{on("x", opDelete), on("x", opDelete)}, 1, store.ErrNotFound},
		{"expire after delete", live, ops{on("x", opDelete), on("x", opExpire)}, 1, store.ErrNotFound},
		{"expire of a deleted key", deleted, ops{on("x", opExpire)}, 0, store.ErrNotFound},
		{"expire of a key made and deleted in one block", brief, ops{on("x", opExpire)}, 0, store.ErrNotFound},
		{"expire after another block of that kind", append(slices.Clone(brief), brief[2]), ops{on("x", opExpire)}, 0, store.ErrNotFound},
		{"expire in the block that made and deleted it", gone, ops{on("x", opCreate(9)), on("x", opDelete), on("x", opExpire)}, 2, store.ErrNotFound},
		{"expire of an unknown key", nil, ops{on("x", opExpire)}, 0, store.ErrNotFound},
		{"update after create with BTL 0", nil, ops{on("x", opCreate(0)), on("x", opUpdate(9))}, 1, store.ErrNotFound},
		{"the last of many", live, ops{fine("1"), fine("2"), on("x", opUpdate(9)), fine("3"), on("x", opCreate(9))}, 4, store.ErrExists},
		{"the first of many", live, ops{on("x", opCreate(9)), fine("1"), fine("2")}, 0, store.ErrExists},
	}
	for name, op := range map[string]store.Op{
		"update": opUpdate(9), "extend": opExtend(9), "change owner": opOwner(bob), "delete": opDelete,
	} {
		list = append(list,
			refusal{name + " of an unknown key", nil, ops{fine("1"), on("x", op)}, 1, store.ErrNotFound},
			refusal{name + " of a key that ran out", gone, ops{on("x", op)}, 0, store.ErrNotFound},
			refusal{name + " of a deleted key", deleted, ops{on("x", op)}, 0, store.ErrNotFound},
		)
	}
	return list
}

func malformed() []refusal {
	list := []refusal{}
	for name, op := range map[string]store.Op{
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
		"transaction index too big": {Kind: store.Create, BTL: 9, TxIndex: math.MaxUint16 + 1},
		"operation index too big":   {Kind: store.Create, BTL: 9, OpIndex: math.MaxUint16 + 1},
	} {
		list = append(list, refusal{name, nil, ops{fine("1"), on("x", op)}, 1, store.ErrInvalid})
	}
	return list
}

// runRefusals checks that a refused block leaves no trace.
func runRefusals(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	l.apply(t, on("bystander", opCreate(100_000, text("t", "x"), content("c", "payload"))))
	for _, group := range [][]refusal{unfit(), malformed()} {
		for i, r := range group {
			t.Run(r.name, func(t *testing.T) { testRefusal(t, l, r, fmt.Sprintf("%s %d", r.want, i)) })
		}
	}
	t.Run("block order", func(t *testing.T) { testBlockOrder(t, l) })
	t.Run("NUL in text", func(t *testing.T) { testNUL(t, l) })
	t.Run("after opening again", func(t *testing.T) {
		want := l.state(t, l.head-2, l.head-1)
		l.reopen(t)
		requireSame(t, want, l.state(t, l.head-2, l.head-1))
	})
}

// testRefusal gives the key x of a case a name of its own.
func testRefusal(t *testing.T, l *ledger, r refusal, name string) {
	rename := func(list []store.Op) []store.Op {
		renamed := append(ops{}, list...)
		for i := range renamed {
			if renamed[i].Key == keyOf("x") {
				renamed[i].Key = keyOf(name)
			}
		}
		return renamed
	}
	for _, list := range r.before {
		l.apply(t, rename(list)...)
	}
	b := newBlock(l.head+1, rename(r.ops)...)
	if bad := r.ops[r.at]; bad.TxIndex > 0 || bad.OpIndex > 0 {
		b.Ops[r.at].TxIndex, b.Ops[r.at].OpIndex = bad.TxIndex, bad.OpIndex
	}
	requireRefusal(t, l.refuse(t, b), r.want, b, r.at)
}

// refuse applies a block that must fail and checks that nothing of it is kept.
func (l *ledger) refuse(t testing.TB, b store.Block) error {
	t.Helper()
	before := l.state(t, l.head-1)
	_, err := l.ents.Apply(t.Context(), b)
	require.Error(t, err)
	requireSame(t, before, l.state(t, l.head-1))
	return err
}

func testBlockOrder(t *testing.T, l *ledger) {
	for _, below := range []uint64{0, 1, 2, l.head} {
		b := newBlock(l.head-below, fine("1"))
		err := l.refuse(t, b)
		require.ErrorIs(t, err, store.ErrBlockOrder)
		require.Contains(t, err.Error(), fmt.Sprintf("block %d:", b.Number))
		require.Contains(t, err.Error(), fmt.Sprintf("which is %d", l.head))
	}
	require.ErrorIs(t, l.refuse(t, store.Block{Number: l.head}), store.ErrBlockOrder)
	for _, high := range []uint64{entity.MaxBlockNumber + 1, math.MaxInt64, math.MaxUint64} {
		err := l.refuse(t, newBlock(high, fine("1")))
		require.ErrorIs(t, err, store.ErrInvalid)
		require.Contains(t, err.Error(), fmt.Sprintf("block %d:", high))
	}
}

// testNUL: an engine stores U+0000 as it is or refuses the block before
// anything is written.
func testNUL(t *testing.T, l *ledger) {
	fields := map[string]field{
		"string value":  text("t", "a\x00b"),
		"string name":   text("t\x00t", "x"),
		"numeric name":  number("n\x00n", 1),
		"content type":  content("text\x00plain", ""),
		"only NUL":      text("t", "\x00"),
		"NUL at an end": text("t", "end\x00"),
	}
	for name, set := range fields {
		t.Run(name, func(t *testing.T) {
			b := newBlock(l.head+1, fine("nul "+name), on("nul "+name, opCreate(9, set)))
			if !l.db.Engine().Capabilities().TextNUL {
				requireRefusal(t, l.refuse(t, b), store.ErrUnsupported, b, 1)
				return
			}
			l.applyBlocks(t, b)
			want, got := b.Ops[1], l.get(t, b.Ops[1].Key)
			require.Equal(t, want.ContentType, got.ContentType)
			requireSame(t, want.StringAttributes, got.StringAttributes)
			requireSame(t, want.NumericAttributes, got.NumericAttributes)
		})
	}
}
