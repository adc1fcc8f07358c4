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
	Share
	draw func(d *draws) Op
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
		{Share{kindEntity, 30}, (*draws).entity},
		{Share{"status-pending", 25}, func(d *draws) Op { return d.status(statusPending, 100) }},
		{Share{"gpu-above", 20}, func(d *draws) Op { return d.gpu(50) }},
		{Share{"creator", 10}, func(d *draws) Op { return d.creator(0, 100) }},
		{Share{kindPast, 10}, (*draws).past},
		{Share{kindPayload, 5}, (*draws).payload},
	},
	B: {
		{Share{kindEntity, 20}, (*draws).entity},
		{Share{"votes-of-proposal", 25}, func(d *draws) Op { return d.proposal(500) }},
		{Share{"votes-of-creator", 15}, func(d *draws) Op { return d.votes(100) }},
		{Share{"status-active", 15}, func(d *draws) Op { return d.status(statusActive, 100) }},
		{Share{"type-proposal", 10}, func(d *draws) Op { return d.typed(d.o.types.numbers[typeProposal], typeProposal, 100) }},
		{Share{kindPast, 10}, (*draws).past},
		{Share{"whole-entity", 5}, (*draws).whole},
	},
	C: {
		{Share{"latest-of-type", 30}, func(d *draws) Op { return d.latest(50) }},
		{Share{kindEntity, 20}, (*draws).entity},
		{Share{"next-chunk", 15}, (*draws).chunk},
		{Share{"block-window", 15}, func(d *draws) Op { return d.window(100) }},
		{Share{kindPayload, 15}, (*draws).payload},
		{Share{"creator-latest", 5}, func(d *draws) Op { return d.creator(0, 20) }},
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

// Kinds implements Reads.
func (m *base) Kinds() []Share {
	shares := make([]Share, len(m.kinds))
	for i := range m.kinds {
		shares[i] = m.kinds[i].Share
	}
	return shares
}

// Stream implements Reads.
func (m *base) Stream(o StreamOptions) *Stream {
	d := &draws{o: m.Oracle, opts: o, head: m.Head()}
	return newStream(m.name, o, func(r *rand.Rand) Op {
		d.r = r
		if o.Head != nil {
			d.head = o.Head()
		}
		m.mu.RLock()
		defer m.mu.RUnlock()
		return d.draw(m.kinds)
	})
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
	for i := range kinds {
		k := &kinds[i]
		if at -= k.Percent; at >= 0 {
			continue
		}
		if k.Kind == kindPast && d.opts.HeadOnly {
			return d.named(kindEntity, d.entity())
		}
		return d.named(k.Kind, k.draw(d))
	}
	panic("mix: shares of less than 100 percent")
}

func (d *draws) named(name string, op Op) Op {
	op.Kind = name
	return op
}

// Reads by key.

func (d *draws) entity() Op {
	return d.one(d.pick(d.head), store.Metadata|store.Attributes)
}

func (d *draws) payload() Op { return d.one(d.pick(d.head), store.Content) }

func (d *draws) whole() Op { return get(d.pick(d.head)) }

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

func get(key entity.Key) Op {
	return Op{Block: store.Head, Get: true, Key: key, ask: question{topic: byKey}}
}

// one asks for parts of the entity of a key. Snapshot.Get reads all of them, so
// this is a query.
func (d *draws) one(key entity.Key, parts store.Parts) Op {
	if d.opts.Whole {
		return get(key)
	}
	return Op{Block: store.Head, Key: key, Parts: parts, Expr: equal(entity.AttrKey, key.String()), ask: question{topic: byKey}}
}

// Scans.

func (d *draws) status(value string, limit int) Op {
	return scan(equal(attrStatus, value), limit, question{topic: byStatus, number: d.o.statuses.numbers[value]})
}

func (d *draws) gpu(limit int) Op {
	n := d.r.Uint64N(5)
	expr := query.Compare{Name: attrGPU, Op: query.Greater, Value: query.Number(n)}
	return scan(expr, limit, question{topic: byGPU, gpus: uint32(n)})
}

func (d *draws) typed(number uint32, value string, limit int) Op {
	return scan(equal(attrType, value), limit, question{topic: byType, number: number})
}

func (d *draws) latest(limit int) Op {
	n := d.present(len(d.o.types.values), func(n uint32) question { return question{topic: byType, number: n} })
	return d.typed(n, d.o.types.values[n], limit)
}

func (d *draws) proposal(limit int) Op {
	of := func(n uint32) question { return question{topic: byProposal, number: n} }
	n := d.present(len(d.o.proposals.values), of)
	return scan(equal(attrProposal, d.o.proposals.values[n]), limit, of(n))
}

func (d *draws) creator(typ uint32, limit int) Op {
	of := func(n uint32) question { return question{topic: byCreator, number: n, typ: typ} }
	n := d.present(len(d.o.creators.values), of)
	return scan(equal(entity.AttrCreator, d.o.creators.values[n].String()), limit, of(n))
}

// votes asks for the votes of one who has voted.
func (d *draws) votes(limit int) Op {
	op := d.creator(d.o.types.numbers[typeVote], limit)
	op.Expr = query.And{Terms: []query.Expr{op.Expr, equal(attrType, typeVote)}}
	return op
}

// chunk asks for what comes before a chunk: that which names it as the next.
func (d *draws) chunk() Op {
	n := uint32(0)
	if l := d.visible(d.o.chained, d.head); l != none {
		n = d.o.versions[d.o.at(l, d.head)].chunk
	}
	return scan(equal(attrNext, d.o.chunks.values[n]), 0, question{topic: byChunk, number: n})
}

// window asks for what was last modified in a window of blocks. Without a length
// its bounds are as far from the ends of the history as the seed's, the lower
// below nine tenths of it and the upper above one tenth.
func (d *draws) window(limit int) Op {
	span := max(d.head, 10)
	from, to := uint64(0), uint64(0)
	for from >= to {
		from, to = d.r.Uint64N(span*9/10+1), span/10+d.r.Uint64N(span-span/10+1)
	}
	if w := d.opts.Window; w > 0 {
		from = d.r.Uint64N(span - min(span, w) + 1)
		to = from + w
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
