package store

import (
	"context"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store/entity"
)

// prefix compares the blocks that a load skips with the stored ones. It reads
// the store's history once, in parallel with the blocks.
type prefix struct {
	ents     *Entities
	prunedTo uint64 // up to this block, versions may be missing because of pruning
	set      entity.Changeset
	more     bool // set is the next one
	skipping bool // a block was skipped: from now on the stream must have every stored block
	next     func() (entity.Changeset, error, bool)
	stop     func()
}

func newPrefix(ctx context.Context, e *Entities) (*prefix, error) {
	p := &prefix{ents: e}
	p.next, p.stop = iter.Pull2(e.History(ctx))
	if err := p.advance(); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *prefix) advance() (err error) {
	p.set, err, p.more = p.next()
	p.prunedTo = max(p.prunedTo, p.set.Horizon) // which the first one has
	return err
}

// confirm checks a skipped block.
func (p *prefix) confirm(b *entity.Block) error {
	if err := p.reach(b.Number); err != nil {
		return err
	}
	set := entity.Changeset{Block: b.Number}
	if p.more && p.set.Block == b.Number {
		set = p.set
	}
	err := b.Validate()
	if err == nil {
		missing := b.Number <= p.prunedTo && (p.prunedTo > 0 || !p.ents.Temporal()) // a store that was not pruned has block 0
		err = b.Confirm(set, p.ents.rules, missing)
	}
	if err != nil {
		return fmt.Errorf("block %d: %w: the store holds another block of this number: %w", b.Number, ErrHistory, err)
	}
	if p.more && p.set.Block == b.Number {
		return p.advance()
	}
	return nil
}

// reach advances to a block of the stream. The store may have earlier blocks
// than the stream, and empty blocks that the stream lacks, but no others.
func (p *prefix) reach(block uint64) error {
	for p.more && p.set.Block < block {
		if p.skipping && len(p.set.Changes) > 0 {
			return fmt.Errorf("block %d: %w: the store has it, what is loaded goes on with block %d", p.set.Block, ErrHistory, block)
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	p.skipping = true
	return nil
}

// end checks, before the first new block, that the store has no further blocks.
func (p *prefix) end(block uint64) error {
	defer p.stop()
	return p.reach(block)
}
