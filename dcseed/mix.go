package dcseed

import (
	"iter"

	"github.com/varvedb/varve/store/entity"
)

// Mix merges a stream of other blocks into a stream of data-centre blocks, so
// that dcPercent of all operations, from 0 to 100, are from the data centres: 0
// is base alone, 100 dc alone, 30 and 70 the light and the heavy mix.
//
// A merged block is a block of dc, with its number and its operations first,
// followed by the next whole blocks of base, in order, as many as the share
// requires. So the share is right to within one block of base, and answers
// about the data centres stay right. Lifetimes in base count from the merged
// block: if a merged block takes less than one block of base on average, base
// entities may expire before base updates them.
//
// The stream ends when either of the two ends, since the rest would be of one
// kind, and fails with the error of either. It holds a merged block in memory.
func Mix(base, dc iter.Seq2[entity.Block, error], dcPercent int) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		next, stop := iter.Pull2(base)
		defer stop()
		m := mixer{next: next, percent: uint64(dcPercent)}
		for b, err := range dc {
			if err == nil {
				b, err = m.complete(b)
			}
			if !yield(b, err) || err != nil || m.done {
				return
			}
		}
	}
}

// mixer counts the operations from each stream.
type mixer struct {
	next    func() (entity.Block, error, bool)
	percent uint64
	dc      uint64 // operations
	base    uint64 // operations
	done    bool   // base has ended
}

// complete appends to a block of dc the blocks of base that are due.
func (m *mixer) complete(b entity.Block) (entity.Block, error) {
	m.dc += uint64(len(b.Ops))
	b.Ops = b.Ops[:len(b.Ops):len(b.Ops)] // appending must not write into the caller's array
	for m.base*m.percent < m.dc*(100-m.percent) {
		add, err, ok := m.next()
		if err != nil {
			return entity.Block{}, err
		}
		if !ok {
			m.done = true
			return b, nil
		}
		m.base += uint64(len(add.Ops))
		after := uint32(0) // the transactions of b
		for i := range b.Ops {
			after = max(after, b.Ops[i].TxIndex+1)
		}
		for _, op := range add.Ops {
			op.TxIndex += after
			b.Ops = append(b.Ops, op)
		}
	}
	return b, nil
}
