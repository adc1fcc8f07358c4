package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// LoadOptions say how a stream of blocks is committed. The zero value is
// usable.
type LoadOptions struct {
	// Changes is the number of changed entities after which a transaction is
	// committed; zero means 1,000. With 1 each block has its own.
	Changes int

	// Progress, if given, is called after each commit with the head.
	Progress func(Loaded)
}

// Loaded counts what a load has done so far.
type Loaded struct {
	Head    BlockHead
	Blocks  int // applied
	Changes int // entities changed
	Skipped int // blocks that the store held already
}

// loadBytes is the payload after which a transaction is committed, whatever
// LoadOptions.Changes says.
const loadBytes = 16 << 20

// Load applies a stream of blocks, several in one transaction. Blocks that are
// not above the head are skipped, so that an interrupted load can be repeated
// with the same stream. When the stream fails or a block does not fit, the
// blocks before it are kept; when the engine fails or ctx is done, the store is
// at the last block that Progress was told of. It fails with ErrConflict when somebody else
// writes blocks, or rewinds, between two of its transactions.
func (e *Entities) Load(ctx context.Context, blocks iter.Seq2[Block, error], opts LoadOptions) (Loaded, error) {
	l, err := e.newLoader(ctx, opts)
	if err != nil {
		return Loaded{}, fmt.Errorf("load: %w", err)
	}
	defer l.release()
	for b, err := range blocks {
		if err != nil {
			return l.keep(ctx, err)
		}
		if err := l.block(ctx, &b); err != nil {
			return l.refuse(ctx, err)
		}
	}
	return l.finish(ctx)
}

// Import writes a history of changesets, as entity.History makes it from the
// versions of another store. Like Load it can be repeated: of the changesets
// that the store holds already it checks that they are the same, and fails with
// ErrHistory when they are not.
func (e *Entities) Import(ctx context.Context, history iter.Seq2[entity.Changeset, error], opts LoadOptions) (Loaded, error) {
	l, err := e.newLoader(ctx, opts)
	if err != nil {
		return Loaded{}, fmt.Errorf("import: %w", err)
	}
	defer l.release()
	for set, err := range history {
		if err != nil {
			return l.keep(ctx, err)
		}
		if err := l.changeset(ctx, set); err != nil {
			return l.refuse(ctx, err)
		}
	}
	if err := l.checkSkipped(ctx); err != nil {
		return l.abort(err)
	}
	return l.finish(ctx)
}

// loader applies blocks with a transaction for several of them.
type loader struct {
	ents    *Entities
	opts    LoadOptions
	tx      driver.Tx // nil between transactions
	start   BlockHead // head when the load began
	skipped Digest    // digest over the changesets that were skipped
	last    uint64    // the last of these
	head    BlockHead // inside tx
	done    Loaded    // committed
	next    Loaded    // with what tx holds
	changes int       // in tx
	bytes   int       // of payload in tx
}

func (e *Entities) newLoader(ctx context.Context, opts LoadOptions) (*loader, error) {
	if opts.Changes <= 0 {
		opts.Changes = 1000
	}
	head, err := e.Head(ctx)
	if err != nil {
		return nil, err
	}
	l := &loader{ents: e, opts: opts, start: head, head: head}
	l.done.Head, l.next.Head = head, head
	return l, nil
}

func (l *loader) held(block uint64) bool { return !l.start.Empty && block <= l.start.Block }

func (l *loader) block(ctx context.Context, b *Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.held(b.Number) {
		l.next.Skipped++
		return nil
	}
	if err := l.ents.admissible(b); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	applied, err := l.ents.applyIn(context.WithoutCancel(ctx), l.tx, l.head, b)
	if err != nil {
		return err
	}
	for i := range b.Ops {
		l.bytes += len(b.Ops[i].Content)
	}
	return l.applied(ctx, applied)
}

func (l *loader) changeset(ctx context.Context, set entity.Changeset) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.held(set.Block) {
		l.next.Skipped++
		l.skipped, l.last = l.skipped.Next(set), set.Block
		return nil
	}
	if l.next.Blocks == 0 && l.skipped != l.start.Digest {
		return l.otherHistory(l.start)
	}
	if err := follows(l.head, set.Block); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	if err := l.complete(context.WithoutCancel(ctx), set); err != nil {
		return err
	}
	applied, err := l.ents.writeIn(context.WithoutCancel(ctx), l.tx, l.head, set)
	if err != nil {
		return err
	}
	return l.applied(ctx, applied)
}

// checkSkipped compares a source that had nothing new with what the store holds
// up to the source's last block. Where there was something new, changeset has
// compared.
func (l *loader) checkSkipped(ctx context.Context) error {
	if l.next.Skipped == 0 || l.next.Blocks > 0 {
		return nil
	}
	return l.ents.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		held, err := l.ents.meta.headAt(ctx, q, l.last)
		if err == nil && held.Digest != l.skipped {
			err = l.otherHistory(held)
		}
		return err
	})
}

func (l *loader) otherHistory(held BlockHead) error {
	return fmt.Errorf("%w: up to block %d the store holds digest %s, the source %s", ErrHistory, held.Block, held.Digest, l.skipped)
}

// complete puts the stored versions in place of the old ones of a changeset,
// which has only their keys and first blocks.
func (l *loader) complete(ctx context.Context, set entity.Changeset) error {
	needs := map[Key]entity.Need{}
	for i := range set.Changes {
		if set.Changes[i].Old != nil {
			needs[set.Changes[i].Key] = 0
		}
		if set.Changes[i].New != nil {
			l.bytes += len(set.Changes[i].New.Content)
		}
	}
	if len(needs) == 0 {
		return nil
	}
	prior, err := l.ents.layout.Prior(ctx, l.tx, set.Block, needs)
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

// begin starts a transaction unless one is open. Between two of them somebody
// else may have written: going on would put blocks below the head, or above
// ones that are gone.
func (l *loader) begin(ctx context.Context) (err error) {
	if l.tx != nil {
		return nil
	}
	l.ents.maintainer.hold(ctx)
	l.ents.maintainer.enter()
	defer l.ents.maintainer.leave()
	if l.tx, err = l.ents.db.engine.Begin(ctx); err != nil {
		return err
	}
	head, err := l.ents.meta.head(context.WithoutCancel(ctx), l.tx)
	if err == nil && head != l.head {
		l.done.Head = head
		err = fmt.Errorf("%w: another writer moved the head from block %d to %d meanwhile; repeat to go on from there", ErrConflict, l.head.Block, head.Block)
	}
	return err
}

// applied counts a block and commits when the transaction is large enough.
func (l *loader) applied(ctx context.Context, a Applied) error {
	l.head = a.Head
	l.next.Head = a.Head
	l.next.Blocks++
	l.next.Changes += a.Changes
	l.changes += max(a.Changes, 1)
	if l.changes < l.opts.Changes && l.bytes < loadBytes {
		return nil
	}
	return l.commit(ctx)
}

func (l *loader) commit(ctx context.Context) error {
	if l.tx == nil {
		return nil
	}
	tx := l.tx
	l.tx = nil
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	l.ents.maintainer.wrote()
	l.ents.grown(ctx, l.changes)
	l.changes, l.bytes = 0, 0
	l.done = l.next
	if l.opts.Progress != nil {
		l.opts.Progress(l.done)
	}
	return nil
}

func (l *loader) finish(ctx context.Context) (Loaded, error) {
	if err := l.commit(ctx); err != nil {
		return l.abort(err)
	}
	l.done.Skipped = l.next.Skipped
	if l.done.Changes == 0 {
		return l.done, nil
	}
	// What is loaded is held already; what helps to read it is made now, where
	// it is not in the way.
	return l.done, l.ents.Settle(ctx)
}

// release rolls the open transaction back: after an error, which says more than
// one of the rollback, or when the stream of blocks panics.
func (l *loader) release() {
	if l.tx != nil {
		_ = l.tx.Rollback()
		l.tx = nil
	}
}

// refuse ends a load at a block that does not fit: what was wrong with it was
// found before anything of it was written, so the blocks before it are kept.
// After any other error the transaction cannot be trusted.
func (l *loader) refuse(ctx context.Context, err error) (Loaded, error) {
	var op *OpError
	if errors.As(err, &op) || errors.Is(err, ErrBlockOrder) || errors.Is(err, ErrInvalid) {
		return l.keep(ctx, err)
	}
	return l.abort(err)
}

// keep ends a load with the blocks so far.
func (l *loader) keep(ctx context.Context, err error) (Loaded, error) {
	if ctx.Err() == nil {
		err = errors.Join(err, l.commit(ctx))
	}
	return l.abort(err)
}

// abort gives up the open transaction and says where the store is.
func (l *loader) abort(err error) (Loaded, error) {
	l.release()
	if l.done.Head.Empty {
		return l.done, fmt.Errorf("load stopped, the store is empty: %w", err)
	}
	return l.done, fmt.Errorf("load stopped, the store is at block %d: %w", l.done.Head.Block, err)
}

// History returns the store's content as changesets, for Import into another
// store. It reads two snapshots at once. A pruned store gives what is left: its
// digest is another then.
func (e *Entities) History(ctx context.Context) iter.Seq2[entity.Changeset, error] {
	return func(yield func(entity.Changeset, error) bool) {
		openings, err := e.At(ctx, Head)
		if err != nil {
			yield(entity.Changeset{}, err)
			return
		}
		defer openings.Close()
		closings, err := e.At(ctx, openings.Block())
		if err != nil {
			yield(entity.Changeset{}, err)
			return
		}
		defer closings.Close()
		next := uint64(0) // lowest block that was not given yet
		for set, err := range entity.History(e.layout.Openings(ctx, openings.reader), e.layout.Closings(ctx, closings.reader)) {
			next = set.Block + 1
			if !yield(set, err) || err != nil {
				return
			}
		}
		if head := openings.head; !head.Empty && next <= head.Block {
			yield(entity.Changeset{Block: head.Block}, nil)
		}
	}
}
