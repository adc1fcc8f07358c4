package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// ledger is a store under test and its last block. Subtests of one suite share
// it, and each uses other keys and blocks.
type ledger struct {
	t    testing.TB // owns the database
	h    Harness
	url  string
	db   *store.DB
	ents *store.Entities
	head uint64
}

// firstBlock is above the block numbers that queries compare with zero or one.
const firstBlock = 100

// newLedger makes a store and gives it blocks.
func newLedger(t testing.TB, h Harness, blocks ...entity.Block) *ledger {
	t.Helper()
	l := &ledger{t: t, h: h, url: h.quickURL(t), head: firstBlock}
	l.open()
	l.applyBlocks(t, blocks...)
	return l
}

func (l *ledger) open() {
	l.t.Helper()
	l.db = l.h.open(l.t, l.url, nil)
	var err error
	l.ents, err = l.db.Entities(context.Background(), &store.EntityOptions{Layout: l.h.layout})
	require.NoError(l.t, err)
}

func (l *ledger) reopen(t testing.TB) {
	t.Helper()
	closeDB(t, l.db)
	l.open()
}

// apply applies operations as the next block and returns its number.
func (l *ledger) apply(t testing.TB, ops ...entity.Op) uint64 {
	t.Helper()
	l.applyBlocks(t, newBlock(l.head+1, ops...))
	return l.head
}

func (l *ledger) applyBlocks(t testing.TB, blocks ...entity.Block) {
	t.Helper()
	for _, b := range blocks {
		call1(t, l.ents.Apply, b)
		l.head = b.Number
	}
}

// at opens a snapshot that ends with the test.
func (l *ledger) at(t testing.TB, block uint64) *store.Snapshot {
	t.Helper()
	s := must(l.ents.At(t.Context(), block))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// view calls f with a snapshot. A layout without history must refuse a past
// block, and then f is not called.
func (l *ledger) view(t testing.TB, block uint64, f func(s *store.Snapshot)) {
	t.Helper()
	s, err := l.ents.At(t.Context(), block)
	if block < l.head && !l.ents.Temporal() {
		require.ErrorIs(t, err, store.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	f(s)
	require.NoError(t, s.Close())
}

// get returns an entity at the head.
func (l *ledger) get(t testing.TB, key entity.Key) *entity.Entity {
	t.Helper()
	var found *entity.Entity
	l.view(t, store.Head, func(s *store.Snapshot) {
		found = call1(t, s.Get, key)
	})
	return found
}

// find returns the results of a query at the head.
func (l *ledger) find(t testing.TB, q query.Expr, opts *store.QueryOptions) (list []*entity.Entity) {
	t.Helper()
	l.view(t, store.Head, func(s *store.Snapshot) { list = results(t, s, q, opts) })
	return list
}

// state is the content of a store at its head and at past blocks.
type state struct {
	Summary store.Summary
	Content map[uint64][]*entity.Entity
}

// state is the content of a store at its head and at past blocks.
func (l *ledger) state(t testing.TB, past ...uint64) state {
	t.Helper()
	summary := call(t, l.ents.Summary)
	s := state{Summary: summary, Content: map[uint64][]*entity.Entity{}}
	for _, block := range append(past, summary.Head) {
		if block <= summary.Head && (l.ents.Temporal() || block == summary.Head) {
			l.view(t, block, func(snap *store.Snapshot) { s.Content[block] = everything(t, snap) })
		}
	}
	return s
}

// everything returns all entities of a snapshot in the order of their keys.
func everything(t testing.TB, s *store.Snapshot) []*entity.Entity {
	t.Helper()
	list := results(t, s, nil, nil)
	slices.SortFunc(list, func(a, b *entity.Entity) int { return slices.Compare(a.Key[:], b.Key[:]) })
	return list
}

// results returns the results of a query.
func results(t testing.TB, s *store.Snapshot, q query.Expr, opts *store.QueryOptions) []*entity.Entity {
	t.Helper()
	return collect(t, s.Query(t.Context(), q, opts))
}

// requireSame compares values. A nil value and an empty one are the same.
func requireSame(t testing.TB, want, got any, message ...any) {
	t.Helper()
	require.Empty(t, gocmp.Diff(want, got, cmpopts.EquateEmpty()), message...)
}

// requireRefusal checks that an error wraps a sentinel and names the operation
// at fault.
func requireRefusal(t testing.TB, err, sentinel error, b entity.Block, i int) {
	t.Helper()
	require.ErrorIs(t, err, sentinel)
	var where *entity.OpError
	require.True(t, errors.As(err, &where), "%v", err)
	op := b.Ops[i]
	require.Equal(t, []any{b.Number, op.TxIndex, op.OpIndex, op.Kind, op.Key},
		[]any{where.Block, where.TxIndex, where.OpIndex, where.Kind, where.Key})
	require.Contains(t, err.Error(), fmt.Sprintf("block %d, tx %d, op %d", b.Number, op.TxIndex, op.OpIndex))
}

// keyOf returns the key of a name. The name is readable in failures.
func keyOf(name string) (k entity.Key) {
	if copy(k[:], name) < len(name) {
		panic("name longer than a key: " + name)
	}
	return k
}

// The accounts of the tests.
var (
	alice = entity.Address{0xa1, 19: 0x01}
	bob   = entity.Address{0xb0, 19: 0x02}
)

// newBlock returns a block with three operations in each transaction.
func newBlock(number uint64, ops ...entity.Op) entity.Block {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].TxIndex, ops[i].OpIndex = uint32(i/3), uint32(i%3)
	}
	return entity.Block{Number: number, Ops: ops}
}

// field sets a field of a Create or Update.
type field func(*entity.Op)

func text(name, value string) field {
	return func(op *entity.Op) {
		if op.StringAttributes == nil {
			op.StringAttributes = map[string]string{}
		}
		op.StringAttributes[name] = value
	}
}

func number(name string, value uint64) field {
	return func(op *entity.Op) {
		if op.NumericAttributes == nil {
			op.NumericAttributes = map[string]uint64{}
		}
		op.NumericAttributes[name] = value
	}
}

func owner(a entity.Address) field { return func(op *entity.Op) { op.Owner = a } }

func content(contentType, data string) field {
	return func(op *entity.Op) { op.ContentType, op.Content = contentType, []byte(data) }
}

func withFields(op entity.Op, fields []field) entity.Op {
	op.Owner = alice
	for _, set := range fields {
		set(&op)
	}
	return op
}

// Operations whose key is set later, by on.

func opCreate(btl uint64, fields ...field) entity.Op {
	return withFields(entity.Op{Kind: entity.Create, BTL: btl}, fields)
}

func opUpdate(btl uint64, fields ...field) entity.Op {
	return withFields(entity.Op{Kind: entity.Update, BTL: btl}, fields)
}

func opExtend(btl uint64) entity.Op { return entity.Op{Kind: entity.ExtendBTL, BTL: btl} }

func opOwner(a entity.Address) entity.Op { return entity.Op{Kind: entity.ChangeOwner, Owner: a} }

var (
	opDelete = entity.Op{Kind: entity.Delete}
	opExpire = entity.Op{Kind: entity.Expire}
)

// on returns an operation on a key.
func on(name string, op entity.Op) entity.Op {
	op.Key = keyOf(name)
	return op
}

type ops = []entity.Op

// v is an attribute.
func v(value string) field { return text("v", value) }

// history returns blocks, with gaps in the numbers, that apply every operation
// to several keys, partly within one block.
func history() []entity.Block {
	return []entity.Block{
		newBlock(110, on("a", opCreate(1000, v("a1"), number("n", 1))), on("b", opCreate(3, v("b1"))), on("c", opCreate(1000, v("c1")))),
		newBlock(111, on("a", opUpdate(1000, v("a2"), content("c", "two"))), on("d", opCreate(2, v("d1")))),
		newBlock(112),
		newBlock(115, on("b", opExpire), on("c", opOwner(bob)), on("c", opExtend(9)), on("e", opCreate(9, v("e1"))), on("e", opExtend(0))),
		newBlock(120, on("d", opCreate(1000, v("d2"))), on("a", opDelete), on("f", opCreate(2, v("f1"))), on("f", opUpdate(30, v("f2")))),
		newBlock(121, on("a", opCreate(1000, v("a3"))), on("f", opDelete), on("f", opCreate(4, v("f3"), number("n", math.MaxUint64)))),
		newBlock(130, on("a", opUpdate(1000, v("a4"))), on("a", opUpdate(1000, v("a5"))), on("d", opExpire), on("c", opExpire)),
		newBlock(131, on("c", opCreate(5, v("c2"))), on("b", opCreate(5, v("b2"))), on("b", opDelete)),
	}
}

// around returns block numbers of history, some in its gaps, and one before it.
func around() []uint64 { return []uint64{109, 110, 111, 112, 113, 115, 117, 120, 121, 125, 130, 131} }

// stream yields the elements of a list and then the error, unless it is nil.
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
