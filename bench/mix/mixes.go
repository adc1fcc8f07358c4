package mix

import (
	"fmt"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// The mixes over the base profile. W works on any data, because it uses the
// attributes that it finds.
const (
	A = "A" // of a data centre
	B = "B" // of governance
	C = "C" // of streams
	W = "W" // everyday
)

// ByKey is a mix of one kind of read: whole entities by key.
const ByKey = "key"

// Names are the names of mixes for New, besides ByKey.
var Names = []string{A, B, C, W}

// New returns a mix whose answers an oracle knows. W asks for values that the
// oracle has seen before this call.
func New(name string, o *Oracle) (Reads, error) {
	kinds, ok := mixes[name]
	if !ok {
		return nil, fmt.Errorf("unknown mix %q: want A, B, C, W or key", name)
	}
	if name == W {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sample.fix()
	}
	return &base{Oracle: o, name: name, kinds: kinds}, nil
}

// kind is one kind of operation of a mix.
type kind struct {
	name    string
	percent int
	draw    func(d *draws) Op
}

// Kinds of operations that several mixes share.
const (
	kindEntity  = "entity"
	kindPast    = "entity-past"
	kindPayload = "payload"
)

// mixes has the queries of the seed documents with their weights and limits.
var mixes = map[string][]kind{
	A: {
		{kindEntity, 30, (*draws).entity},
		{"status-pending", 25, func(d *draws) Op { return d.withValue(byStatus, statusPending, 100) }},
		{"gpu-above", 20, func(d *draws) Op { return d.gpu(50) }},
		{"creator", 10, func(d *draws) Op { return d.withAnyOf(byCreator, "", 100) }},
		{kindPast, 10, (*draws).past},
		{kindPayload, 5, (*draws).payload},
	},
	B: {
		{kindEntity, 20, (*draws).entity},
		{"votes-of-proposal", 25, func(d *draws) Op { return d.withAnyOf(byProposal, "", 500) }},
		{"votes-of-creator", 15, func(d *draws) Op { return d.withAnyOf(byCreator, typeVote, 100) }},
		{"status-active", 15, func(d *draws) Op { return d.withValue(byStatus, statusActive, 100) }},
		{"type-proposal", 10, func(d *draws) Op { return d.withValue(byType, typeProposal, 100) }},
		{kindPast, 10, (*draws).past},
		{"whole-entity", 5, (*draws).wholeEntity},
	},
	C: {
		{"latest-of-type", 30, func(d *draws) Op { return d.withAnyOf(byType, "", 50) }},
		{kindEntity, 20, (*draws).entity},
		{"next-chunk", 15, func(d *draws) Op { return d.withAnyOf(byChunk, "", 0) }},
		{"block-window", 15, func(d *draws) Op { return d.window(100) }},
		{kindPayload, 15, (*draws).payload},
		{"creator-latest", 5, func(d *draws) Op { return d.withAnyOf(byCreator, "", 20) }},
	},
	W: {
		{kindEntity, 40, (*draws).entity},
		{"attribute-value", 20, func(d *draws) Op { return d.value(100) }},
		{"creator", 15, func(d *draws) Op { return d.creator(100) }},
		{"block-range", 15, func(d *draws) Op { return d.modifiedAround(100) }},
		{kindPayload, 10, (*draws).payload},
	},
	ByKey: {{kindEntity, 100, (*draws).wholeEntity}},
}

// base is a mix over the base profile.
type base struct {
	*Oracle
	name  string
	kinds []kind
}

// Name implements Reads.
func (m *base) Name() string { return m.name }

// Stream implements Reads.
func (m *base) Stream(o StreamOptions) Stream {
	d := &draws{o: m.Oracle, opts: o, head: m.Head()}
	return func(r *rand.Rand) Op {
		d.r = r
		if o.Head != nil {
			d.head = o.Head()
		}
		m.mu.RLock()
		defer m.mu.RUnlock()
		return d.draw(m.kinds)
	}
}

// draws draws the operations of one stream, with the oracle locked.
type draws struct {
	o    *Oracle
	opts StreamOptions
	r    *rand.Rand
	head uint64
}

func (d *draws) draw(kinds []kind) Op {
	at := d.r.IntN(100)
	for _, k := range kinds {
		if at -= k.percent; at >= 0 {
			continue
		}
		if k.name == kindPast && d.opts.HeadOnly {
			k.name, k.draw = kindEntity, (*draws).entity
		}
		op := k.draw(d)
		op.Kind = k.name
		return op
	}
	panic("mix: shares of less than 100 percent")
}

// unknownKey is a key that no entity has.
var unknownKey = entity.Key{1}

// drawFitting draws numbers below n until one fits. It gives up after a bounded
// number of tries and returns none. The bound is generous, because only one in
// some hundred chunks of streams may still be visible.
func (d *draws) drawFitting(n int, fits func(i int) bool) int {
	for range min(64*n, 20_000) {
		if i := d.r.IntN(n); fits(i) {
			return i
		}
	}
	return none
}

// Reads by key.

// live returns a random life that is visible at a block, or none.
func (d *draws) live(block uint64) int32 {
	return int32(d.drawFitting(d.o.born(block), func(i int) bool { return d.o.at(int32(i), block) != nil }))
}

// pick returns the key of an entity that is visible at a block.
func (d *draws) pick(block uint64) entity.Key {
	l := d.live(block)
	if l == none {
		return unknownKey
	}
	return d.o.lives[l].key
}

func (d *draws) entity() Op { return d.one(d.head, store.Metadata|store.Attributes) }

func (d *draws) payload() Op { return d.one(d.head, store.Content) }

func (d *draws) wholeEntity() Op {
	op := d.one(d.head, store.Metadata|store.Attributes|store.Content)
	op.Get = true
	return op
}

// past asks for an entity as it was at a random block, from the first to the
// head, among the entities visible there.
func (d *draws) past() Op {
	first := d.o.first()
	block := first + d.r.Uint64N(d.head-min(first, d.head)+1)
	op := d.one(block, store.Metadata|store.Attributes)
	op.Block = block
	return op
}

// one asks for parts of one entity that is visible at a block. It is a query,
// because Snapshot.Get reads all parts.
func (d *draws) one(block uint64, parts store.Parts) Op {
	key := d.pick(block)
	return Op{Block: store.Head, Key: key, Parts: parts, Expr: equal(entity.AttrKey, key.String()), ask: question{topic: byKey}}
}

// Scans.

func (d *draws) scan(q question, limit int) Op {
	return Op{Block: store.Head, Expr: d.o.expr(q), Limit: limit, Parts: store.Metadata, ask: q}
}

// withValue asks for entities with a value of an attribute.
func (d *draws) withValue(t topic, value string, limit int) Op {
	return d.scan(question{topic: t, number: d.o.texts[t].numbers[value]}, limit)
}

// withAnyOf asks for entities with any of the values of an attribute, and of a
// type if one is given. At least one entity matches.
func (d *draws) withAnyOf(t topic, typ string, limit int) Op {
	with := func(i int) question {
		return question{topic: t, number: uint32(i + 1), typ: d.o.texts[byType].numbers[typ]}
	}
	i := d.drawFitting(len(d.o.texts[t].values)-1, func(i int) bool { return len(d.o.answer(with(i), d.head, 1)) > 0 })
	return d.scan(with(i), limit)
}

func (d *draws) gpu(limit int) Op {
	return d.scan(question{topic: byGPU, number: d.r.Uint32N(5)}, limit)
}

// window asks for entities last modified in a range of blocks. As in Arkiv's
// own mix, the lower bound lies in the first nine tenths of the history and the
// upper bound in the last nine tenths.
func (d *draws) window(limit int) Op {
	span := max(d.head, 10)
	q := question{topic: byWindow}
	for q.from >= q.to {
		q.from, q.to = d.r.Uint64N(span*9/10+1), span/10+d.r.Uint64N(span-span/10+1)
	}
	return d.scan(q, limit)
}
