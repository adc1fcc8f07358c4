package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// LoadOptions configure how a stream of blocks is committed.
type LoadOptions struct {
	// Changes is the number of changed entities after which a transaction is
	// committed; zero means 1,000. With 1 every block gets its own transaction.
	Changes int

	// Progress, if given, is called after each commit with the head.
	Progress func(Applied)
}

// loadBytes is the payload size, in bytes, after which a transaction is
// committed, whatever LoadOptions.Changes is.
const loadBytes = 16 << 20

// Load applies a stream of blocks, several in one transaction. Blocks that are
// not above the head are skipped, so that an interrupted load can be repeated
// with the same stream. A skipped block is compared with the stored one: Load
// fails with ErrHistory when they differ, or when the store has a block that
// the stream lacks. Pruned versions are not compared. The comparison takes
// three readers until the first new block.
//
// When the stream fails or a block does not fit, the blocks before it are kept,
// and the error is the stream's or Apply's. When the engine fails or ctx ends,
// the store is at the last block that was passed to Progress. Load fails with
// ErrConflict when another writer applies or rewinds blocks between two of its
// transactions.
func (e *Entities) Load(ctx context.Context, blocks iter.Seq2[entity.Block, error], opts *LoadOptions) (Applied, error) {
	l, err := e.newLoader(ctx, opts)
	if err != nil {
		return Applied{}, fmt.Errorf("load: %w", err)
	}
	defer func() {
		if l.prefix != nil {
			l.prefix.stop() // and give back its readers
		}
	}()
	for b, err := range blocks {
		if err == nil {
			err = l.block(ctx, b)
		}
		if err != nil {
			return l.end(ctx, err)
		}
	}
	return l.finish(ctx)
}

// Import writes a history of changesets, such as entity.History makes from the
// versions of another store. Like Load it can be repeated: it compares the
// changesets that the store already has, and fails with ErrHistory when they
// differ.
func (e *Entities) Import(ctx context.Context, history iter.Seq2[entity.Changeset, error], opts *LoadOptions) (Applied, error) {
	l, err := e.newLoader(ctx, opts)
	if err != nil {
		return Applied{}, fmt.Errorf("import: %w", err)
	}
	for set, err := range history {
		if err == nil {
			err = l.changeset(ctx, set)
		}
		if err != nil {
			return l.end(ctx, err)
		}
	}
	if err := l.checkSkipped(ctx); err != nil {
		return l.stop(err)
	}
	return l.finish(ctx)
}

// loader applies blocks, several in a transaction. It takes them from the
// stream before it begins the transaction, because the producer of the stream
// may need the writer too, and the two would deadlock.
type loader struct {
	ents    *Entities
	opts    LoadOptions
	start   BlockHeader   // head when the load began
	skipped entity.Digest // digest over the changesets that were skipped
	last    BlockHeader   // last skipped block, as in the source
	prefix  *prefix       // compares the skipped blocks; nil before the first and after the last
	pending []step        // steps that are not written yet
	changes int           // maximum number of changes in pending
	bytes   int           // of payload in pending
	done    Applied       // committed or skipped
}

// step applies one block inside a transaction.
type step func(ctx context.Context, tx *entityTx, head BlockHeader) (Applied, error)

func (e *Entities) newLoader(ctx context.Context, opts *LoadOptions) (*loader, error) {
	l := &loader{ents: e}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.Changes <= 0 {
		l.opts.Changes = 1000
	}
	var err error
	l.start, err = e.Head(ctx)
	l.done.Head = l.start
	return l, err
}

func (l *loader) hasBlock(block uint64) bool { return !l.start.Empty && block <= l.start.Number }

func (l *loader) block(ctx context.Context, b entity.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.hasBlock(b.Number) && l.done.Blocks == 0 && len(l.pending) == 0 {
		return l.skip(ctx, &b)
	}
	if l.prefix != nil {
		err := l.prefix.end(b.Number)
		if l.prefix = nil; err != nil {
			return err
		}
	}
	if err := l.ents.admissible(&b); err != nil {
		return err
	}
	for i := range b.Ops {
		l.bytes += len(b.Ops[i].Content)
	}
	return l.add(ctx, len(b.Ops), func(ctx context.Context, tx *entityTx, head BlockHeader) (Applied, error) {
		return l.ents.applyIn(ctx, tx, head, &b, b.Needs())
	})
}

// skip compares a block that the store has.
func (l *loader) skip(ctx context.Context, b *entity.Block) (err error) {
	if l.prefix == nil {
		if l.prefix, err = newPrefix(ctx, l.ents); err != nil {
			return err
		}
	}
	if err := l.prefix.confirm(b); err != nil {
		return err
	}
	l.done.Skipped++
	return nil
}

func (l *loader) changeset(ctx context.Context, set entity.Changeset) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.hasBlock(set.Block) {
		l.done.Skipped++
		l.skipped = l.skipped.Next(set)
		l.last = BlockHeader{Number: set.Block, Digest: l.skipped, Hash: set.Hash}
		return nil
	}
	if l.done.Blocks == 0 && len(l.pending) == 0 && !l.last.agrees(l.start) {
		return l.otherHistory(l.start)
	}
	for i := range set.Changes {
		if set.Changes[i].New != nil {
			l.bytes += len(set.Changes[i].New.Content)
		}
	}
	return l.add(ctx, len(set.Changes), func(ctx context.Context, tx *entityTx, head BlockHeader) (Applied, error) {
		if err := follows(head, set.Block); err != nil {
			return Applied{}, err
		}
		if err := l.complete(ctx, tx, set); err != nil {
			return Applied{}, err
		}
		return l.ents.writeIn(ctx, tx, head, set)
	})
}

// add keeps a block, and writes the kept blocks when they fill a transaction.
func (l *loader) add(ctx context.Context, changes int, s step) error {
	l.pending = append(l.pending, s)
	l.changes += max(changes, 1)
	if l.changes < l.opts.Changes && l.bytes < loadBytes {
		return nil
	}
	return l.flush(ctx)
}

// checkSkipped compares a source without new blocks with the store, up to the
// source's last block. With new blocks, changeset has already compared.
func (l *loader) checkSkipped(ctx context.Context) error {
	if l.done.Skipped == 0 || l.done.Blocks > 0 || len(l.pending) > 0 {
		return nil
	}
	return l.ents.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		held, err := l.ents.db.meta.headAt(ctx, q, l.last.Number)
		if err == nil && !l.last.agrees(held) {
			err = l.otherHistory(held)
		}
		return err
	})
}

func (l *loader) otherHistory(held BlockHeader) error {
	return fmt.Errorf("%w: up to block %d the store holds digest %s and block hash %s, the source %s and %s",
		ErrHistory, held.Number, held.Digest, held.Hash, l.skipped, l.last.Hash)
}

// complete replaces the old versions in a changeset, which have only keys and
// first blocks, by the stored ones.
func (l *loader) complete(ctx context.Context, tx *entityTx, set entity.Changeset) error {
	needs := map[entity.Key]entity.Need{}
	for i := range set.Changes {
		if set.Changes[i].Old != nil {
			needs[set.Changes[i].Key] = 0
		}
	}
	prior, err := tx.prior(ctx, set.Block, needs)
	if err != nil {
		return fmt.Errorf("block %d: %w", set.Block, err)
	}
	for i := range set.Changes {
		c := &set.Changes[i]
		if c.Old == nil {
			continue
		}
		live := prior[c.Key].Live
		if live == nil || live.LastModifiedAtBlock != c.Old.LastModifiedAtBlock {
			return fmt.Errorf("block %d: %w: it ends a version of %s from block %d that the store does not hold", set.Block, ErrHistory, c.Key, c.Old.LastModifiedAtBlock)
		}
		c.Old = live
	}
	return nil
}

// flush writes the kept blocks in one transaction. When a block does not fit,
// the blocks before it are written anyway, because a block is checked before
// any of its rows is written. After any other error the transaction is rolled
// back.
func (l *loader) flush(ctx context.Context) error {
	if len(l.pending) == 0 {
		return nil
	}
	list := l.pending
	l.pending, l.changes, l.bytes = nil, 0, 0

	tx, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()

	// Apply the blocks until one fails.
	inner, blocks := context.WithoutCancel(ctx), &entityTx{Tx: tx, ents: l.ents}
	written := Applied{Head: l.done.Head}
	for i := range list {
		var applied Applied
		if err = ctx.Err(); err == nil {
			applied, err = list[i](inner, blocks, written.Head)
		}
		if err != nil {
			break
		}
		list[i] = nil // with the block that it holds
		written.Head = applied.Head
		written.Blocks++
		written.Changes += applied.Changes
	}
	if err != nil && !isRefusal(err) || written.Blocks == 0 {
		return err
	}

	// Commit them.
	mark := l.ents.db.mark()
	if failed := tx.Commit(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	l.ents.committed(ctx, mark, written)
	l.done.Head = written.Head
	l.done.Blocks += written.Blocks
	l.done.Changes += written.Changes
	if l.opts.Progress != nil {
		l.opts.Progress(l.done)
	}
	return err
}

// begin starts a transaction. It fails if another writer has written since the
// last one, because the next blocks would then not fit the head.
func (l *loader) begin(ctx context.Context) (tx driver.Tx, err error) {
	l.ents.maintainer.enter(ctx)
	defer l.ents.maintainer.leave()
	if tx, err = l.ents.db.engine.Begin(ctx); err != nil {
		return nil, err
	}
	err = driver.LiftTimeouts(ctx, tx)
	var head BlockHeader
	if err == nil {
		head, err = l.ents.db.meta.head(context.WithoutCancel(ctx), tx)
	}
	if err == nil && head != l.done.Head {
		err = fmt.Errorf("%w: another writer moved the head from block %d to %d meanwhile; repeat to go on from there", ErrConflict, l.done.Head.Number, head.Number)
		l.done.Head = head
	}
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// isRefusal reports whether an error means that a block does not fit.
func isRefusal(err error) bool {
	var op *entity.OpError
	return errors.As(err, &op) || errors.Is(err, ErrBlockOrder) || errors.Is(err, ErrInvalid)
}

func (l *loader) finish(ctx context.Context) (Applied, error) {
	if err := l.flush(ctx); err != nil {
		return l.stop(err)
	}
	if l.done.Changes == 0 && !l.ents.deferred.Load() {
		return l.done, nil
	}
	// The blocks are durable. Build the indexes for readers now, because no
	// reader waits yet.
	return l.done, l.ents.Flush(ctx)
}

// end ends a load and writes the kept blocks. If one of them fails, its error
// counts, because the load ended there.
func (l *loader) end(ctx context.Context, err error) (Applied, error) {
	if ctx.Err() == nil {
		err = cmp.Or(l.flush(ctx), err)
	}
	return l.stop(err)
}

// stop adds the store's position to an error.
func (l *loader) stop(err error) (Applied, error) {
	return l.done, fmt.Errorf("load stopped, the store is at %s: %w", l.done.Head, err)
}
