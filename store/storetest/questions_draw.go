package storetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// world is what the stores of RunQuestions hold: entities whose attributes are true of
// most, of many, of few or of one.
type world struct {
	blocks []store.Block
	states map[uint64]*model.Snapshot // at the blocks that are asked about, and at the head
	ats    []uint64                   // their keys, the head more often
	seen   map[uint64][]*store.Entity // what is visible there
	owners []store.Address
}

// worldBlocks is how many blocks a world has. They hold two operations for each entity.
const worldBlocks = 24

func newWorld(t *testing.T, entities int, seed uint64) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(entities)))
	w := &world{states: map[uint64]*model.Snapshot{}, seen: map[uint64][]*store.Entity{}}
	for i := range byte(12) {
		w.owners = append(w.owners, store.Address{0: i * i, 19: 0xff - i})
	}
	var m model.Model
	var keys []store.Key
	number := uint64(1000)
	for range worldBlocks {
		number += 1 + r.Uint64N(3)
		b := store.Block{Number: number}
		draft := m.Draft(number)
		for i := range 2*entities/worldBlocks + 1 {
			op := w.op(r, keys, entities)
			op.TxIndex, op.OpIndex = uint32(i/100), uint32(i%100)
			if entities <= 100 {
				op.OpIndex /= 2 // operations of equal indexes
			}
			if draft.Add(&op) != nil {
				continue // it has ended
			}
			b.Ops = append(b.Ops, op)
			if op.Kind == store.Create {
				keys = append(keys, op.Key)
			}
		}
		require.NoError(t, m.Apply(b))
		w.blocks = append(w.blocks, b)
	}
	w.ats = []uint64{store.Head, store.Head, store.Head, store.Head, w.blocks[2].Number, w.blocks[worldBlocks/2].Number, number - 1}
	for _, at := range w.ats {
		state, err := m.At(at)
		require.NoError(t, err)
		w.states[at] = state
		w.seen[at], err = state.Query(nil, nil, 0, nil)
		require.NoError(t, err)
		require.NotEmpty(t, w.seen[at])
	}
	return w
}

// choose draws an element.
func choose[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// often draws an element, those in front more often.
func often[T any](r *rand.Rand, list []T) T { return list[min(r.IntN(len(list)), r.IntN(len(list)))] }

// op draws an operation. Most create entities; others change one of those there are.
func (w *world) op(r *rand.Rand, keys []store.Key, entities int) store.Op {
	op := store.Op{Kind: store.Create, BTL: 1000 + r.Uint64N(50), Owner: often(r, w.owners)}
	for i := range 4 {
		binary.BigEndian.PutUint64(op.Key[8*i:], r.Uint64())
	}
	if r.IntN(10) == 0 {
		op.BTL = 1 + r.Uint64N(40) // it may run out within the history
	}
	if len(keys) > 0 && r.IntN(5) < 2 {
		op.Key = choose(r, keys)
		op.Kind = choose(r, []entity.Kind{store.Update, store.Update, store.Update, store.ExtendBTL, store.ChangeOwner, store.Delete})
	}
	if op.Kind == store.Create || op.Kind == store.Update {
		op.ContentType, op.Content = "text/plain", binary.AppendUvarint(nil, r.Uint64())
		op.StringAttributes, op.NumericAttributes = worldTexts(r, entities), worldNumbers(r, entities)
	}
	return op
}

func worldTexts(r *rand.Rand, entities int) map[string]string {
	list := map[string]string{"type": often(r, []string{"node", "node", "vm", "disk", "image", "gpu"}), "same": "yes"}
	if r.IntN(10) > 0 {
		list["zone"] = fmt.Sprintf("z%02d", r.IntN(40))
	}
	list["name"] = fmt.Sprintf("host-%05d.eu", r.IntN(entities))
	if r.IntN(5) == 0 { // too long to be found by whole
		list["name"] = fmt.Sprintf("a-host-with-a-rather-long-name-%05d.eu", r.IntN(entities))
	}
	if r.IntN(3) == 0 {
		list["label"] = choose(r, someTexts)
	}
	if r.IntN(200) == 0 {
		list["rare"] = choose(r, []string{"yes", "no", ""})
	}
	return list
}

func worldNumbers(r *rand.Rand, entities int) map[string]uint64 {
	list := map[string]uint64{"cpu": 1 << often(r, []int{2, 3, 1, 4, 5, 0, 6}), "n": r.Uint64N(uint64(entities))}
	if r.IntN(3) > 0 {
		list["price"] = r.Uint64N(100_000)
	}
	if r.IntN(4) == 0 {
		list["big"] = choose(r, someNumbers)
	}
	if r.IntN(10) == 0 {
		list["zone"] = r.Uint64N(40)
	}
	return list
}

// worldColumns are what comparisons and orders are over; user's attributes twice, since
// the others are many.
var worldColumns = func() (list []store.Order) {
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

// question draws what to ask.
func (w *world) question(r *rand.Rand) question {
	q := question{at: choose(r, w.ats), limit: choose(r, []int{1, 2, 3, 5, 10, 30, 100}), pages: often(r, []int{1, 1, 2, 3}), count: r.IntN(4) == 0}
	if r.IntN(20) == 0 {
		q.limit = 0
	}
	d := drawer{r, w.seen[q.at]}
	q.expr = d.expr(1+often(r, []int{0, 1, 2, 3, 4, 6, 8, 11}), d.someone())
	for range choose(r, []int{0, 0, 1, 1, 2, 3, 4}) {
		o := choose(r, worldColumns)
		o.Desc = r.IntN(2) == 0
		if !slices.ContainsFunc(q.order, func(other store.Order) bool { return other.Name == o.Name && other.Kind == o.Kind }) {
			q.order = append(q.order, o)
		}
	}
	if r.IntN(3) == 0 {
		q.after = d.someone()
	}
	return q
}

// drawer draws expressions over what is visible.
type drawer struct {
	*rand.Rand
	seen []*store.Entity
}

func (d drawer) someone() *store.Entity { return choose(d.Rand, d.seen) }

// expr draws an expression of some terms, most often true of an entity, since few are
// true of any that draw their values from everywhere.
func (d drawer) expr(terms int, of *store.Entity) query.Expr {
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
func (d drawer) term(of *store.Entity) query.Expr {
	c := choose(d.Rand, worldColumns)
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
	case 2, 3: // both sides
		other := d.value(c, d.someone())
		if v.Text > other.Text || v.Number > other.Number {
			v, other = other, v
		}
		return query.And{Terms: []query.Expr{
			query.Compare{Name: c.Name, Op: choose(d.Rand, []query.CompareOp{query.GreaterOrEqual, query.Greater}), Value: v},
			query.Compare{Name: c.Name, Op: choose(d.Rand, []query.CompareOp{query.LessOrEqual, query.Less}), Value: other},
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
		op := choose(d.Rand, []query.CompareOp{query.Less, query.LessOrEqual, query.Greater, query.GreaterOrEqual})
		return query.Compare{Name: c.Name, Op: op, Value: v}
	}
	return query.Compare{Name: c.Name, Op: query.Equal, Value: v}
}

// value draws what to compare an attribute with: an entity's value, one near it, or
// somebody else's, if it has none.
func (d drawer) value(c store.Order, of *store.Entity) query.Value {
	for range 4 {
		if c.Kind == entity.Numeric {
			if n, ok := of.NumericAttribute(c.Name); ok {
				if d.IntN(5) == 0 {
					n = choose(d.Rand, []uint64{n + 1, max(n, 1) - 1, n / 2, 2 * n, choose(d.Rand, someNumbers), math.MaxUint64})
				}
				return query.Number(n)
			}
		} else if text, ok := of.StringAttribute(c.Name); ok {
			if d.IntN(8) == 0 {
				text = choose(d.Rand, []string{text + "x", text + "\x01", text[:len(text)/2], choose(d.Rand, someTexts)})
			}
			return query.Text(string([]rune(text))) // half a character is none
		}
		of = d.someone()
	}
	if c.Kind == entity.Numeric {
		return query.Number(choose(d.Rand, someNumbers))
	}
	return query.Text(choose(d.Rand, someTexts))
}

// pattern draws one that matches a text, or nearly.
func (d drawer) pattern(text string) string {
	if d.IntN(12) == 0 {
		return choose(d.Rand, somePattern)
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
