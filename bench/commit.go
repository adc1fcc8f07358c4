package bench

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/varvedb/varve/store"
)

// CommitConfig is a closed loop of commits: the next block is applied when the
// one before is durable.
type CommitConfig struct {
	// Blocks are applied in order. They are drawn while the timer is stopped.
	Blocks iter.Seq2[store.Block, error]

	// Expect is what the store holds before the first block. It follows the
	// blocks, and the store is checked against it.
	Expect *Expectation

	// Loop says how many blocks to apply; nil means one. The workload also
	// ends when Blocks does, and leaves the timer stopped then.
	Loop Loop

	// Settle says that what the layout has put off is done, and timed, at the end.
	Settle bool

	// Observe, if not nil, is told how long each block took. The block is valid
	// until it returns.
	Observe func(b *store.Block, took time.Duration)
}

// readBack is how many entities of the last block Commit reads again.
const readBack = 8

// Commit applies blocks and records the latency of each Apply. It checks each
// head with its digest, and at the end the visible entities, the rows and some
// whole entities; it fails with ErrMismatch when anything differs.
func Commit(ctx context.Context, ents *store.Entities, cfg CommitConfig) (Result, error) {
	res := NewResult()
	last, err := commit(ctx, ents, cfg, &res)
	if err == nil {
		err = cfg.Expect.Check(ctx, ents)
	}
	if err == nil {
		err = checkCreated(ctx, ents, last)
	}
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
	}
	return res, err
}

// commit is the loop. It returns the last block that was applied.
func commit(ctx context.Context, ents *store.Entities, cfg CommitConfig, res *Result) (last store.Block, err error) {
	w, stop := newBlockWriter(ents, PacedConfig{Blocks: cfg.Blocks, Expect: cfg.Expect, Loop: orOnce(cfg.Loop), Observe: cfg.Observe})
	defer stop()
	rows := cfg.Expect.Counts().Rows()
	for err = w.draw(); err == nil && w.more(); {
		last = w.block
		err = w.apply(ctx, res.Latency.Record)
	}
	res.Entities, res.Rows = w.changes, cfg.Expect.Counts().Rows()-rows
	if cfg.Settle && err == nil {
		start := time.Now()
		err = ents.Settle(ctx)
		res.Settle = time.Since(start)
	}
	return last, err
}

// blockWriter applies one block after the other. The next one is made when the
// last is committed, so that it is there when its time comes.
type blockWriter struct {
	PacedConfig // of which it needs what is to be done, and how often
	ents        *store.Entities
	next        func() (store.Block, error, bool)

	block   store.Block
	ended   bool
	changes uint64 // of all blocks
}

func newBlockWriter(ents *store.Entities, cfg PacedConfig) (w *blockWriter, stop func()) {
	w = &blockWriter{PacedConfig: cfg, ents: ents}
	w.next, stop = iter.Pull2(cfg.Blocks)
	return w, stop
}

// more tells whether there is a block to apply.
func (w *blockWriter) more() bool { return !w.ended && w.Loop.Loop() }

// draw takes the next block and tells the mix of it.
func (w *blockWriter) draw() (err error) {
	var more bool
	w.block, err, more = w.next()
	w.ended = !more
	if more && err == nil && w.Mix != nil {
		err = w.Mix.Advance(&w.block)
	}
	return err
}

// apply applies the block that was drawn, tells how long that took, checks the head
// and draws the next, both with the timer stopped.
func (w *blockWriter) apply(ctx context.Context, took func(time.Duration)) error {
	start := time.Now()
	applied, err := w.ents.Apply(ctx, w.block)
	elapsed := time.Since(start)
	took(elapsed)
	if err != nil {
		return err
	}
	w.Loop.StopTimer()
	w.changes += uint64(applied.Changes)
	if w.Observe != nil {
		w.Observe(&w.block, elapsed)
	}
	if w.Expect != nil {
		if err := w.Expect.Apply(&w.block); err != nil {
			return err
		}
		if err := sameHead(applied.Head, w.Expect.head); err != nil {
			return err
		}
	}
	if err = w.draw(); !w.ended {
		w.Loop.StartTimer()
	}
	return err
}

// checkCreated reads entities of a block again and compares them with the
// operations that made them.
func checkCreated(ctx context.Context, ents *store.Entities, b store.Block) error {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return err
	}
	defer snap.Close()
	left := readBack
	for i := range b.Ops {
		op := &b.Ops[i]
		later := func(o store.Op) bool { return o.Key == op.Key }
		if left == 0 || !whole(op) || slices.ContainsFunc(b.Ops[i+1:], later) {
			continue
		}
		left--
		if err := newWant(op, b.Number).check(snap.Get(ctx, op.Key)); err != nil {
			return err
		}
	}
	return nil
}
