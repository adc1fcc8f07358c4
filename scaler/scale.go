package scaler

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"

	"github.com/varvedb/varve/store/entity"
)

// ScaleOptions choose how a source is multiplied.
type ScaleOptions struct {
	Method Method // the zero value is Hybrid

	// Factor is how many times the entities of the source the result has, the
	// source itself included; at least 1, which changes nothing.
	Factor uint64

	// Seed gives the copies other keys and ids. To scale what has been scaled
	// before, give another seed than then, or the copies will collide.
	Seed uint64
}

// Scale returns the source with Factor−1 copies of its entities. All operations
// are copied, so copies live, change and end as the originals do. Fresh are the
// keys, and the ids and keys in attributes. Accounts and numbers stay, times among
// them, and payloads are not searched for keys. Of the entities nothing is
// remembered, so memory does not grow with the source.
//
// The source is opened once for each epoch. Its blocks are passed on, and its
// contents shared between original and copies: treat them as read-only. Errors
// of the source are passed on. Scale itself fails where a block would pass
// entity.MaxBlockNumber, and where a block has more transactions than there are
// indexes.
func Scale(src Source, o ScaleOptions) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		s, err := newScaling(src, o)
		if err == nil {
			err = s.run(yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(entity.Block{}, err)
		}
	}
}

// Continue streams what may come after Scale of a source, without end: copies with keys and
// ids of their own, whole and one after the other, each in an epoch as Temporal has them.
// First and last are the numbers of the source's blocks; the options are those of Scale,
// of which Method does not matter. It fails where Scale does.
func Continue(src Source, o ScaleOptions, first, last uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		o.Method = Temporal
		s := &scaling{src: src, o: o, first: first, last: last}
		var err error
		for c := o.Factor; err == nil; c++ {
			m := newMapper(o.Seed, c)
			err = s.epoch(&m, yield)
		}
		if !errors.Is(err, errStopped) {
			yield(entity.Block{}, err)
		}
	}
}

// errStopped: the consumer wants no more.
var errStopped = errors.New("stopped")

type scaling struct {
	src     Source
	o       ScaleOptions
	mappers []mapper // of copies 1 to Factor−1
	tx      transactions

	first, last uint64 // of the source, known after the first epoch
	seen        bool
}

func newScaling(src Source, o ScaleOptions) (*scaling, error) {
	if o.Factor < 1 || o.Factor > math.MaxUint16 {
		return nil, fmt.Errorf("scale by %d: want a factor from 1 to %d", o.Factor, math.MaxUint16)
	}
	if int(o.Method) >= len(methodNames) {
		return nil, fmt.Errorf("scale: unknown %s", o.Method)
	}
	s := &scaling{src: src, o: o}
	for c := uint64(1); c < o.Factor; c++ {
		s.mappers = append(s.mappers, newMapper(o.Seed, c))
	}
	return s, nil
}

func (s *scaling) run(yield func(entity.Block, error) bool) error {
	if err := s.original(yield); err != nil || !s.seen || s.o.Method == Duplicate {
		return err
	}
	for i := range s.mappers {
		if err := s.epoch(&s.mappers[i], yield); err != nil {
			return err
		}
	}
	return nil
}

// original is the first epoch: the source and what is beside it.
func (s *scaling) original(yield func(entity.Block, error) bool) error {
	for b, err := range s.src() {
		if err != nil {
			return err
		}
		if !s.seen {
			s.first, s.seen = b.Number, true
		}
		s.last = b.Number
		if s.o.Method != Temporal {
			if err := s.beside(&b); err != nil {
				return err
			}
		}
		if !yield(b, nil) {
			return errStopped
		}
	}
	return nil
}

// beside adds copies to a block of the source.
func (s *scaling) beside(b *entity.Block) error {
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
			if s.o.Method == Hybrid && moved(key) {
				continue
			}
			tx := s.tx.index(op.TxIndex, m.copy)
			if tx > math.MaxUint16 {
				return b.OpError(j, fmt.Errorf("copy %d would be transaction %d, above %d: use a smaller factor or temporal copies",
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

// epoch is the source once more, copied to a later time.
func (s *scaling) epoch(m *mapper, yield func(entity.Block, error) bool) error {
	hi, offset := bits.Mul64(m.copy, s.last-s.first+1)
	if hi > 0 {
		offset = entity.MaxBlock
	}
	for b, err := range s.src() {
		if err != nil {
			return err
		}
		number := entity.AddBlocks(b.Number, offset)
		if number > entity.MaxBlockNumber {
			return fmt.Errorf("scale: copy %d of block %d passes the highest block number %d: use a smaller factor or duplicates",
				m.copy, b.Number, uint64(entity.MaxBlockNumber))
		}
		c := entity.Block{Number: number}
		if len(b.Ops) > 0 {
			c.Ops = make([]entity.Op, 0, len(b.Ops))
		}
		for j := range b.Ops {
			key := m.key(b.Ops[j].Key)
			if s.o.Method == Temporal || moved(key) {
				c.Ops = append(c.Ops, m.op(&b.Ops[j], key))
			}
		}
		if !yield(c, nil) {
			return errStopped
		}
	}
	return nil
}
