package store

import (
	"context"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/entity"
)

// History returns the store's content as changesets, for Import into another
// store. The head is fixed when it is first iterated. Iterating it again yields
// the same blocks, or fails with ErrHistory if they were rewound or pruned
// since. It includes the hash and time of each block that has them, even if the
// block changed nothing. It needs three readers while it runs. If the store was
// pruned, or its layout keeps no history, it yields the remaining history, the
// first changeset's Horizon says so, and the digest differs from the store's.
func (e *Entities) History(ctx context.Context) iter.Seq2[entity.Changeset, error] {
	var first *Snapshot // closed, for its head and horizon
	return stream("history", func(yield func(entity.Changeset) bool) error {
		return e.readHistory(ctx, &first, yield)
	})
}

func (e *Entities) readHistory(ctx context.Context, first **Snapshot, yield func(entity.Changeset) bool) error {
	views, err := e.views(ctx, 3)
	if err != nil {
		return err
	}
	defer func() { _ = closeViews(views) }() // all rows were read, so closing loses none
	if *first == nil {
		*first = views[0]
	} else if err := (*first).stillIn(ctx, views[0]); err != nil {
		return err
	}
	head := (*first).head
	if head.Empty {
		return nil
	}
	known, err := e.db.meta.blockRows(context.WithoutCancel(ctx), views[2].reader, "list_identified", int64(head.Number))
	if err != nil {
		return err
	}
	defer known.rows.Close()
	for set, err := range e.history(ctx, head, views) {
		if err != nil {
			return err
		}
		// Insert the blocks whose hash or time is known and that changed
		// nothing.
		for known.more && known.block.Number < set.Block {
			empty := entity.Changeset{Block: known.block.Number, Hash: known.block.Hash, Time: known.block.Time, Horizon: set.Horizon}
			set.Horizon = 0 // the first one tells
			if !yield(empty) {
				return nil
			}
			if err := known.next(); err != nil {
				return err
			}
		}
		if known.more && known.block.Number == set.Block {
			set.Hash, set.Time = known.block.Hash, known.block.Time
			if err := known.next(); err != nil {
				return err
			}
		}
		if !yield(set) {
			return nil
		}
	}
	return nil
}

// stillIn checks that the history of an earlier view is a part of a later
// one's.
func (s *Snapshot) stillIn(ctx context.Context, later *Snapshot) error {
	if s.head.Empty {
		return nil
	}
	held, err := s.ents.db.meta.headAt(context.WithoutCancel(ctx), later.reader, s.head.Number)
	if err == nil && (held != s.head || later.horizon != s.horizon) {
		err = fmt.Errorf("%w: the store was rewound below block %d, or pruned, since its history was first read", ErrHistory, s.head.Number)
	}
	return err
}

// history yields the changesets up to a head. The views are of that head or a
// later one; the first is asked for versions that began and the second for
// versions that ended.
func (e *Entities) history(ctx context.Context, head BlockHeader, views []*Snapshot) iter.Seq2[entity.Changeset, error] {
	return func(yield func(entity.Changeset, error) bool) {
		if head.Empty {
			return
		}
		horizon := views[0].horizon
		if !e.layout.Temporal() {
			horizon = head.Number
		}
		next := uint64(0) // lowest block that was not given yet
		give := func(set entity.Changeset, err error) bool {
			if next == 0 {
				set.Horizon = horizon
			}
			next = set.Block + 1
			return yield(set, err)
		}
		began, err := views[0].view(ctx, views[0].at)
		if err != nil {
			yield(entity.Changeset{}, err)
			return
		}
		ended, err := views[1].view(ctx, views[1].at)
		if err != nil {
			yield(entity.Changeset{}, err)
			return
		}
		for set, err := range entity.History(began.Openings(ctx), ended.Closings(ctx)) {
			if err == nil && set.Block > head.Number {
				break
			}
			if !give(set, err) || err != nil {
				return
			}
		}
		if next <= head.Number {
			give(entity.Changeset{Block: head.Number}, nil)
		}
	}
}
