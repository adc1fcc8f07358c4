package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Applied counts the changes of one block, or of a load so far.
type Applied struct {
	Head    BlockHeader // after it
	Blocks  int
	Changes int // entities whose state the blocks changed
	Skipped int // blocks that the store held already
}

// Apply applies one block in one transaction: all of it or nothing. It fails
// with ErrBlockOrder when the block is not above the head, with ErrInvalid when
// an operation is malformed, with ErrNotFound or ErrExists when one does not
// fit the state before it (as an *entity.OpError), and with ErrUnsupported when
// the engine cannot store a text. The block is neither retained nor modified.
func (e *Entities) Apply(ctx context.Context, b entity.Block) (applied Applied, err error) {
	defer wrap(&err, "apply")
	if err := e.admissible(&b); err != nil {
		return Applied{}, err
	}

	// Apply the block in one transaction.
	e.maintainer.enter(ctx)
	var mark blockMark
	needs := b.Needs()
	expected := func() []driver.Prefetch { return e.prefetchWrite(b.Number, needs) }
	err = e.db.writeExpecting(ctx, expected, func(ctx context.Context, tx driver.Tx) error {
		head, err := e.db.meta.head(ctx, tx)
		if err != nil {
			return err
		}
		mark = e.db.mark()
		applied, err = e.applyIn(ctx, &entityTx{Tx: tx, ents: e}, head, &b, needs)
		return err
	})
	e.maintainer.leave()
	if err != nil {
		return Applied{}, err
	}
	e.committed(ctx, mark, applied)
	return applied, nil
}

// committed notes that blocks were committed; mark was read in their
// transaction.
func (e *Entities) committed(ctx context.Context, mark blockMark, applied Applied) {
	head := applied.Head.Number
	if k := e.db.keeper(); k != nil && head < markBlock {
		k.Keep(keptBlocks, uint64(mark), uint64(mark.at(head+1)))
	}
	e.lastHead.Store(head)
	if applied.Changes > 0 {
		e.maintainer.wrote()
	}
	e.grown(ctx, applied.Changes)
}

// prefetchWrite returns the queries that a block's transaction is expected to
// run.
func (e *Entities) prefetchWrite(block uint64, needs map[entity.Key]entity.Need) []driver.Prefetch {
	expected := []driver.Prefetch{e.db.meta.Prefetch("head")}
	if l, ok := e.layout.(layout.Prefetched); ok {
		expected = append(expected, l.PrefetchWrite(block, needs)...)
	}
	return expected
}

// admissible makes the checks that do not need the store.
func (e *Entities) admissible(b *entity.Block) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if e.db.engine.Capabilities().TextNUL {
		return nil
	}
	if i := b.TextWithNUL(); i >= 0 {
		return b.OpError(i, fmt.Errorf("%w: text with U+0000 on engine %s", ErrUnsupported, e.db.engine.Info().Name))
	}
	return nil
}

// entityTx is a transaction that writes blocks.
type entityTx struct {
	driver.Tx
	ents   *Entities
	layout layout.Writer // nil until it is needed
}

func (tx *entityTx) writer(ctx context.Context) (w layout.Writer, err error) {
	if tx.layout == nil {
		tx.layout, err = tx.ents.layout.Writer(ctx, tx.Tx)
	}
	return tx.layout, err
}

// prior returns the stored versions of entities before a block.
func (tx *entityTx) prior(ctx context.Context, block uint64, needs map[entity.Key]entity.Need) (prior map[entity.Key]entity.Prior, err error) {
	if len(needs) == 0 {
		return nil, nil
	}
	w, err := tx.writer(ctx)
	if err == nil {
		prior, err = w.Prior(ctx, block, needs)
	}
	return prior, err
}

// applyIn applies a block inside a transaction.
func (e *Entities) applyIn(ctx context.Context, tx *entityTx, head BlockHeader, b *entity.Block, needs map[entity.Key]entity.Need) (Applied, error) {
	if err := follows(head, b.Number); err != nil {
		return Applied{}, err
	}

	// Read what the block's operations depend on: the stored versions of its
	// keys and, for an Expire, whether versions were pruned.
	prior, err := tx.prior(ctx, b.Number, needs)
	rules := e.rules
	if err == nil && slices.ContainsFunc(b.Ops, func(op entity.Op) bool { return op.Kind == entity.Expire }) {
		var horizon uint64
		horizon, err = e.db.meta.horizon(ctx, tx)
		rules.Pruned = horizon > 0
	}
	if err != nil {
		return Applied{}, fmt.Errorf("block %d: %w", b.Number, err)
	}

	// Compute the changes, and write them.
	set, err := entity.Fold(b, prior, rules)
	if err != nil {
		return Applied{}, err
	}
	return e.writeIn(ctx, tx, head, set)
}

// follows checks that a block number is above the head.
func follows(head BlockHeader, block uint64) error {
	if !head.Empty && block <= head.Number {
		return fmt.Errorf("block %d: %w, which is %d", block, ErrBlockOrder, head.Number)
	}
	return nil
}

// writeIn writes a changeset and its block inside a transaction.
func (e *Entities) writeIn(ctx context.Context, tx *entityTx, head BlockHeader, set entity.Changeset) (Applied, error) {
	// Compute the digest concurrently, because most of it is hashing payloads.
	digest := make(chan entity.Digest, 1)
	go func() { digest <- head.Digest.Next(set) }()
	var err error
	if len(set.Changes) > 0 {
		var w layout.Writer
		if w, err = tx.writer(ctx); err == nil {
			err = w.Write(ctx, set)
		}
	}
	next := BlockHeader{Number: set.Block, Digest: <-digest, Hash: set.Hash, Time: set.Time} // from here on the set is the caller's again

	// Record the block.
	if err == nil {
		err = e.db.meta.Exec(ctx, tx.Tx, "insert_block", int64(next.Number), next.record())
	}
	if err == nil {
		err = e.db.meta.raiseHorizon(ctx, tx, set.Horizon)
	}
	if err != nil {
		return Applied{}, fmt.Errorf("block %d: %w", set.Block, err)
	}
	return Applied{Head: next, Blocks: 1, Changes: len(set.Changes)}, nil
}
