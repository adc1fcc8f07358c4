package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/entity"
)

// Versions streams the versions of an entity, newest first, from the snapshot's
// block back to the oldest kept version. It includes every version that was
// visible at some block, also of earlier entities with the same key. A
// version's End is as of the store's head, so it may be above the snapshot's
// block. It holds a few versions in memory, and one payload. The snapshot
// cannot be used for anything else until the sequence ends. It fails with
// ErrNotFound when there is no version, and with ErrUnsupported on layouts
// without history.
func (s *Snapshot) Versions(ctx context.Context, key entity.Key) iter.Seq2[entity.Version, error] {
	return exclusive(ctx, s, "versions of "+key.String(), func(yield func(entity.Version) bool) error {
		return s.versions(ctx, key, yield)
	})
}

func (s *Snapshot) versions(ctx context.Context, key entity.Key, yield func(entity.Version) bool) error {
	if err := s.keepsHistory(); err != nil {
		return err
	}
	view, err := s.view(ctx, s.at)
	if err != nil {
		return err
	}
	found := false
	for v, err := range visible(view.Versions(ctx, key)) {
		if err != nil {
			return err
		}
		if found = true; !yield(v) {
			return nil
		}
	}
	if !found {
		return ErrNotFound
	}
	return nil
}

// visible leaves out versions that were never visible, because the block that
// began them also ended them.
func visible(all iter.Seq2[entity.Version, error]) iter.Seq2[entity.Version, error] {
	return func(yield func(entity.Version, error) bool) {
		for v, err := range all {
			if err == nil && (v.Entity.Trace() || v.End <= v.Entity.LastModifiedAtBlock) {
				continue
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// Difference is an entity that differs between two blocks.
type Difference struct {
	entity.Change        // from the earlier to the later block; nil means not visible
	Block         uint64 // of the entity's last change
	Expired       bool   // it expired
}

// Diff streams the entities that differ between two blocks, ordered by their
// last change and then by key. An entity that was created and ended between the
// blocks is not included. A number without a block counts as the block below
// it. Diff needs as much memory as Changes. The snapshot cannot be used for
// anything else until the sequence ends. It fails with ErrBlockRange when one
// of the blocks cannot be read, with ErrInvalid when from is above to, and with
// ErrUnsupported on layouts without history.
func (s *Snapshot) Diff(ctx context.Context, from, to uint64) iter.Seq2[Difference, error] {
	return exclusive(ctx, s, fmt.Sprintf("difference of blocks %d and %d", from, to), func(yield func(Difference) bool) error {
		return s.diff(ctx, from, to, yield)
	})
}

// diff iterates over the changes between the blocks and reports each entity at
// its last change, which is found from the state at the later block.
func (s *Snapshot) diff(ctx context.Context, from, to uint64, yield func(Difference) bool) error {
	if from > to {
		return fmt.Errorf("%w: block %d is above block %d; give the earlier one first", ErrInvalid, from, to)
	}
	for _, n := range []*uint64{&from, &to} {
		if err := s.readable(*n); err != nil {
			return err
		}
		b, err := s.ents.db.meta.headAt(ctx, s.reader, *n)
		if err != nil {
			return err
		}
		if !b.Empty {
			*n = max(b.Number, s.horizon)
		}
	}
	var failure error
	give := func(d Difference) bool {
		last, err := s.lastChange(ctx, &d, to)
		if err == nil && last {
			d.Old, err = s.getAt(ctx, d.Key, from)
		}
		failure = err
		// An entity that is visible at neither block does not differ.
		return err == nil && (!last || d.Old == nil && d.New == nil || yield(d))
	}
	err := s.changes(ctx, from+1, to, func(set BlockChanges) bool {
		for _, c := range set.Changed {
			if !give(Difference{Change: c, Block: set.Head.Number}) {
				return false
			}
		}
		for _, e := range set.Expired {
			if !give(Difference{Change: entity.Change{Key: e.Key}, Block: set.Head.Number, Expired: true}) {
				return false
			}
		}
		return true
	})
	return errors.Join(failure, err)
}

// lastChange reports whether a change is an entity's last one up to a block.
func (s *Snapshot) lastChange(ctx context.Context, d *Difference, to uint64) (bool, error) {
	now, err := s.getAt(ctx, d.Key, to)
	if err != nil || now != nil || d.New != nil {
		return now != nil && now.LastModifiedAtBlock == d.Block && d.New != nil, err
	}
	// The entity is not visible at the later block, so its last change ended
	// its newest version. If that version ends above this change, this change
	// or a later one began it.
	view, err := s.view(ctx, to)
	if err != nil {
		return false, err
	}
	for v, err := range visible(view.Versions(ctx, d.Key)) {
		return err == nil && v.End <= d.Block, err
	}
	return false, nil
}

// getAt returns an entity at a block; nil when it is not visible there.
func (s *Snapshot) getAt(ctx context.Context, key entity.Key, at uint64) (*entity.Entity, error) {
	view, err := s.view(ctx, at)
	if err != nil {
		return nil, err
	}
	e, err := view.Get(ctx, key)
	if errors.Is(err, entity.ErrNotFound) {
		return nil, nil
	}
	return e, err
}

// keepsHistory returns an error for layouts without history.
func (s *Snapshot) keepsHistory() error {
	if !s.ents.layout.Temporal() {
		return fmt.Errorf("layout %s keeps only the head: %w", s.ents.layout.Name(), ErrUnsupported)
	}
	return nil
}

// exclusive is stream with a result open on a snapshot, so that other uses of
// the snapshot fail meanwhile.
func exclusive[T any](ctx context.Context, s *Snapshot, did string, run func(yield func(T) bool) error) iter.Seq2[T, error] {
	return stream(did, func(yield func(T) bool) error {
		if err := s.idle(ctx); err != nil {
			return err
		}
		s.busy = true
		defer func() { s.busy = false }()
		return run(yield)
	})
}
