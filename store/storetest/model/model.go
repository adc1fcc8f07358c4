// Package model is the reference implementation for stores: a short and simple
// entity store in memory. The suites of storetest and the trials of
// internal/crashtest compare engines with it.
package model

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Model is an entity store in memory. It keeps the whole state after each
// block, so that a read of the past is a map lookup. A store is right if it
// answers as the model does, including errors (by sentinel). The zero value is
// an empty store. It is not safe for concurrent use.
type Model struct {
	// ExtendAdds is store.EntityOptions.ExtendAdds.
	ExtendAdds bool
	// HeadOnly mirrors layouts that keep no history.
	HeadOnly bool
	// NoNUL mirrors engines whose text cannot hold U+0000.
	NoNUL bool

	blocks  []modelBlock
	horizon uint64
}

// modelBlock is the state after a block. Once it is part of a model, its map
// and versions do not change.
type modelBlock struct {
	number uint64
	digest entity.Digest
	hash   entity.Hash
	time   uint64

	// entities has the last version of each entity that no operation ended.
	// Expired versions remain in it.
	entities map[entity.Key]*entity.Entity
}

// Apply applies a block. If a store must refuse the block, Apply returns the
// error and changes nothing. The model keeps the maps and contents of the
// operations.
func (m *Model) Apply(b entity.Block) error {
	next, err := m.next(b)
	if err == nil {
		m.blocks = append(m.blocks, next)
	}
	return err
}

// next returns the state after one more block.
func (m *Model) next(b entity.Block) (modelBlock, error) {
	if err := b.Validate(); err != nil {
		return modelBlock{}, err
	}
	if i := b.TextWithNUL(); m.NoNUL && i >= 0 {
		return modelBlock{}, b.OpError(i, store.ErrUnsupported)
	}
	if head := m.Head(); !head.Empty && b.Number <= head.Number {
		return modelBlock{}, fmt.Errorf("block %d after %d: %w", b.Number, head.Number, store.ErrBlockOrder)
	}
	before := m.stateAt(b.Number)
	after := map[entity.Key]*entity.Entity{}
	maps.Copy(after, before.entities)
	gone := map[entity.Key]*entity.Entity{} // ended by an operation
	for i := range b.Ops {
		key := b.Ops[i].Key
		last := after[key]
		if err := m.operate(after, b.Number, &b.Ops[i]); err != nil {
			return modelBlock{}, b.OpError(i, err)
		}
		if _, is := after[key]; !is && last != nil {
			gone[key] = last
		}
	}
	set := difference(b.Number, before.entities, after, gone)
	return modelBlock{number: b.Number, digest: before.digest.Next(set), hash: b.Hash, time: b.Time, entities: after}, nil
}

// Draft collects the operations of the next block.
type Draft struct {
	model *Model
	block uint64
	state map[entity.Key]*entity.Entity
}

// Draft starts the next block.
func (m *Model) Draft(block uint64) *Draft {
	d := &Draft{m, block, map[entity.Key]*entity.Entity{}}
	maps.Copy(d.state, m.stateAt(block).entities)
	return d
}

// Add adds an operation, or returns the error with which the block would be
// refused.
func (d *Draft) Add(op *entity.Op) error { return d.model.operate(d.state, d.block, op) }

// operate applies one operation to a state.
func (m *Model) operate(state map[entity.Key]*entity.Entity, block uint64, op *entity.Op) error {
	old, known := state[op.Key]
	live := known && block < old.Expiration
	switch {
	case op.Kind == entity.Create && live:
		return store.ErrExists
	case op.Kind == entity.Expire && !live && (known || m.horizon > 0):
		return nil // it ran out, or may have run out before a prune
	case op.Kind != entity.Create && !live:
		return store.ErrNotFound
	case op.Kind == entity.Delete || op.Kind == entity.Expire:
		delete(state, op.Key)
		return nil
	case op.Kind == entity.Update && op.Owner == entity.Address{} && old.Owner != entity.Address{}:
		return store.ErrInvalid
	}

	version := entity.Entity{Key: op.Key, Creator: op.Owner}
	if op.Kind == entity.Create {
		version.Sequence = block<<32 + uint64(op.TxIndex)<<16 + uint64(op.OpIndex)
	} else {
		version = *old
	}
	version.LastModifiedAtBlock = block
	switch op.Kind {
	case entity.ExtendBTL:
		from := block
		if m.ExtendAdds {
			from = old.Expiration
		}
		version.Expiration = saturatingAdd(from, op.BTL)
	case entity.ChangeOwner:
		version.Owner = op.Owner
	default: // Create, Update
		version.Owner = op.Owner
		version.ContentType, version.Content = op.ContentType, op.Content
		version.StringAttributes, version.NumericAttributes = op.StringAttributes, op.NumericAttributes
		version.Expiration = saturatingAdd(block, op.BTL)
	}
	state[op.Key] = &version
	return nil
}

func saturatingAdd(block, n uint64) uint64 {
	sum := block + n
	if sum < block || sum > entity.MaxBlock {
		return entity.MaxBlock
	}
	return sum
}

// difference returns the changes of a block. An entity that had expired, was
// created again and ended within the block leaves a version that no reader
// sees.
func difference(block uint64, before, after, gone map[entity.Key]*entity.Entity) entity.Changeset {
	set := entity.Changeset{Block: block}
	all := maps.Collect(maps.All(before))
	maps.Copy(all, after)
	for _, key := range slices.SortedFunc(maps.Keys(all), func(x, y entity.Key) int { return bytes.Compare(x[:], y[:]) }) {
		was, is := before[key], after[key]
		ranOut := was != nil && was.Expiration <= block
		switch {
		case was == is:
		case ranOut && is == nil:
			last := gone[key]
			set.Changes = append(set.Changes, entity.Change{Key: key, New: &entity.Entity{
				Key: key, Creator: last.Creator, Owner: last.Owner, Sequence: last.Sequence,
				LastModifiedAtBlock: block, Expiration: block, NumericAttributes: map[string]uint64{entity.AttrEnded: 1},
			}})
		case ranOut:
			set.Changes = append(set.Changes, entity.Change{Key: key, New: is})
		default:
			set.Changes = append(set.Changes, entity.Change{Key: key, Old: was, New: is})
		}
	}
	return set
}

// stateAt returns the state after the last block at or below a number.
func (m *Model) stateAt(block uint64) modelBlock {
	for _, b := range slices.Backward(m.blocks) {
		if b.number <= block {
			return b
		}
	}
	return modelBlock{}
}

// Horizon returns the first block that can be read: the block of the last
// Prune, or 0.
func (m *Model) Horizon() uint64 { return m.horizon }

// Head returns the last block.
func (m *Model) Head() store.BlockHeader {
	return m.BlockAt(store.Head)
}

// BlockAt returns the last block at or below a number.
func (m *Model) BlockAt(number uint64) store.BlockHeader {
	b := m.stateAt(number)
	if b.entities == nil {
		return store.BlockHeader{Empty: true}
	}
	return store.BlockHeader{Number: b.number, Digest: b.digest, Hash: b.hash, Time: b.time}
}

// Oldest returns the first block that can be read.
func (m *Model) Oldest() store.BlockHeader {
	for _, b := range m.blocks {
		if b.number >= m.horizon && !m.HeadOnly && b.entities != nil {
			return m.BlockAt(b.number)
		}
	}
	return m.Head()
}

// Rewind makes a block the head, or returns the error that a store must return.
func (m *Model) Rewind(to uint64) error {
	switch {
	case m.HeadOnly:
		return store.ErrUnsupported
	case to > m.Head().Number || to < m.horizon:
		return store.ErrBlockRange
	case m.stateAt(to).number < m.horizon:
		return store.ErrBlockRange // the block that would be the head was pruned
	}
	m.blocks = slices.DeleteFunc(slices.Clone(m.blocks), func(b modelBlock) bool { return b.number > to })
	return nil
}

// Prune removes the versions that cannot be read at the block before or later,
// or returns the error that a store must return.
func (m *Model) Prune(before uint64) error {
	if before > m.Head().Number {
		return store.ErrBlockRange
	}
	if before <= m.horizon {
		return nil
	}
	m.horizon = before
	pruned := make([]modelBlock, len(m.blocks))
	for i, b := range m.blocks {
		b.entities = maps.Clone(b.entities)
		maps.DeleteFunc(b.entities, func(_ entity.Key, e *entity.Entity) bool { return e.Expiration <= before })
		pruned[i] = b
	}
	m.blocks = pruned
	return nil
}

// Clone returns a copy of the model that changes independently.
func (m *Model) Clone() *Model {
	other := *m
	other.blocks = slices.Clone(m.blocks)
	return &other
}
