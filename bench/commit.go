package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	if err != nil {
		return res, fmt.Errorf("commit: %w", err)
	}
	if err := cfg.Expect.Check(ctx, ents); err != nil {
		return res, fmt.Errorf("commit: %w", err)
	}
	if err := checkCreated(ctx, ents, last); err != nil {
		return res, fmt.Errorf("commit: %w", err)
	}
	return res, nil
}

// commit is the loop. It returns the last block that was applied.
func commit(ctx context.Context, ents *store.Entities, cfg CommitConfig, res *Result) (last store.Block, err error) {
	next, stop := iter.Pull2(cfg.Blocks)
	defer stop()
	loop := orOnce(cfg.Loop)
	rows := cfg.Expect.Counts().Rows()
	b, err, more := next()
	for more && err == nil && loop.Loop() {
		start := time.Now()
		applied, applyErr := ents.Apply(ctx, b)
		took := time.Since(start)
		res.Latency.Record(took)
		if applyErr != nil {
			return b, applyErr
		}
		loop.StopTimer()
		res.Entities += uint64(applied.Changes)
		if cfg.Observe != nil {
			cfg.Observe(&b, took)
		}
		if err := follow(cfg.Expect, &b, applied.Head); err != nil {
			return b, err
		}
		last = b
		if b, err, more = next(); more {
			loop.StartTimer()
		}
	}
	res.Rows = cfg.Expect.Counts().Rows() - rows
	if cfg.Settle && err == nil {
		start := time.Now()
		err = ents.Settle(ctx)
		res.Settle = time.Since(start)
	}
	return last, err
}

func follow(x *Expectation, b *store.Block, head store.BlockHead) error {
	if err := x.Apply(b); err != nil {
		return err
	}
	return x.sameHead(head)
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
		if left == 0 || op.Kind != store.Create && op.Kind != store.Update || changedLater(b.Ops[i+1:], op.Key) {
			continue
		}
		left--
		e, err := snap.Get(ctx, op.Key)
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("%w: %w", ErrMismatch, err)
		}
		if err != nil {
			return err
		}
		if err := newWant(op, b.Number).check(e); err != nil {
			return err
		}
	}
	return nil
}

func changedLater(ops []store.Op, key store.Key) bool {
	for i := range ops {
		if ops[i].Key == key {
			return true
		}
	}
	return false
}
