package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
)

// PacedConfig is blocks that arrive at fixed intervals, as those of a chain do,
// whether the one before is committed or not.
type PacedConfig struct {
	Blocks iter.Seq2[store.Block, error]
	Every  time.Duration // between arrivals; zero is a closed loop

	For    time.Duration
	WarmUp time.Duration
	Start  time.Time // common beginning with readers; zero is now

	// Expect, if not nil, follows the blocks and checks each head; it is what the
	// store holds before the first.
	Expect *Expectation

	// Mix, if not nil, follows each block before it is applied, for readers
	// beside.
	Mix mix.Reads

	// Observe, if not nil, is told of each commit, when the time no longer counts.
	Observe func(b *store.Block, took time.Duration)

	head *atomic.Uint64 // if not nil, set to each block that is committed
}

// Paced is what paced commits did.
type Paced struct {
	*pace.Outcome
	Rows     uint64 // of the versions that blocks created or replaced whole
	Entities uint64
}

// RowRate returns the rows a second over the whole run.
func (p *Paced) RowRate() float64 {
	if p.Elapsed <= 0 {
		return 0
	}
	return float64(p.Rows) / p.Elapsed.Seconds()
}

// kindCommit is what commits are called in results.
const kindCommit = "commit"

// Commits applies blocks as they arrive and records latencies from the scheduled
// starts. It ends early, without an error, when Blocks does.
func Commits(ctx context.Context, ents *store.Entities, cfg PacedConfig) (*Paced, error) {
	w := &blockWriter{cfg: cfg, ents: ents, done: &Paced{}}
	var stop func()
	w.next, stop = iter.Pull2(cfg.Blocks)
	defer stop()
	err := w.draw()
	if err == nil {
		w.done.Outcome, err = w.loop(ctx)
	}
	if w.done.Outcome == nil {
		w.done.Outcome = new(pace.Outcome)
	}
	if err != nil {
		return w.done, fmt.Errorf("commits: %w", err)
	}
	if cfg.Expect != nil {
		err = cfg.Expect.Check(ctx, ents)
	}
	return w.done, err
}

// blockWriter applies one block after the other. The next one is made when the
// last is committed, so that it is there when its time comes.
type blockWriter struct {
	cfg  PacedConfig
	ents *store.Entities
	next func() (store.Block, error, bool)
	done *Paced

	block store.Block
	ended bool
}

func (w *blockWriter) loop(ctx context.Context) (*pace.Outcome, error) {
	if w.cfg.Every == 0 {
		return pace.ClosedLoop(ctx, pace.ClosedConfig{Duration: w.cfg.For, WarmUp: w.cfg.WarmUp, Start: w.cfg.Start}, w.apply)
	}
	return pace.OpenLoop(ctx, pace.OpenConfig{
		Arrivals: pace.Fixed(float64(time.Second) / float64(w.cfg.Every)),
		Duration: w.cfg.For, WarmUp: w.cfg.WarmUp, Start: w.cfg.Start, Drain: drain,
	}, w.apply)
}

// drain is how long what is due may still start when the time is over: what an
// engine is behind by then counts as skipped.
const drain = time.Second

func (w *blockWriter) apply(ctx context.Context, s *pace.Step) error {
	s.Kind = kindCommit
	if w.ended {
		return pace.ErrDone
	}
	start := time.Now()
	applied, err := w.ents.Apply(ctx, w.block)
	s.Stop()
	if err != nil {
		return err
	}
	if w.cfg.head != nil {
		w.cfg.head.Store(w.block.Number)
	}
	if w.cfg.Observe != nil {
		w.cfg.Observe(&w.block, time.Since(start))
	}
	w.count()
	if x := w.cfg.Expect; x != nil {
		if err := follow(x, &w.block, applied.Head); err != nil {
			return err
		}
	}
	return w.draw()
}

// count adds the rows of whole versions.
func (w *blockWriter) count() {
	for i := range w.block.Ops {
		if whole(&w.block.Ops[i]) {
			w.done.Entities++
		}
	}
	w.done.Rows += uint64(RowsOf(&w.block))
}

func whole(op *store.Op) bool { return op.Kind == store.Create || op.Kind == store.Update }

// RowsOf returns the rows of the versions that a block creates or replaces whole,
// in a layout with a row for each attribute.
func RowsOf(b *store.Block) int {
	rows := 0
	for i := range b.Ops {
		if op := &b.Ops[i]; whole(op) {
			rows += len(op.StringAttributes) + syntheticStrings + len(op.NumericAttributes) + syntheticNumbers + 1
		}
	}
	return rows
}

// draw takes the next block and tells the mix of it.
func (w *blockWriter) draw() error {
	b, err, more := w.next()
	if !more {
		w.ended = true
		return nil
	}
	w.block = b
	if err == nil && w.cfg.Mix != nil {
		err = w.cfg.Mix.Advance(&b)
	}
	return err
}

// Combined runs commits and readers at the same time, from a common beginning.
// When one ends with an error, so does the other.
func Combined(ctx context.Context, ents *store.Entities, writes PacedConfig, reads ReadMixConfig) (*Paced, *pace.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now().Add(50 * time.Millisecond)
	writes.Start, reads.Start = start, start
	writes.Mix, writes.head = reads.Mix, new(atomic.Uint64)
	writes.head.Store(reads.Mix.Head())
	reads.Head = writes.head.Load
	var read *pace.Outcome
	var readErr error
	var beside sync.WaitGroup
	beside.Go(func() {
		if read, readErr = ReadMix(ctx, ents, reads); readErr != nil {
			cancel()
		}
	})
	wrote, err := Commits(ctx, ents, writes)
	if err != nil {
		cancel()
	}
	beside.Wait()
	if readErr != nil && errors.Is(err, context.Canceled) {
		err = nil // of the readers' making
	}
	return wrote, read, errors.Join(err, readErr)
}
