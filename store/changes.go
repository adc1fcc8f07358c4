package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// BlockChanges has the changes of a block to the visible entities. Single
// operations are not kept: a change that the same block undid does not appear,
// and an entity that ended before its expiration counts as deleted.
type BlockChanges struct {
	Head BlockHeader // the block

	// Changed are the entities with a version that began or ended in the block,
	// as they were before and after it, ordered by key; nil means not visible.
	Changed []entity.Change

	// Expired are the versions that expired at the block, or at a number
	// between the previous block and this one, ordered by key. They are without
	// attributes and payload.
	Expired []*entity.Entity
}

// Changes streams the changes of each block in a range, empty blocks included,
// as far as the snapshot knows them. It holds one block in memory, and the keys
// of the entities that ended in a thousand blocks. The snapshot cannot be used
// for anything else until the sequence ends. It fails with ErrBlockRange when
// the range is not below the snapshot's head and above the horizon, and with
// ErrUnsupported on layouts without history.
func (s *Snapshot) Changes(ctx context.Context, from, to uint64) iter.Seq2[BlockChanges, error] {
	return exclusive(ctx, s, fmt.Sprintf("changes of blocks %d to %d", from, to), func(yield func(BlockChanges) bool) error {
		return s.changes(ctx, from, to, yield)
	})
}

func (s *Snapshot) changes(ctx context.Context, from, to uint64, yield func(BlockChanges) bool) error {
	if err := s.keepsHistory(); err != nil {
		return err
	}
	for _, block := range []uint64{before(from), to} {
		if err := s.readable(block); err != nil {
			return err
		}
	}
	prior := BlockHeader{Empty: true}
	if from > 0 {
		var err error
		if prior, err = s.ents.db.meta.headAt(ctx, s.reader, from-1); err != nil {
			return err
		}
	}
	for {
		blocks, err := s.ents.db.meta.blocksBetween(ctx, s.reader, from, to, changesWindow)
		if err != nil || len(blocks) == 0 {
			return err
		}
		// Entities that expired at a number without a block are reported with
		// the next block.
		if !prior.Empty {
			from = max(prior.Number, s.horizon) + 1
		}
		last := blocks[len(blocks)-1]
		c := changes{snapshot: s, expiring: map[entity.Key]*entity.Entity{}, closed: map[uint64][]entity.Closing{}, prior: prior.Digest}
		if err := c.begin(ctx, from, last.Number); err != nil {
			return err
		}
		for _, b := range blocks {
			set, err := c.block(ctx, b, last.Number)
			if err != nil {
				return fmt.Errorf("block %d: %w", b.Number, err)
			}
			if !yield(set) {
				return nil
			}
		}
		if len(blocks) < changesWindow {
			return nil
		}
		prior, from = last, last.Number+1
	}
}

// changesWindow is the number of blocks for which the keys of ended entities
// are read together.
const changesWindow = 1000

// before returns the number before a block's.
func before(block uint64) uint64 { return max(block, 1) - 1 }

// changes iterates over blocks.
type changes struct {
	snapshot *Snapshot
	expiring map[entity.Key]*entity.Entity // visible entities that expire within the range
	closed   map[uint64][]entity.Closing   // versions ended before their expiration, by block
	prior    entity.Digest                 // digest of the previous block
}

// begin reads the blocks of the range and the keys of the versions that began
// in it.
func (c *changes) begin(ctx context.Context, from, to uint64) error {
	if from > 0 {
		err := c.find(ctx, from-1, false, query.And{Terms: []query.Expr{
			query.Compare{Name: entity.AttrExpiration, Op: query.GreaterOrEqual, Value: query.Number(from)},
			query.Compare{Name: entity.AttrExpiration, Op: query.LessOrEqual, Value: query.Number(to)},
		}}, func(e *entity.Entity) { c.expiring[e.Key] = e })
		if err != nil {
			return err
		}
	}
	view, err := c.snapshot.view(ctx, to)
	if err != nil {
		return err
	}
	for closing, err := range view.ClosingsBetween(ctx, from, to) {
		if err != nil {
			return err
		}
		c.closed[closing.Block] = append(c.closed[closing.Block], closing)
	}
	return nil
}

// find passes the entities that match at a block to give.
func (c *changes) find(ctx context.Context, at uint64, whole bool, expr query.Expr, give func(*entity.Entity)) error {
	view, err := c.snapshot.view(ctx, at)
	if err != nil {
		return err
	}
	for e, err := range view.Query(ctx, layout.Request{Expr: expr, Attributes: whole, Content: whole}) {
		if err != nil {
			return err
		}
		give(e)
	}
	return nil
}

// block returns the changes of block b; to is the last block of the range.
func (c *changes) block(ctx context.Context, b BlockHeader, to uint64) (BlockChanges, error) {
	set := BlockChanges{Head: b}
	byKey := map[entity.Key]*entity.Change{}
	for _, closing := range c.closed[b.Number] {
		byKey[closing.Key] = &entity.Change{Key: closing.Key}
		delete(c.expiring, closing.Key)
	}
	for key, e := range c.expiring {
		if e.Expiration <= b.Number {
			set.Expired = append(set.Expired, e)
			delete(c.expiring, key)
		}
	}
	// A block without changes has the digest of the block before.
	if b.Digest != c.prior || len(byKey) > 0 {
		c.prior = b.Digest
		began := query.Compare{Name: entity.AttrLastModifiedAtBlock, Op: query.Equal, Value: query.Number(b.Number)}
		err := c.find(ctx, b.Number, true, began, func(e *entity.Entity) {
			if byKey[e.Key] == nil {
				byKey[e.Key] = &entity.Change{Key: e.Key}
			}
			byKey[e.Key].New = e
			if e.Expiration <= to {
				c.expiring[e.Key] = e
			}
		})
		if err != nil {
			return set, err
		}
	}
	for _, closing := range c.closed[b.Number] {
		view, err := c.snapshot.view(ctx, before(b.Number))
		if err != nil {
			return set, err
		}
		if byKey[closing.Key].Old, err = view.Get(ctx, closing.Key); err != nil {
			return set, err
		}
	}
	for _, change := range byKey {
		set.Changed = append(set.Changed, *change)
	}
	slices.SortFunc(set.Changed, func(a, b entity.Change) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	slices.SortFunc(set.Expired, func(a, b *entity.Entity) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return set, nil
}
