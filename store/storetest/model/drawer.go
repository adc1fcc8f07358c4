package model

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Drawer draws blocks and questions. With few keys, names and values,
// operations meet on the same entities and comparisons match. With many
// entities, indexes and merges are large.
type Drawer struct {
	*rand.Rand
	Many  int          // the approximate number of entities; 0: few
	Keys  []entity.Key // with few entities, all possible keys; with many, the keys that were created
	Valid bool         // all blocks are valid

	// NUL makes one in NUL texts contain U+0000; 0 means none. It should be
	// high if the engine refuses U+0000.
	NUL int
}

// FewKeys returns n keys. The first and the last possible key are among them.
func FewKeys(n int) []entity.Key {
	keys := make([]entity.Key, n)
	for i := range keys {
		keys[i][0], keys[i][31] = byte(128/n*i), byte(0xff-i)
	}
	keys[0] = entity.Key{}
	for i := range keys[n-1] {
		keys[n-1][i] = 0xff
	}
	return keys
}

// Chance is true once in n times on average.
func (d *Drawer) Chance(n int) bool { return d.IntN(n) == 0 }

// One draws an element.
func One[T any](d *Drawer, list ...T) T { return Choose(d.Rand, list) }

var (
	fewOwners = []entity.Address{{1}, {0xab, 0xcd}, {19: 0xff}, {}}
	fewNames  = []string{"type", "n", "type", "n", "größe", "a.b-c", "and", "with space", "qu`ote"}
	nulTexts  = []string{"\x00", "a\x00", "a\x00b"}
	fewBTLs   = []uint64{10, 3, 1, 30, 2, 100, 1000, 0, math.MaxInt64, math.MaxUint64}

	manyOwners = func() (list []entity.Address) {
		for i := range byte(12) {
			list = append(list, entity.Address{0: i * i, 19: 0xff - i})
		}
		return list
	}()
)

// fewColumns are the attributes that questions about few entities compare and
// sort by.
var fewColumns = func() (list []store.Order) {
	for _, name := range append(fewNames, "nothing", "no\x00thing") {
		list = append(list, store.Order{Name: name, Kind: entity.String}, store.Order{Name: name, Kind: entity.Numeric})
	}
	for _, o := range manyColumns {
		if o.Name[0] == '$' {
			list = append(list, o)
		}
	}
	return list
}()

// text draws the value of an attribute.
func (d *Drawer) text() string {
	switch {
	case d.NUL > 0 && d.Chance(d.NUL):
		return One(d, nulTexts...)
	case d.Chance(2):
		return One(d, oddTexts[:4]...)
	}
	return One(d, oddTexts...)
}

func (d *Drawer) name() string {
	if d.NUL > 0 && d.Chance(4*d.NUL) {
		return "n\x00l"
	}
	return One(d, fewNames...)
}

// Block draws the next block after the model's head. Most are valid.
func (d *Drawer) Block(m *Model) entity.Block {
	b := entity.Block{Number: d.number(m)}
	if b.Number%3 > 0 {
		b.Hash, b.Time = entity.Hash{0: 0xb1, 30: byte(d.Uint32()), 31: byte(b.Number)}, b.Number*2
	}
	d.Fill(m, &b, d.IntN(10))
	return b
}

// Fill draws the operations of a block.
func (d *Drawer) Fill(m *Model, b *entity.Block, operations int) {
	draft := m.Draft(b.Number)
	for range operations {
		op := d.op(len(b.Ops))
		if draft.Add(&op) != nil && (d.Valid || d.Many > 0 || !d.Chance(30)) {
			continue // an invalid one is rare
		}
		b.Ops = append(b.Ops, op)
		if d.Many > 0 && op.Kind == entity.Create {
			d.Keys = append(d.Keys, op.Key)
		}
	}
}

func (d *Drawer) number(m *Model) uint64 {
	head := m.Head()
	switch n := d.IntN(24); {
	case head.Empty && n < 3:
		return 0
	case d.Many > 0:
	case n == 20 && !d.Valid:
		return head.Number // not above the head
	case n == 21 && !d.Valid:
		return head.Number / 2
	case n == 22:
		return head.Number + 25
	case n == 23 && head.Number < 1<<31 && d.Chance(4):
		return 1<<31 + head.Number // from here on sequences pass 2⁶³
	}
	return head.Number + 1 + d.Uint64N(3)
}

// op draws the operation at position i of a block.
func (d *Drawer) op(i int) entity.Op {
	if d.Many > 0 {
		op := manyOp(d.Rand, manyOwners, d.Keys, d.Many)
		op.TxIndex, op.OpIndex = uint32(i/100), uint32(i%100/2) // some indexes are equal
		if op.Kind == entity.Create {
			op.OpIndex = uint32(100 + i%100) // but not of creates, because they make the sequence
		}
		return op
	}
	op := entity.Op{
		Kind: One(d, entity.Create, entity.Update, entity.ExtendBTL, entity.ChangeOwner, entity.Delete, entity.Expire,
			entity.Create, entity.Update, entity.Create, entity.Update, entity.Create, entity.Create),
		TxIndex: uint32(i / 2), OpIndex: uint32(i % 2),
		Key: One(d, d.Keys...), BTL: One(d, fewBTLs...), Owner: One(d, fewOwners...),
	}
	n := d.IntN(100)
	switch {
	case n < 2:
		op.TxIndex, op.OpIndex = math.MaxUint16, uint32(i)
	case n == 2 && !d.Valid:
		op.TxIndex = math.MaxUint16 + 1 // malformed
	case n == 3 && !d.Valid:
		op.TxIndex, op.OpIndex = 0, 0 // may repeat the sequence of another create
	}
	if op.Kind != entity.Create && op.Kind != entity.Update {
		return op
	}
	if op.BTL == 0 && (n != 4 || d.Valid) {
		op.BTL = 1 // without a lifetime it is malformed
	}
	op.ContentType = One(d, "text/plain", "", "application/ünïcode")
	several := bytes.Repeat(binary.AppendUvarint(nil, d.Uint64()), d.IntN(1000)) // pages
	op.Content = One(d, []byte("payload"), nil, []byte{0, 1, 0xff}, several)
	op.StringAttributes, op.NumericAttributes = map[string]string{}, map[string]uint64{}
	for range d.IntN(4) {
		op.StringAttributes[d.name()] = d.text()
	}
	for range d.IntN(4) {
		op.NumericAttributes[d.name()] = One(d, oddNumbers...)
	}
	if d.Chance(120) && !d.Valid {
		op.StringAttributes[entity.AttrKey] = "x" // a reserved name
	}
	return op
}

// At draws a block to read: the head, or one that can be read, or one that
// cannot.
func (d *Drawer) At(m *Model) uint64 {
	head := m.Head().Number
	switch d.IntN(8) {
	case 0, 1:
		return store.Head
	case 2:
		return head
	case 3:
		return One(d, head+1, head+1, 1<<40, 1<<63-1, 1<<63, store.Head-1) // above the head
	case 4:
		return m.Horizon()
	}
	low := max(m.Horizon(), head-min(head, 40))
	return low + d.Uint64N(head-min(head, low)+1)
}

// Question draws a question about a snapshot.
func (d *Drawer) Question(of *Snapshot) Question {
	columns, limits := manyColumns, []int{0, 1, 2, 3, 5, 10, 30, 100}
	if d.Many == 0 {
		columns, limits = fewColumns, []int{0, 1, 2, 3, 100}
	}
	q := Question{Limit: One(d, limits...), Pages: often(d.Rand, []int{1, 1, 2, 3})}
	draw := expressions{d.Rand, of.visible, columns}
	q.Expr = draw.expr(1+often(d.Rand, []int{0, 1, 2, 3, 4, 6, 8, 11}), draw.someone())
	for range One(d, 0, 0, 1, 1, 2, 3, 4) {
		o := One(d, columns...)
		o.Desc = d.Chance(2)
		if !slices.ContainsFunc(q.Order, func(other store.Order) bool { return other.Name == o.Name && other.Kind == o.Kind }) {
			q.Order = append(q.Order, o)
		}
	}
	if len(of.visible) > 0 && d.Chance(3) {
		q.After = draw.someone()
	}
	return q
}
