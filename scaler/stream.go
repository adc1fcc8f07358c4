package scaler

import (
	"cmp"
	"iter"
	"slices"

	"github.com/varvedb/varve/store/entity"
)

// Stream generates the blocks of a profile, each once and without gaps, empty
// ones included. It can be iterated repeatedly and concurrently. Blocks and
// everything in them belong to the caller. Only an invalid profile or option
// causes an error, which is then the only item.
//
// An entity's references are to entities created before it, except Next. Every
// operation is valid at its place under any entity.Rules: an entity that
// expires is given an Expire in the block of its expiration.
func Stream(p Profile, o Options) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		m, err := newModel(&p, o)
		if err != nil {
			yield(entity.Block{}, err)
			return
		}
		g := &generator{model: m, queue: make([][]waiting, m.horizon/m.CycleBlocks+2)}
		g.run(max(o.From, firstBlock), yield)
	}
}

// waiting is a later operation on an existing entity.
type waiting struct {
	block uint64
	op    entity.Kind
	slot  slot
	step  int // index of the step in the entity's life
}

// generator iterates over the cycles of a model and queues the operations that
// the entities of a cycle cause in later cycles.
type generator struct {
	*model
	cycle cycle

	// queue[c % len(queue)] has the operations of cycle c.
	queue [][]waiting
}

// run yields the blocks from a number on.
func (g *generator) run(from uint64, yield func(entity.Block, error) bool) {
	if from > g.last {
		return
	}
	target := (from - firstBlock) / g.CycleBlocks
	reach := uint64(len(g.queue)) - 1
	for c := target - min(target, reach); c < g.cycles(); c++ {
		due := g.enter(c)
		if c >= target && !g.blocks(from, due, yield) {
			return
		}
	}
}

// enter computes a cycle and returns the operations on existing entities in it,
// in order.
func (g *generator) enter(number uint64) []waiting {
	g.computeCycle(&g.cycle, number, g.size(number), g.span(number))
	for i := range g.cycle.slots {
		g.schedule(&g.cycle.slots[i])
	}
	place := &g.queue[number%uint64(len(g.queue))]
	due := *place
	*place = due[:0] // not before the queue has gone round once
	slices.SortFunc(due, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.slot.kind, b.slot.kind),
			cmp.Compare(a.slot.number, b.slot.number))
	})
	return due
}

// schedule queues the later operations on a new entity.
func (g *generator) schedule(s *slot) {
	l := g.live(s, entitySeed(g.seed, s.kind, s.number))
	for i := 1; i < l.n; i++ {
		at := l.steps[i].block
		if at > g.last {
			return
		}
		place := &g.queue[(at-firstBlock)/g.CycleBlocks%uint64(len(g.queue))]
		*place = append(*place, waiting{block: at, op: l.steps[i].op, slot: *s, step: i})
	}
}

// blocks yields the blocks of the cycle from number from on.
func (g *generator) blocks(from uint64, due []waiting, yield func(entity.Block, error) bool) bool {
	batches := g.cycle.batches
	for number := g.cycle.start; number < g.cycle.start+g.span(g.cycle.number); number++ {
		n := 0
		for n < len(due) && due[n].block == number {
			n++
		}
		now := due[:n]
		due = due[n:]
		var created []slot
		if len(batches) > 0 && batches[0].block == number {
			created = g.cycle.slots[batches[0].begin:batches[0].end]
			batches = batches[1:]
		}
		if number >= from && !yield(g.block(number, now, created), nil) {
			return false
		}
	}
	return true
}

// block makes a block: first a transaction with the Expires, as a node does;
// then one transaction for each other operation on an existing entity, and one
// for each run of new ones.
func (g *generator) block(number uint64, due []waiting, created []slot) entity.Block {
	b := entity.Block{Number: number}
	if len(due)+len(created) == 0 {
		return b
	}
	b.Ops = make([]entity.Op, 0, len(due)+len(created))
	var tx uint32
	for i := range due {
		if w := &due[i]; w.op == entity.Expire {
			b.Ops = append(b.Ops, entity.Op{Kind: w.op, OpIndex: uint32(len(b.Ops)), Key: entityKey(entitySeed(g.seed, w.slot.kind, w.slot.number))})
			tx = 1
		}
	}
	for i := range due {
		if w := &due[i]; w.op != entity.Expire {
			b.Ops = append(b.Ops, g.later(w, tx))
			tx++
		}
	}
	return g.create(b, tx, created)
}

func (g *generator) create(b entity.Block, tx uint32, created []slot) entity.Block {
	var index uint32
	for i := range created {
		s := &created[i]
		if i > 0 {
			before := &created[i-1]
			index++
			if s.kind != before.kind || s.first != before.first {
				tx, index = tx+1, 0
			}
		}
		seed := entitySeed(g.seed, s.kind, s.number)
		birth := g.live(s, seed).steps[0]
		op := entity.Op{
			Kind: entity.Create, TxIndex: tx, OpIndex: index, Key: entityKey(seed),
			BTL: birth.btl, Owner: g.owner(s, seed, &birth),
		}
		g.write(&op, s, seed, &birth)
		b.Ops = append(b.Ops, op)
	}
	return b
}

// later returns a queued operation as a separate transaction.
func (g *generator) later(w *waiting, tx uint32) entity.Op {
	seed := entitySeed(g.seed, w.slot.kind, w.slot.number)
	op := entity.Op{Kind: w.op, TxIndex: tx, Key: entityKey(seed)}
	l := g.live(&w.slot, seed)
	st := &l.steps[w.step]
	switch op.Kind {
	case entity.ExtendBTL:
		op.BTL = st.btl
	case entity.ChangeOwner:
		op.Owner = g.owner(&w.slot, seed, st)
	case entity.Update:
		op.BTL, op.Owner = st.btl, g.owner(&w.slot, seed, st)
		g.write(&op, &w.slot, seed, st)
	}
	return op
}

// owner returns the owner of an entity after a step.
func (g *generator) owner(s *slot, seed uint64, st *step) entity.Address {
	k := &g.kinds[s.kind]
	if st.owner > 0 {
		return g.account(k, seed+st.owner, forNewOwner)
	}
	return g.account(k, entitySeed(g.seed, s.kind, s.first), forOwner)
}
