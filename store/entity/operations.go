package entity

import (
	"iter"
	"math"
)

// Operations turns a history back into blocks whose application makes it: a
// Create for each first version, an Update for each later one, a Delete where
// one ended. That one operation did it is all that a history still tells, so
// the operations of a feed are not restored, but the states they led to are. An
// entity whose creation was pruned is created where what is left of it begins.
// Transaction and operation indexes are those of the creation for a Create, and
// count up from the highest of these for the rest.
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
	tx := uint32(0)
	for i := range set.Changes {
		c := &set.Changes[i]
		if c.New != nil && c.New.Trace() {
			later = append(later, Op{Kind: Create, Key: c.Key, BTL: 1, Owner: c.New.Owner}, Op{Kind: Delete, Key: c.Key})
			continue
		}
		if created := c.New != nil && c.New.CreatedAtBlock() == set.Block; created {
			if c.Old != nil {
				b.Ops = append(b.Ops, Op{Kind: Delete, Key: c.Key})
			}
			op := c.New.operation(Create, set.Block)
			op.TxIndex, op.OpIndex = uint32(c.New.TxIndex()), uint32(c.New.OpIndex())
			tx = max(tx, op.TxIndex+1)
			b.Ops = append(b.Ops, op)
			continue
		}
		switch {
		case c.New == nil:
			later = append(later, Op{Kind: Delete, Key: c.Key})
		case c.Old == nil:
			later = append(later, c.New.operation(Create, set.Block))
		default:
			later = append(later, c.New.operation(Update, set.Block))
		}
	}
	for i := range later { // in the last transaction there can be, if need be
		later[i].TxIndex, later[i].OpIndex = min(tx+uint32(i>>16), math.MaxUint16), uint32(i&0xffff)
	}
	b.Ops = append(b.Ops, later...)
	return b
}

// operation returns the Create or Update that makes a version.
func (e *Entity) operation(kind Kind, block uint64) Op {
	return Op{
		Kind: kind, Key: e.Key, BTL: e.Expiration - min(e.Expiration, block), Owner: e.Owner,
		ContentType: e.ContentType, Content: e.Content,
		StringAttributes: e.StringAttributes, NumericAttributes: e.NumericAttributes,
	}
}
