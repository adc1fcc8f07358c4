package bench

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

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

	// Loop, if not nil, says how many blocks there are, beside For.
	Loop Loop
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

// Commits applies blocks as they arrive and records latencies from the scheduled
// starts. It ends early, without an error, when Blocks does.
func Commits(ctx context.Context, ents *store.Entities, cfg PacedConfig) (*Paced, error) {
	if cfg.Loop == nil {
		cfg.Loop = while(func() bool { return true })
	}
	done := &Paced{Outcome: new(pace.Outcome)}
	observe := cfg.Observe
	cfg.Observe = func(b *store.Block, took time.Duration) {
		done.count(b)
		if observe != nil {
			observe(b, took)
		}
	}
	w, stop := newBlockWriter(ents, cfg)
	defer stop()
	err := w.draw()
	if err == nil {
		done.Outcome, err = cfg.loop(ctx, func(ctx context.Context, s *pace.Step) error {
			s.Kind = "commit"
			if !w.more() {
				return pace.ErrDone
			}
			return w.apply(ctx, func(time.Duration) { s.Stop() })
		})
	}
	if err == nil && cfg.Expect != nil {
		err = cfg.Expect.Check(ctx, ents)
	}
	if err != nil {
		err = fmt.Errorf("commits: %w", err)
	}
	return done, err
}

func (cfg *PacedConfig) loop(ctx context.Context, apply pace.Op) (*pace.Outcome, error) {
	loop := pace.Config{Duration: cfg.For, WarmUp: cfg.WarmUp, Start: cfg.Start, Drain: drain}
	if cfg.Every > 0 {
		loop.Arrivals = pace.Fixed(float64(time.Second) / float64(cfg.Every))
	}
	return pace.Loop(ctx, loop, apply)
}

// drain is how long what is due may still start when the time is over: what an
// engine is behind by then counts as skipped.
const drain = time.Second

// count adds whole versions.
func (p *Paced) count(b *store.Block) {
	for i := range b.Ops {
		if whole(&b.Ops[i]) {
			p.Entities++
		}
	}
	p.Rows += uint64(RowsOf(b))
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

// Combined runs commits and readers at the same time, from a common beginning. When
// one ends with an error, so does the other. Readers that are told no end of their own
// end with the commits.
func Combined(ctx context.Context, ents *store.Entities, writes PacedConfig, reads ReadMixConfig) (*Paced, *pace.Outcome, error) {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now().Add(50 * time.Millisecond)
	var head atomic.Uint64
	var ended atomic.Bool
	head.Store(reads.Mix.Head())
	observe := writes.Observe
	writes.Start, writes.Mix = start, reads.Mix
	writes.Observe = func(b *store.Block, took time.Duration) {
		head.Store(b.Number)
		if observe != nil {
			observe(b, took)
		}
	}
	reads.Start, reads.Head = start, head.Load
	if reads.For == 0 && reads.Reads == 0 {
		reads.Loop = while(func() bool { return !ended.Load() })
	}
	var read *pace.Outcome
	group.Go(func() (err error) {
		read, err = ReadMix(ctx, ents, reads)
		return err
	})
	wrote, err := Commits(ctx, ents, writes)
	ended.Store(true)
	group.Go(func() error { return err })
	err = group.Wait()
	return wrote, read, err
}
