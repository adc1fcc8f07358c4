package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
)

// ReadMixConfig is clients that read by a mix, in a closed loop or at a rate.
// One of Duration and Reads is set.
type ReadMixConfig struct {
	Mix     mix.Reads
	Clients int           // each with snapshots of its own; zero means one
	Rate    float64       // arrivals a second by a Poisson process, for all clients together; zero is a closed loop
	For     time.Duration // after the warm-up
	Reads   int64         // after the warm-up
	WarmUp  time.Duration // reads in it are done and not recorded
	Seed    uint64
	Start   time.Time // common beginning with another loop; zero is now

	// Loop, if not nil, says how many reads there are instead of For and Reads.
	// It is asked by one client at a time.
	Loop Loop

	// Head, where blocks are applied meanwhile, returns the last one that is
	// committed; what is read by key is drawn from the entities of it.
	Head func() uint64
}

// ReadMix reads and records the latency of each read by kind: snapshot, read and
// the end of the snapshot, without the comparison with the right answer, which
// follows. In an open loop latency is from the scheduled start. It fails with
// mix.ErrMismatch at the first wrong answer.
func ReadMix(ctx context.Context, ents *store.Entities, cfg ReadMixConfig) (*pace.Outcome, error) {
	clients := max(cfg.Clients, 1)
	readers, streams := make([]*mix.Reader, clients), make([]mix.Stream, clients)
	for i := range readers {
		readers[i] = mix.NewReader(ents)
		streams[i] = cfg.Mix.Stream(mix.StreamOptions{HeadOnly: !ents.Temporal(), Head: cfg.Head})
	}
	read := func(ctx context.Context, s *pace.Step) error {
		op := streams[s.Worker](s.Rand)
		s.Kind = op.Kind
		answer, err := readers[s.Worker].Do(ctx, op)
		s.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w", op.Kind, err)
		}
		return cfg.Mix.Check(op, answer)
	}
	out, err := cfg.loop(ctx, clients, read)
	if err != nil {
		return out, fmt.Errorf("read mix %s: %w", cfg.Mix.Name(), err)
	}
	return out, nil
}

func (cfg *ReadMixConfig) loop(ctx context.Context, clients int, read pace.Op) (*pace.Outcome, error) {
	loop := pace.Config{
		Workers: clients, Duration: cfg.For, N: cfg.Reads, WarmUp: cfg.WarmUp, Seed: cfg.Seed, Start: cfg.Start,
		MaxLag: maxLag, Drain: drain, Frugal: cfg.Rate > frugalFrom,
	}
	if cfg.Loop != nil {
		loop.More = cfg.Loop.Loop
	}
	if cfg.Rate > 0 {
		loop.Arrivals = pace.Poisson(cfg.Rate, cfg.Seed)
	}
	return pace.Loop(ctx, loop, read)
}

// frugalFrom is from when on to spin for the last moments before an arrival would not
// leave the cores to the engine.
const frugalFrom = 2_000 // arrivals a second

// maxLag is when a reader that cannot be served gives up, so that a rate beyond
// the engine's ends in time; it shows as skipped.
const maxLag = 2 * time.Second

// Combined runs commits and readers at the same time, from a common beginning. When
// one ends with an error, so does the other. Readers that are told no end of their own
// end with the commits.
func Combined(ctx context.Context, ents *store.Entities, writes CommitConfig, reads ReadMixConfig) (*Paced, *pace.Outcome, error) {
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
