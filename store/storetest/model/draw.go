package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// Texts, numbers and patterns that implementations often get wrong.
var (
	oddTexts = []string{
		"a", "", "b", "ab", "A", "ä", "日本", "😀", "\uffee", "2024-01-01 10:00:00", "1", "1.0", `it's "so"`, "100%", "a_b", "a*b", "[a]", "a\nb", `back\slash`,
		"0x0100000000000000000000000000000000000000",
	}
	oddNumbers  = []uint64{0, 1, 2, 7, 1<<53 + 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	oddPatterns = []string{
		"*", "a*", "*b", "?", "??", "[a-b]*", "[^a]*", "", "a", "*a*", "0x*", "*%*", "*_*", "a[*]b", "*'*", "*\"*", "日*", "2024-??-*", "*[", "[[]a]", "?\n?", "*\\*", "*😀", "[à-ÿ]",
	}
)

// Choose draws an element.
func Choose[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// often draws an element. The first ones are drawn more often.
func often[T any](r *rand.Rand, list []T) T { return list[min(r.IntN(len(list)), r.IntN(len(list)))] }

// manyOp draws an operation in a store of many entities. Most operations create
// an entity; the others change an existing one.
func manyOp(r *rand.Rand, owners []entity.Address, keys []entity.Key, entities int) entity.Op {
	op := entity.Op{Kind: entity.Create, BTL: 1000 + r.Uint64N(50), Owner: often(r, owners)}
	for i := range 4 {
		binary.BigEndian.PutUint64(op.Key[8*i:], r.Uint64())
	}
	if r.IntN(10) == 0 {
		op.BTL = 1 + r.Uint64N(40) // may run out within the history
	}
	if len(keys) > 0 && r.IntN(5) < 2 {
		op.Key = Choose(r, keys)
		op.Kind = Choose(r, []entity.Kind{entity.Update, entity.Update, entity.Update, entity.ExtendBTL, entity.ChangeOwner, entity.Delete})
	}
	if op.Kind == entity.Create || op.Kind == entity.Update {
		op.ContentType, op.Content = "text/plain", binary.AppendUvarint(nil, r.Uint64())
		op.StringAttributes, op.NumericAttributes = texts(r, entities), numbers(r, entities)
	}
	return op
}

func texts(r *rand.Rand, entities int) map[string]string {
	list := map[string]string{"type": often(r, []string{"node", "node", "vm", "disk", "image", "gpu"}), "same": "yes"}
	if r.IntN(10) > 0 {
		list["zone"] = fmt.Sprintf("z%02d", r.IntN(40))
	}
	list["name"] = fmt.Sprintf("host-%05d.eu", r.IntN(entities))
	if r.IntN(5) == 0 { // too long for an index entry
		list["name"] = fmt.Sprintf("a-host-with-a-rather-long-name-%05d.eu", r.IntN(entities))
	}
	if r.IntN(3) == 0 {
		list["label"] = Choose(r, oddTexts)
	}
	if r.IntN(200) == 0 {
		list["rare"] = Choose(r, []string{"yes", "no", ""})
	}
	return list
}

func numbers(r *rand.Rand, entities int) map[string]uint64 {
	list := map[string]uint64{"cpu": 1 << often(r, []int{2, 3, 1, 4, 5, 0, 6}), "n": r.Uint64N(uint64(entities))}
	if r.IntN(3) > 0 {
		list["price"] = r.Uint64N(100_000)
	}
	if r.IntN(4) == 0 {
		list["big"] = Choose(r, oddNumbers)
	}
	if r.IntN(10) == 0 {
		list["zone"] = r.Uint64N(40)
	}
	return list
}

// manyColumns are the attributes that queries about many entities compare and
// sort by. User attributes are listed twice, so that they are drawn more often
// than the nine synthetic ones.
var manyColumns = func() (list []store.Order) {
	for range 2 {
		for _, name := range []string{"type", "same", "zone", "name", "label", "rare"} {
			list = append(list, store.Order{Name: name, Kind: entity.String})
		}
		for _, name := range []string{"cpu", "n", "price", "big", "zone"} {
			list = append(list, store.Order{Name: name, Kind: entity.Numeric})
		}
	}
	for _, name := range []string{
		entity.AttrOwner, entity.AttrCreator, entity.AttrKey, entity.AttrExpiration, entity.AttrCreatedAtBlock,
		entity.AttrLastModifiedAtBlock, entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
	} {
		kind, _ := entity.SyntheticKind(name)
		list = append(list, store.Order{Name: name, Kind: kind})
	}
	return append(list, store.Order{Name: "nothing", Kind: entity.String}, store.Order{Name: "nothing", Kind: entity.Numeric})
}()

// expressions draws expressions about visible entities.
type expressions struct {
	*rand.Rand
	seen    []*entity.Entity
	columns []store.Order // to compare
}

// someone draws an entity, or one without attributes if there are none.
func (d expressions) someone() *entity.Entity {
	if len(d.seen) == 0 {
		return &entity.Entity{}
	}
	return Choose(d.Rand, d.seen)
}

// expr draws an expression with a number of terms. Most expressions are true of
// the entity `of`, because a term with an arbitrary value rarely matches
// anything.
func (d expressions) expr(terms int, of *entity.Entity) query.Expr {
	if d.IntN(8) == 0 {
		return query.Not{Term: d.expr(terms, d.someone())}
	}
	if terms == 1 {
		return d.term(of)
	}
	both := d.IntN(3) > 0
	var list []query.Expr
	for left := terms; left > 0; {
		n := 1 + d.IntN(left)
		if len(list) == 0 {
			n = min(n, terms-1)
		}
		list, left = append(list, d.expr(n, of)), left-n
		if !both || d.IntN(12) == 0 {
			of = d.someone()
		}
	}
	if both {
		return query.And{Terms: list}
	}
	return query.Or{Terms: list}
}

// term draws a condition on one attribute.
func (d expressions) term(of *entity.Entity) query.Expr {
	c := Choose(d.Rand, d.columns)
	v := d.value(c, of)
	switch d.IntN(10) {
	case 0, 1:
		e := query.In{Name: c.Name, Values: []query.Value{v}, Negated: d.IntN(4) == 0}
		n := d.IntN(6)
		if d.IntN(12) == 0 {
			n = d.IntN(100)
		}
		for range n {
			e.Values = append(e.Values, d.value(c, d.someone()))
		}
		return e
	case 2, 3: // both bounds
		other := d.value(c, d.someone())
		if v.Text > other.Text || v.Number > other.Number {
			v, other = other, v
		}
		return query.And{Terms: []query.Expr{
			query.Compare{Name: c.Name, Op: Choose(d.Rand, []query.CompareOp{query.GreaterOrEqual, query.Greater}), Value: v},
			query.Compare{Name: c.Name, Op: Choose(d.Rand, []query.CompareOp{query.LessOrEqual, query.Less}), Value: other},
		}}
	case 4, 5:
		if c.Kind == entity.String {
			return query.Glob{Name: c.Name, Pattern: d.pattern(v.Text), Negated: d.IntN(4) == 0}
		}
	case 6:
		if d.IntN(4) == 0 {
			return query.All{}
		}
		return query.Compare{Name: c.Name, Op: query.NotEqual, Value: v}
	case 7:
		op := Choose(d.Rand, []query.CompareOp{query.Less, query.LessOrEqual, query.Greater, query.GreaterOrEqual})
		return query.Compare{Name: c.Name, Op: op, Value: v}
	}
	return query.Compare{Name: c.Name, Op: query.Equal, Value: v}
}

// value draws a value to compare an attribute with: the entity's, one close to
// it or, if it has none, another entity's.
func (d expressions) value(c store.Order, of *entity.Entity) query.Value {
	for range 4 {
		if c.Kind == entity.Numeric {
			if n, ok := of.NumericAttribute(c.Name); ok {
				if d.IntN(5) == 0 {
					n = Choose(d.Rand, []uint64{n + 1, max(n, 1) - 1, n / 2, 2 * n, Choose(d.Rand, oddNumbers), math.MaxUint64})
				}
				return query.Number(n)
			}
		} else if text, ok := of.StringAttribute(c.Name); ok {
			if d.IntN(8) == 0 {
				text = Choose(d.Rand, []string{text + "x", text + "\x01", text[:len(text)/2], Choose(d.Rand, oddTexts)})
			}
			return query.Text(string([]rune(text))) // without half characters
		}
		of = d.someone()
	}
	if c.Kind == entity.Numeric {
		return query.Number(Choose(d.Rand, oddNumbers))
	}
	return query.Text(Choose(d.Rand, oddTexts))
}

// pattern draws a pattern that matches a text, or nearly.
func (d expressions) pattern(text string) string {
	if d.IntN(12) == 0 {
		return Choose(d.Rand, oddPatterns)
	}
	list := []rune(text)
	from, to := d.IntN(len(list)+1), d.IntN(len(list)+1)
	if from > to {
		from, to = to, from
	}
	head, middle, tail := string(list[:from]), string(list[from:to]), string(list[to:])
	switch d.IntN(7) {
	case 0, 1:
		return head + "*"
	case 2:
		return "*" + tail
	case 3:
		return "*" + middle + "*"
	case 4:
		return head + "*" + tail
	case 5:
		if to > from {
			return head + "?" + string(list[from+1:])
		}
	case 6:
		if to > from {
			return head + "[^a-m0-4]" + string(list[from+1:to]) + "*"
		}
	}
	return text
}
