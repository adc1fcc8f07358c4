package scaler

import (
	"iter"
	"math"

	"github.com/varvedb/varve/store/entity"
)

// Merged joins consecutive blocks into blocks of at least ops operations each,
// like a node that commits several blocks together. A merged block has the
// number of its last block, and its entities expire at the same blocks as
// before. So after it a store shows the same as after that last block, apart
// from the blocks of creations and changes. Transactions are renumbered in
// order, which keeps the order of creations. Blocks without operations are left
// out.
//
// A merged block ends early if an operation concerns an entity that would
// expire within it, because the operation is only valid before that. An entity
// that is created and expires within a merged block has a lifetime of 0 and is
// never visible.
//
// The blocks must be valid where ExtendBTL counts from the block, the store's
// default, and must not expire entities that were ended before. Memory holds a
// merged block and the keys of entities that expire. With ops below 2 no blocks
// are joined.
func Merged(blocks iter.Seq2[entity.Block, error], ops int) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) { newMerger(ops).run(blocks, yield) }
}

// merger joins blocks.
type merger struct {
	least int                   // minimum number of operations in a merged block
	ends  map[entity.Key]uint64 // expirations of entities that have one

	group entity.Block
	until []uint64 // expirations that the operations of the group set
	tx    uint32   // next transaction of the group
	limit uint64   // the group must not extend beyond this block number
}

func newMerger(ops int) *merger {
	return &merger{least: max(ops, 1), ends: map[entity.Key]uint64{}, limit: math.MaxUint64}
}

// run merges a stream to its end and stops at its first error.
func (g *merger) run(blocks iter.Seq2[entity.Block, error], yield func(entity.Block, error) bool) {
	for b, err := range blocks {
		if err != nil {
			yield(entity.Block{}, err)
			return
		}
		if len(b.Ops) == 0 {
			continue
		}
		if len(g.group.Ops) > 0 && !g.fits(&b) && !yield(g.flush(), nil) {
			return
		}
		g.add(&b)
		if len(g.group.Ops) >= g.least && !yield(g.flush(), nil) {
			return
		}
	}
	if len(g.group.Ops) > 0 {
		yield(g.flush(), nil)
	}
}

// fits reports whether the group can be extended up to a block.
func (g *merger) fits(b *entity.Block) bool {
	last := uint32(0)
	for i := range b.Ops {
		last = max(last, b.Ops[i].TxIndex)
	}
	return b.Number <= g.limit && g.tx+last <= math.MaxUint16
}

// pass updates the expirations by a block without merging it.
func (g *merger) pass(b *entity.Block) {
	for i := range b.Ops {
		g.follow(b.Number, &b.Ops[i])
	}
}

// add appends a block to the group.
func (g *merger) add(b *entity.Block) {
	g.group.Number = b.Number
	next := g.tx
	for i := range b.Ops {
		op := b.Ops[i]
		if end, ok := g.ends[op.Key]; ok && alters(op.Kind) {
			g.limit = min(g.limit, end-1)
		}
		g.until = append(g.until, g.follow(b.Number, &op))
		op.TxIndex += g.tx
		next = max(next, op.TxIndex+1)
		g.group.Ops = append(g.group.Ops, op)
	}
	g.tx = next
}

// alters reports whether an operation needs a live entity.
func alters(k entity.Kind) bool {
	return k == entity.Update || k == entity.ExtendBTL || k == entity.ChangeOwner || k == entity.Delete
}

// follow records the new expiration that an operation sets, and returns it; 0
// when it sets none.
func (g *merger) follow(block uint64, op *entity.Op) (end uint64) {
	switch op.Kind {
	case entity.Create, entity.Update, entity.ExtendBTL:
		if end = entity.AddBlocks(block, op.BTL); end < entity.MaxBlock {
			g.ends[op.Key] = end
			return end
		}
		delete(g.ends, op.Key)
	case entity.Delete, entity.Expire:
		delete(g.ends, op.Key)
	}
	return end
}

// flush returns the group and starts another.
func (g *merger) flush() entity.Block {
	b := g.group
	b.Ops = make([]entity.Op, 0, len(g.group.Ops))
	for i, op := range g.group.Ops {
		end := g.until[i]
		if end > 0 && end < entity.MaxBlock {
			op.BTL = end - min(end, b.Number)
		}
		over := op.BTL == 0 && (op.Kind == entity.Create || op.Kind == entity.Update)
		if over {
			op.BTL = 1 // the minimum
		}
		b.Ops = append(b.Ops, op)
		if over {
			b.Ops = append(b.Ops, entity.Op{Kind: entity.ExtendBTL, TxIndex: op.TxIndex, OpIndex: op.OpIndex, Key: op.Key})
		}
	}
	g.group, g.until, g.tx, g.limit = entity.Block{}, g.until[:0], 0, math.MaxUint64
	return b
}
