package entity

import (
	"iter"
	"math"
)

// Operations converts a history into blocks that reproduce it: a Create for
// each first version, an Update for each later one, a Delete where an entity
// ended. A history does not keep the operations of a feed, so the blocks may
// reach the same states by other operations. An entity whose creation was
// pruned is created with its first kept version.
//
// Two states need a second operation, because a Create or Update cannot produce
// them. A version that is never visible gets an ExtendBTL of 0, which ends an
// entity where extensions count from the block. An update that removes the
// owner follows a ChangeOwner.
//
// A Create has the transaction and operation indexes of the creation; the
// indexes of other operations count up from the highest of these.
func Operations(history iter.Seq2[Changeset, error]) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		for set, err := range history {
			if err != nil {
				yield(Block{}, err)
				return
			}
			if !yield(operations(set), nil) {
				return
			}
		}
	}
}

func operations(set Changeset) Block {
	b := Block{Number: set.Block, Hash: set.Hash, Time: set.Time, Horizon: set.Horizon}
	var later []Op
	free := uint64(0) // the first place above the creations: transaction<<16 | operation
	for i := range set.Changes {
		c := &set.Changes[i]
		if c.New == nil {
			later = append(later, Op{Kind: Delete, Key: c.Key})
			continue
		}
		if c.New.Trace() {
			later = append(later, Op{Kind: Create, Key: c.Key, BTL: 1, Owner: c.New.Owner}, Op{Kind: Delete, Key: c.Key})
			continue
		}
		switch created := c.New.CreatedAtBlock() == set.Block; {
		case created:
			if c.Old != nil {
				b.Ops = append(b.Ops, Op{Kind: Delete, Key: c.Key})
			}
			op := c.New.operation(Create, set.Block)
			op.TxIndex, op.OpIndex = uint32(c.New.TxIndex()), uint32(c.New.OpIndex())
			free = max(free, uint64(op.TxIndex+1)<<16)
			b.Ops = append(b.Ops, op)
		case c.Old == nil:
			later = append(later, c.New.operation(Create, set.Block))
		default:
			if c.New.Owner == (Address{}) {
				later = append(later, Op{Kind: ChangeOwner, Key: c.Key})
			}
			later = append(later, c.New.operation(Update, set.Block))
		}
		if c.New.Expiration <= set.Block {
			later = append(later, Op{Kind: ExtendBTL, Key: c.Key})
		}
	}
	// If there is no room above the creations, the remaining operations are
	// numbered between them, because two creates must not share a number.
	var taken map[uint64]bool
	if free+uint64(len(later)) > 1<<32 {
		free, taken = 0, make(map[uint64]bool, len(b.Ops))
		for i := range b.Ops {
			taken[uint64(b.Ops[i].TxIndex)<<16|uint64(b.Ops[i].OpIndex)] = true
		}
	}
	for i := range later {
		for taken[free] {
			free++
		}
		later[i].TxIndex, later[i].OpIndex = uint32(free>>16), uint32(free&math.MaxUint16)
		free++
	}
	b.Ops = append(b.Ops, later...)
	return b
}

// operation returns the Create or Update that makes a version. For a version
// that is never visible it makes one that is visible at the block alone.
func (e *Entity) operation(kind Kind, block uint64) Op {
	return Op{
		Kind: kind, Key: e.Key, BTL: max(e.Expiration, block+1) - block, Owner: e.Owner,
		ContentType: e.ContentType, Content: e.Content,
		StringAttributes: e.StringAttributes, NumericAttributes: e.NumericAttributes,
	}
}
