package mix

import (
	"fmt"
	"math/rand/v2"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The mixes over the base profile.
const (
	A = "A" // of a data centre
	B = "B" // of governance
	C = "C" // of streams
)

// Names are the mixes that New knows.
var Names = []string{A, B, C}

// New returns a mix whose answers an oracle knows.
func New(name string, o *Oracle) (Reads, error) {
	kinds, ok := mixes[name]
	if !ok {
		return nil, fmt.Errorf("unknown mix %q: want A, B or C", name)
	}
	return &base{Oracle: o, name: name, kinds: kinds}, nil
}

// kind is one kind of operation of a mix.
type kind struct {
	name    string
	percent int
	draw    func(d *draws) Op
}

// The kinds that several mixes have.
const (
	kindEntity  = "entity"
	kindPast    = "entity-past"
	kindPayload = "payload"
)

// mixes has the questions of the seed with their weights and limits.
var mixes = map[string][]kind{
	A: {
		{kindEntity, 30, (*draws).entity},
		{"status-pending", 25, func(d *draws) Op { return d.with(byStatus, statusPending, 100) }},
		{"gpu-above", 20, func(d *draws) Op { return d.gpu(50) }},
		{"creator", 10, func(d *draws) Op { return d.creator(0, 100) }},
		{kindPast, 10, (*draws).past},
		{kindPayload, 5, (*draws).payload},
	},
	B: {
		{kindEntity, 20, (*draws).entity},
		{"votes-of-proposal", 25, func(d *draws) Op { return d.some(byProposal, 500) }},
		{"votes-of-creator", 15, func(d *draws) Op { return d.votes(100) }},
		{"status-active", 15, func(d *draws) Op { return d.with(byStatus, statusActive, 100) }},
		{"type-proposal", 10, func(d *draws) Op { return d.with(byType, typeProposal, 100) }},
		{kindPast, 10, (*draws).past},
		{"whole-entity", 5, (*draws).whole},
	},
	C: {
		{"latest-of-type", 30, func(d *draws) Op { return d.some(byType, 50) }},
		{kindEntity, 20, (*draws).entity},
		{"next-chunk", 15, (*draws).chunk},
		{"block-window", 15, func(d *draws) Op { return d.window(100) }},
		{kindPayload, 15, (*draws).payload},
		{"creator-latest", 5, func(d *draws) Op { return d.creator(0, 20) }},
	},
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

// Reads by key.

func (d *draws) entity() Op {
	return d.one(d.pick(d.head), store.Metadata|store.Attributes)
}

func (d *draws) payload() Op { return d.one(d.pick(d.head), store.Content) }

func (d *draws) whole() Op {
	return Op{Block: store.Head, Get: true, Key: d.pick(d.head), ask: question{topic: byKey}}
}

// past asks for an entity as it was at a block, any from the first to the head,
// among those that were visible there.
func (d *draws) past() Op {
	first := uint64(0)
	if len(d.o.lives) > 0 {
		first = d.o.lives[0].sequence >> 32
	}
	block := first + d.r.Uint64N(d.head-min(first, d.head)+1)
	op := d.one(d.pick(block), store.Metadata|store.Attributes)
	op.Block = block
	return op
}

// one asks for parts of the entity of a key. Snapshot.Get reads all of them, so
// this is a query.
func (d *draws) one(key entity.Key, parts store.Parts) Op {
	return Op{Block: store.Head, Key: key, Parts: parts, Expr: equal(entity.AttrKey, key.String()), ask: question{topic: byKey}}
}

// Scans.

// with asks for what has a value of an attribute.
func (d *draws) with(t topic, value string, limit int) Op {
	return scan(equal(asked[t], value), limit, question{topic: t, number: d.o.texts[t].numbers[value]})
}

// some asks for what has one of the values of an attribute.
func (d *draws) some(t topic, limit int) Op {
	n := d.present(len(d.o.texts[t].values), func(n uint32) question { return question{topic: t, number: n} })
	return d.with(t, d.o.texts[t].values[n], limit)
}

func (d *draws) gpu(limit int) Op {
	n := d.r.Uint64N(5)
	expr := query.Compare{Name: attrGPU, Op: query.Greater, Value: query.Number(n)}
	return scan(expr, limit, question{topic: byGPU, number: uint32(n)})
}

func (d *draws) creator(typ uint32, limit int) Op {
	of := func(n uint32) question { return question{topic: byCreator, number: n, typ: typ} }
	n := d.present(len(d.o.creators.values), of)
	return scan(equal(entity.AttrCreator, d.o.creators.values[n].String()), limit, of(n))
}

// votes asks for the votes of one who has voted.
func (d *draws) votes(limit int) Op {
	op := d.creator(d.o.texts[byType].numbers[typeVote], limit)
	op.Expr = query.And{Terms: []query.Expr{op.Expr, equal(asked[byType], typeVote)}}
	return op
}

// chunk asks for what comes before a chunk: that which names it as the next.
func (d *draws) chunk() Op {
	n := uint32(0)
	if l := d.visible(d.o.chained, d.head); l != none {
		n = d.o.versions[d.o.at(l, d.head)].values[byChunk]
	}
	return d.with(byChunk, d.o.texts[byChunk].values[n], 0)
}

// window asks for what was last modified in a window of blocks. Its bounds are as far from the ends of the history as the seed's, the lower
// below nine tenths of it and the upper above one tenth.
func (d *draws) window(limit int) Op {
	span := max(d.head, 10)
	from, to := uint64(0), uint64(0)
	for from >= to {
		from, to = d.r.Uint64N(span*9/10+1), span/10+d.r.Uint64N(span-span/10+1)
	}
	block := func(op query.CompareOp, n uint64) query.Expr {
		return query.Compare{Name: entity.AttrLastModifiedAtBlock, Op: op, Value: query.Number(n)}
	}
	expr := query.And{Terms: []query.Expr{block(query.GreaterOrEqual, from), block(query.Less, to)}}
	return scan(expr, limit, question{topic: byWindow, from: from, to: to})
}

func scan(expr query.Expr, limit int, ask question) Op {
	return Op{Block: store.Head, Expr: expr, Limit: limit, Parts: store.Metadata, ask: ask}
}

func equal(name, value string) query.Expr {
	return query.Compare{Name: name, Op: query.Equal, Value: query.Text(value)}
}
