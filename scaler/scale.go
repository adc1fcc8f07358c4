package scaler

import (
	"fmt"
	"iter"
	"math"
	"math/bits"

	"github.com/varvedb/varve/store/entity"
)

// Source is a history that can be read repeatedly, each time with the same
// blocks: from a profile, a block tar or a database.
type Source func() iter.Seq2[entity.Block, error]

// ScaleOptions configure Scale.
type ScaleOptions struct {
	// Factor is the size of the result relative to the source, which it
	// includes; at least 1, which changes nothing.
	Factor uint64

	// Seed determines the keys and ids of the copies. To scale a scaled source
	// again, use another seed, or the copies will collide.
	Seed uint64
}

// Scale returns the source with Factor−1 copies of its entities. All operations
// are copied, so copies live, change and end as the originals do. Keys are new,
// and so are the ids and keys in attributes. Accounts, numbers and times stay,
// and payloads are not searched for keys. No entity is remembered, so memory
// does not grow with the source.
//
// The source's block range, from its first block number to its last, is called
// an epoch. Half of the entities of each copy are in the epoch of the original,
// and the other half in a later epoch for this copy. So the result has Factor
// epochs. In each block, the first epoch has (Factor+1)/2 times as many changes
// as the source, and each later epoch half as many. An entity's key decides on
// its half. A reference to an entity of the later half may come before that
// entity exists, because entities are not remembered.
//
// The source is opened once for each epoch. Its blocks are passed on, and
// original and copies share contents: treat them as read-only. Errors of the
// source are passed on. Scale itself fails where a block number would exceed
// entity.MaxBlockNumber, and where a block needs more transaction indexes than
// there are.
func Scale(src Source, o ScaleOptions) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		s := &scaling{src: src, yield: yield}
		s.run(o)
	}
}

// Continue streams blocks that may follow Scale of a source, without end:
// complete copies with new keys and ids, one after the other, each in a new
// epoch. First and last are the numbers of the source's blocks; the options are
// Scale's. It fails where Scale does.
func Continue(src Source, o ScaleOptions, first, last uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		s := &scaling{src: src, yield: yield, first: first, last: last}
		for c := o.Factor; s.epoch(newMapper(o.Seed, c), true); c++ {
		}
	}
}

type scaling struct {
	src     Source
	yield   func(entity.Block, error) bool
	mappers []mapper // of copies 1 to Factor−1
	tx      transactions

	first, last uint64 // of the source, known after the first epoch
	seen        bool
}

// fail ends the stream with an error.
func (s *scaling) fail(err error) bool {
	s.yield(entity.Block{}, err)
	return false
}

// run streams the source with the copies in its epoch, and then the other
// halves. It returns false when the consumer has stopped.
func (s *scaling) run(o ScaleOptions) bool {
	if o.Factor < 1 || o.Factor > math.MaxUint16 {
		return s.fail(fmt.Errorf("scale by %d: want a factor from 1 to %d", o.Factor, math.MaxUint16))
	}
	for c := uint64(1); c < o.Factor; c++ {
		s.mappers = append(s.mappers, newMapper(o.Seed, c))
	}
	for b, err := range s.src() {
		if err == nil {
			err = s.addCopies(&b)
		}
		if err != nil {
			return s.fail(err)
		}
		if !s.seen {
			s.first, s.seen = b.Number, true
		}
		s.last = b.Number
		if !s.yield(b, nil) {
			return false
		}
	}
	for _, m := range s.mappers {
		if !s.epoch(m, false) {
			return false
		}
	}
	return true
}

// addCopies adds copies to a block of the source.
func (s *scaling) addCopies(b *entity.Block) error {
	if len(s.mappers) == 0 || len(b.Ops) == 0 {
		return nil
	}
	s.tx.read(b)
	ops := make([]entity.Op, len(b.Ops), len(b.Ops)*(len(s.mappers)+1))
	copy(ops, b.Ops)
	for i := range s.mappers {
		m := &s.mappers[i]
		for j := range b.Ops {
			op := &b.Ops[j]
			key := m.key(op.Key)
			if moved(key) {
				continue
			}
			tx := s.tx.index(op.TxIndex, m.copy)
			if tx > math.MaxUint16 {
				return b.OpError(j, fmt.Errorf("copy %d would be transaction %d, above %d: use a smaller factor",
					m.copy, tx, math.MaxUint16))
			}
			c := m.op(op, key)
			c.TxIndex = uint32(tx)
			ops = append(ops, c)
		}
	}
	b.Ops = ops
	return nil
}

// epoch streams a copy of the source at a later time: all of it, or only the
// half that is not in the original's epoch. It returns false when the consumer
// has stopped.
func (s *scaling) epoch(m mapper, whole bool) bool {
	hi, offset := bits.Mul64(m.copy, s.last-s.first+1)
	if hi > 0 {
		offset = entity.MaxBlock
	}
	for b, err := range s.src() {
		if err != nil {
			return s.fail(err)
		}
		number := entity.AddBlocks(b.Number, offset)
		if number > entity.MaxBlockNumber {
			return s.fail(fmt.Errorf("scale: copy %d of block %d passes the highest block number %d: use a smaller factor",
				m.copy, b.Number, uint64(entity.MaxBlockNumber)))
		}
		c := entity.Block{Number: number}
		if b.Horizon > 0 { // the copy's history is as incomplete as the original's
			c.Horizon = min(entity.AddBlocks(b.Horizon, offset), entity.MaxBlockNumber)
		}
		if len(b.Ops) > 0 {
			c.Ops = make([]entity.Op, 0, len(b.Ops))
		}
		for j := range b.Ops {
			key := m.key(b.Ops[j].Key)
			if whole || moved(key) {
				c.Ops = append(c.Ops, m.op(&b.Ops[j], key))
			}
		}
		if !s.yield(c, nil) {
			return false
		}
	}
	return true
}
