package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// plan is a planned block, and the entities after it.
type plan struct {
	block  entity.Block
	writes []*write // of the block: operation i has transaction index i
	states map[entity.Key]*state

	// refused are the writes that are left out of the block, each with its
	// error. They are answered after the block's commit, because another write
	// of the block may be the reason.
	refused []*write
}

// refuse answers the refused writes.
func (p *plan) refuse() {
	for _, w := range p.refused {
		w.answer(w.err)
	}
}

// state is the state of an entity while a block is planned.
type state struct {
	now     *entity.Entity // nil: the entity does not exist
	changed bool           // this block changes it
	by      *write         // the write that changed it last
}

// plan plans a block of writes, in order: a put creates a missing entity and
// updates an existing one. A delete of a missing entity is refused, and so is a
// write whose guard fails.
func (s *Service) plan(group []*write) (*plan, error) {
	p := &plan{writes: make([]*write, 0, len(group)), states: make(map[entity.Key]*state, len(group))}
	p.block = entity.Block{Number: s.head.block.Load() + 1, Ops: make([]entity.Op, 0, len(group))}
	if p.block.Number > entity.MaxBlockNumber {
		return nil, fmt.Errorf("%w: the last block number is reached; import the store into a new one", driver.ErrDiskFull)
	}
	if err := s.prior(p, group); err != nil {
		return nil, err
	}
	for _, w := range group {
		st := p.states[w.op.Key]
		if w.err = w.when.check(st.now); w.err == nil && w.op.Kind == entity.Delete && st.now == nil {
			w.err = store.ErrNotFound
		}
		if w.err != nil {
			p.refused = append(p.refused, w)
			continue
		}
		op := w.op
		op.TxIndex = uint32(len(p.writes))
		if st.by != nil {
			st.by.written.Replaced = true
		}
		if op.Kind == entity.Delete {
			st.now = nil
			w.written = Written{Block: p.block.Number}
		} else {
			s.put(p, st, w, &op)
		}
		st.changed, st.by = true, w
		p.block.Ops = append(p.block.Ops, op)
		p.writes = append(p.writes, w)
	}
	return p, nil
}

// put completes the operation of a put and updates the entity's state.
func (s *Service) put(p *plan, st *state, w *write, op *entity.Op) {
	op.Kind, op.Owner = entity.Create, s.opts.Owner
	if st.now != nil {
		op.Kind, op.Owner = entity.Update, st.now.Owner
	}
	if w.owner != nil {
		op.Owner = *w.owner
	}
	next := &entity.Entity{
		Key: op.Key, ContentType: op.ContentType, Content: w.payload, Owner: op.Owner, Creator: op.Owner,
		StringAttributes: op.StringAttributes, NumericAttributes: op.NumericAttributes,
		Sequence:            entity.MakeSequence(p.block.Number, op.TxIndex, op.OpIndex),
		LastModifiedAtBlock: p.block.Number, Expiration: entity.AddBlocks(p.block.Number, op.BTL),
	}
	if st.now != nil {
		next.Creator, next.Sequence = st.now.Creator, st.now.Sequence
	}
	w.written = Written{Block: p.block.Number, Created: st.now == nil, Expiration: next.Expiration}
	st.now = next
}

// prior finds the entity of each key: in the cache, which only the committer
// changes, otherwise in the store.
func (s *Service) prior(p *plan, group []*write) (err error) {
	// Ask the cache.
	var missing []entity.Key
	for _, w := range group {
		key := w.op.Key
		if p.states[key] != nil {
			continue
		}
		e, ok := s.cache.peek(key)
		if !ok {
			missing = append(missing, key)
		}
		p.states[key] = &state{now: e}
	}

	// Read the rest from one snapshot, which a server sends with the entities.
	if len(missing) > 0 {
		snap, openErr := s.ents.At(context.Background(), store.Head, missing...)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, snap.Close()) }()
		for _, key := range missing {
			e, err := snap.Get(context.Background(), key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			p.states[key].now = e
		}
	}

	for _, st := range p.states {
		if st.now != nil && st.now.Expiration <= p.block.Number {
			st.now = nil // its life ends before this block, or with it
		}
	}
	return nil
}
