package storetest

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// generator makes blocks and queries over few keys, names and values, so that
// operations meet and comparisons hit.
type generator struct {
	rt *rapid.T

	// nul is how rare U+0000 is in text: in one of so many; 0 means never.
	// Where an engine refuses it, it should be rare.
	nul int
	// nulPattern tells that glob patterns may contain it too.
	nulPattern bool
}

// pick draws one of n alternatives, from 0, the plainest, to which rapid shrinks, to n−1.
func (g *generator) pick(label string, n int) int { return rapid.IntRange(0, n-1).Draw(g.rt, label) }

// one draws an element.
func one[T any](g *generator, label string, list []T) T { return list[g.pick(label, len(list))] }

// chance is true once in n times.
func (g *generator) chance(label string, n int) bool { return g.pick(label, n) == n-1 }

var (
	someKeys = func() (keys [8]store.Key) {
		for i := range keys {
			keys[i][0], keys[i][31] = byte(0x10*i), byte(0xff-i)
		}
		return keys
	}()
	someOwners                          = []store.Address{{1}, {0xab, 0xcd}, {19: 0xff}}
	someNames                           = []string{"type", "n", "type", "n", "größe", "a.b-c", "and", "with space", "qu`ote"}
	nulTexts                            = []string{"\x00", "a\x00", "a\x00b"}
	someTexts, someNumbers, somePattern = model.OddTexts, model.OddNumbers, model.OddPatterns
	someBTLs                            = []uint64{10, 3, 1, 30, 2, 100, 1000, 0, math.MaxInt64, math.MaxUint64}
)

// text draws text to be stored or compared with.
func (g *generator) text(label string) string {
	if g.nul > 0 && g.chance("nul", g.nul) {
		return one(g, label, nulTexts)
	}
	if !g.chance("rare", 2) {
		return one(g, label, someTexts[:4])
	}
	return one(g, label, someTexts)
}

// name draws the name of a user's attribute.
func (g *generator) name() string {
	if g.nul > 0 && g.chance("nul", 4*g.nul) {
		return "n\x00l"
	}
	return one(g, "name", someNames)
}

// block draws a block to come after the model's head; most are valid.
func (g *generator) block(m *model.Model) store.Block {
	b := store.Block{Number: g.blockNumber(m)}
	if b.Number%3 > 0 {
		b.Hash, b.Time = store.Hash{0: 0xb1, 31: byte(b.Number)}, b.Number*2
	}
	draft := m.Draft(b.Number)
	for range g.pick("ops", 10) {
		op := g.op(len(b.Ops))
		if draft.Add(&op) == nil || g.chance("keep invalid", 30) {
			b.Ops = append(b.Ops, op)
		}
	}
	return b
}

func (g *generator) blockNumber(m *model.Model) uint64 {
	head := m.Head()
	switch g.pick("number", 24) {
	case 20:
		return head.Block // not above the head
	case 21:
		return head.Block / 2
	case 22:
		return head.Block + 25
	case 23:
		if head.Block < 1<<31 && g.chance("far", 4) {
			return 1<<31 + head.Block // from here on sequences pass 2⁶³
		}
	case 0:
		if head.Empty {
			return 0
		}
	}
	return head.Block + 1 + uint64(g.pick("gap", 3))
}

// op draws the operation at position i of a block.
func (g *generator) op(i int) store.Op {
	kinds := []entity.Kind{
		store.Create, store.Update, store.ExtendBTL, store.ChangeOwner, store.Delete, store.Expire,
		store.Create, store.Update, store.Create, store.Update, store.Create, store.Create,
	}
	op := store.Op{
		Kind:    one(g, "kind", kinds),
		TxIndex: uint32(i / 2), OpIndex: uint32(i % 2),
		Key: one(g, "key", someKeys[:]),
	}
	switch g.pick("index", 100) {
	case 97, 98:
		op.TxIndex, op.OpIndex = math.MaxUint16, 0
	case 99:
		op.TxIndex = math.MaxUint16 + 1 // malformed
	}
	op.BTL = one(g, "btl", someBTLs)
	op.Owner = one(g, "owner", someOwners)
	if op.Kind != store.Create && op.Kind != store.Update {
		return op
	}
	op.ContentType = one(g, "content type", []string{"text/plain", "", "application/ünïcode"})
	op.Content = one(g, "content", [][]byte{[]byte("payload"), nil, {0, 1, 0xff}, make([]byte, 5000)})
	op.StringAttributes, op.NumericAttributes = map[string]string{}, map[string]uint64{}
	for range g.pick("strings", 4) {
		op.StringAttributes[g.name()] = g.text("text")
	}
	for range g.pick("numbers", 4) {
		op.NumericAttributes[g.name()] = one(g, "number", someNumbers)
	}
	if g.chance("reserved name", 120) {
		op.StringAttributes[entity.AttrKey] = "x"
	}
	return op
}

// expr draws a query of at most a height. Head makes block numbers likely.
func (g *generator) expr(height int, head uint64) query.Expr {
	if height > 1 {
		switch g.pick("node", 8) {
		case 4, 5:
			return query.And{Terms: g.terms(height, head)}
		case 6:
			return query.Or{Terms: g.terms(height, head)}
		case 7:
			return query.Not{Term: g.expr(height-1, head)}
		}
	}
	switch g.pick("leaf", 10) {
	case 0:
		return query.All{}
	case 1, 2:
		return g.glob()
	case 3, 4:
		return g.in(head)
	}
	name, value := g.comparison(head)
	op := query.Equal + query.CompareOp(g.pick("operator", 6))
	return query.Compare{Name: name, Op: op, Value: value}
}

func (g *generator) terms(height int, head uint64) []query.Expr {
	terms := make([]query.Expr, 2+g.pick("more terms", 2))
	for i := range terms {
		terms[i] = g.expr(height-1, head)
	}
	return terms
}

func (g *generator) glob() query.Expr {
	e := query.Glob{Name: g.name(), Pattern: one(g, "pattern", somePattern), Negated: g.chance("negated", 3)}
	if g.nulPattern && g.chance("nul", g.nul) {
		e.Pattern = one(g, "pattern", []string{"*\x00*", "a\x00?", "\x00*"})
	}
	if g.chance("synthetic", 3) {
		e.Name = one(g, "name", []string{entity.AttrKey, entity.AttrOwner, entity.AttrCreator})
	}
	return e
}

func (g *generator) in(head uint64) query.Expr {
	name, value := g.comparison(head)
	e := query.In{Name: name, Values: []query.Value{value}, Negated: g.chance("negated", 3)}
	for range g.pick("more values", 3) {
		if value.Kind == entity.Numeric {
			e.Values = append(e.Values, query.Number(g.number(head)))
		} else {
			e.Values = append(e.Values, query.Text(g.literal(name)))
		}
	}
	return e
}

// comparison draws a name and a literal to compare it with.
func (g *generator) comparison(head uint64) (string, query.Value) {
	synthetic := g.chance("synthetic", 3)
	if g.chance("numeric", 2) {
		name := g.name()
		if synthetic {
			name = one(g, "name", []string{
				entity.AttrExpiration, entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock,
				entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
			})
		}
		return name, query.Number(g.number(head))
	}
	name := g.name()
	if synthetic {
		name = one(g, "name", []string{entity.AttrKey, entity.AttrOwner, entity.AttrCreator})
	}
	return name, query.Text(g.literal(name))
}

// literal draws text to compare an attribute with.
func (g *generator) literal(name string) string {
	switch {
	case name == entity.AttrKey && !g.chance("odd", 6):
		return one(g, "key", someKeys[:]).String()
	case name[0] == '$' && !g.chance("odd", 6):
		return one(g, "owner", someOwners).String()
	}
	return g.text("literal")
}

// number draws a literal that is a stored value or the number of a block.
func (g *generator) number(head uint64) uint64 {
	switch g.pick("near", 4) {
	case 1:
		return head - min(head, uint64(g.pick("back", 8)))
	case 2:
		return (head - min(head, uint64(g.pick("back", 8)))) << 32
	case 3:
		return head + uint64(g.pick("ahead", 8))
	}
	return one(g, "number", someNumbers)
}

// order draws how to sort: by up to four attributes.
func (g *generator) order() (order []store.Order) {
	for range one(g, "columns", []int{0, 1, 2, 1, 0, 3, 2, 4}) {
		o := g.column()
		if !slices.ContainsFunc(order, func(other store.Order) bool { return other.Name == o.Name && other.Kind == o.Kind }) {
			order = append(order, o)
		}
	}
	return order
}

func (g *generator) column() store.Order {
	o := store.Order{Desc: g.chance("descending", 2)}
	switch g.pick("column", 3) {
	case 0:
		o.Name, o.Kind = one(g, "name", someNames), entity.String
	case 1:
		o.Name, o.Kind = one(g, "name", someNames), entity.Numeric
	default:
		o.Name = one(g, "name", []string{
			entity.AttrKey, entity.AttrOwner, entity.AttrCreator, entity.AttrExpiration, entity.AttrCreatedAtBlock,
			entity.AttrLastModifiedAtBlock, entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
		})
	}
	return o
}

// at draws a block to read at: most often the head, or one that is kept.
func (g *generator) at(m *model.Model) uint64 {
	head := m.Head().Block
	switch g.pick("at", 8) {
	case 0, 1:
		return store.Head
	case 2:
		return head
	case 3:
		return head + 1 // above the head
	case 4:
		return m.Horizon()
	}
	low := max(m.Horizon(), head-min(head, 40))
	return low + uint64(g.pick("block", int(head-low)+1))
}
