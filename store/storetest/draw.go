package storetest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// drawer draws blocks and questions: about few keys, names and values, so that operations
// meet and comparisons hit, or about many entities.
type drawer struct {
	*rand.Rand
	many int          // how many entities there are about; 0: few
	keys []entity.Key // of many, those that were created

	// nul is how rare U+0000 is in text: in one of so many; 0 means never.
	// Where an engine refuses it, it should be rare.
	nul int
}

// one draws an element.
func one[T any](d *drawer, list ...T) T { return model.Choose(d.Rand, list) }

// chance is true once in n times.
func (d *drawer) chance(n int) bool { return d.IntN(n) == 0 }

var (
	someKeys = func() (keys [8]entity.Key) {
		for i := range keys {
			keys[i][0], keys[i][31] = byte(0x10*i), byte(0xff-i)
		}
		keys[0] = entity.Key{}
		for i := range keys[7] {
			keys[7][i] = 0xff
		}
		return keys
	}()
	someOwners = []entity.Address{{1}, {0xab, 0xcd}, {19: 0xff}, {}}
	someNames  = []string{"type", "n", "type", "n", "größe", "a.b-c", "and", "with space", "qu`ote"}
	nulTexts   = []string{"\x00", "a\x00", "a\x00b"}
	someBTLs   = []uint64{10, 3, 1, 30, 2, 100, 1000, 0, math.MaxInt64, math.MaxUint64}

	manyOwners = func() (list []entity.Address) {
		for i := range byte(12) {
			list = append(list, entity.Address{0: i * i, 19: 0xff - i})
		}
		return list
	}()
)

// fewColumns are what questions about few names compare and sort by.
var fewColumns = func() (list []store.Order) {
	for _, name := range append(someNames, "nothing", "no\x00thing") {
		list = append(list, store.Order{Name: name, Kind: entity.String}, store.Order{Name: name, Kind: entity.Numeric})
	}
	for _, o := range model.Columns {
		if o.Name[0] == '$' {
			list = append(list, o)
		}
	}
	return list
}()

// text draws the value of an attribute, name its name.
func (d *drawer) text() string {
	switch {
	case d.nul > 0 && d.chance(d.nul):
		return one(d, nulTexts...)
	case d.chance(2):
		return one(d, model.OddTexts[:4]...)
	}
	return one(d, model.OddTexts...)
}

func (d *drawer) name() string {
	if d.nul > 0 && d.chance(4*d.nul) {
		return "n\x00l"
	}
	return one(d, someNames...)
}

// block draws a block to come after the model's head; most are valid.
func (d *drawer) block(m *model.Model) entity.Block {
	b := entity.Block{Number: d.number(m)}
	if b.Number%3 > 0 {
		b.Hash, b.Time = entity.Hash{0: 0xb1, 31: byte(b.Number)}, b.Number*2
	}
	d.fill(m, &b, d.IntN(10))
	return b
}

// fill draws the operations of a block.
func (d *drawer) fill(m *model.Model, b *entity.Block, operations int) {
	draft := m.Draft(b.Number)
	for range operations {
		op := d.op(len(b.Ops))
		if draft.Add(&op) != nil && !(d.many == 0 && d.chance(30)) {
			continue // an invalid one is rare
		}
		b.Ops = append(b.Ops, op)
		if d.many > 0 && op.Kind == entity.Create {
			d.keys = append(d.keys, op.Key)
		}
	}
}

func (d *drawer) number(m *model.Model) uint64 {
	head := m.Head()
	switch n := d.IntN(24); {
	case head.Empty && n < 3:
		return 0
	case d.many > 0:
	case n == 20:
		return head.Number // not above the head
	case n == 21:
		return head.Number / 2
	case n == 22:
		return head.Number + 25
	case n == 23 && head.Number < 1<<31 && d.chance(4):
		return 1<<31 + head.Number // from here on sequences pass 2⁶³
	}
	return head.Number + 1 + d.Uint64N(3)
}

// op draws the operation at position i of a block.
func (d *drawer) op(i int) entity.Op {
	if d.many > 0 {
		op := model.Op(d.Rand, manyOwners, d.keys, d.many)
		op.TxIndex, op.OpIndex = uint32(i/100), uint32(i%100/2) // some indexes are equal
		return op
	}
	op := entity.Op{
		Kind: one(d, entity.Create, entity.Update, entity.ExtendBTL, entity.ChangeOwner, entity.Delete, entity.Expire,
			entity.Create, entity.Update, entity.Create, entity.Update, entity.Create, entity.Create),
		TxIndex: uint32(i / 2), OpIndex: uint32(i % 2),
		Key: one(d, someKeys[:]...), BTL: one(d, someBTLs...), Owner: one(d, someOwners...),
	}
	switch d.IntN(100) {
	case 97, 98:
		op.TxIndex, op.OpIndex = math.MaxUint16, 0
	case 99:
		op.TxIndex = math.MaxUint16 + 1 // malformed
	}
	if op.Kind != entity.Create && op.Kind != entity.Update {
		return op
	}
	op.ContentType = one(d, "text/plain", "", "application/ünïcode")
	op.Content = one(d, []byte("payload"), nil, []byte{0, 1, 0xff}, make([]byte, 5000))
	op.StringAttributes, op.NumericAttributes = map[string]string{}, map[string]uint64{}
	for range d.IntN(4) {
		op.StringAttributes[d.name()] = d.text()
	}
	for range d.IntN(4) {
		op.NumericAttributes[d.name()] = one(d, model.OddNumbers...)
	}
	if d.chance(120) {
		op.StringAttributes[entity.AttrKey] = "x" // a name that is ours
	}
	return op
}

// at draws a block to read at: most often the head, or one that is kept.
func (d *drawer) at(m *model.Model) uint64 {
	head := m.Head().Number
	switch d.IntN(8) {
	case 0, 1:
		return store.Head
	case 2:
		return head
	case 3:
		return one(d, head+1, head+1, 1<<40, 1<<63-1, 1<<63, store.Head-1) // above the head
	case 4:
		return m.Horizon()
	}
	low := max(m.Horizon(), head-min(head, 40))
	return low + d.Uint64N(head-min(head, low)+1)
}

// question is what is asked and how the answer is read.
type question struct {
	expr  query.Expr
	order []store.Order
	limit int            // 0: none
	pages int            // how many are read, of as many as the limit says
	after *entity.Entity // from where on; nil for the beginning
}

// question draws what to ask of a state.
func (d *drawer) question(of *model.Snapshot) question {
	seen, columns, limits := of.Visible(), model.Columns, []int{0, 1, 2, 3, 5, 10, 30, 100}
	if d.many == 0 {
		columns, limits = fewColumns, []int{0, 1, 2, 3, 100}
	}
	q := question{limit: one(d, limits...), pages: model.Often(d.Rand, []int{1, 1, 2, 3})}
	draw := model.Drawer{Rand: d.Rand, Seen: seen, Columns: columns}
	q.expr = draw.Expr(1+model.Often(d.Rand, []int{0, 1, 2, 3, 4, 6, 8, 11}), draw.Someone())
	for range one(d, 0, 0, 1, 1, 2, 3, 4) {
		o := one(d, columns...)
		o.Desc = d.chance(2)
		if !slices.ContainsFunc(q.order, func(other store.Order) bool { return other.Name == o.Name && other.Kind == o.Kind }) {
			q.order = append(q.order, o)
		}
	}
	if len(seen) > 0 && d.chance(3) {
		q.after = draw.Someone()
	}
	return q
}
