package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	next := turns(cfg.Loop)
	read := func(ctx context.Context, s *pace.Step) error {
		if !next() {
			return pace.ErrDone
		}
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

// turns asks a loop for several clients, and not again when it has ended; nil goes on
// for ever.
func turns(loop Loop) func() bool {
	var mu sync.Mutex
	ended := false
	return func() bool {
		if loop == nil {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		ended = ended || !loop.Loop()
		return !ended
	}
}

func (cfg *ReadMixConfig) loop(ctx context.Context, clients int, read pace.Op) (*pace.Outcome, error) {
	loop := pace.Config{
		Workers: clients, Duration: cfg.For, N: cfg.Reads, WarmUp: cfg.WarmUp, Seed: cfg.Seed, Start: cfg.Start,
		MaxLag: maxLag, Drain: drain,
	}
	if cfg.Rate > 0 {
		loop.Arrivals = pace.Poisson(cfg.Rate, cfg.Seed)
	}
	if cfg.Rate > frugalFrom {
		loop.Wait = pace.Frugal
	}
	return pace.Loop(ctx, loop, read)
}

// frugalFrom is from when on to spin for the last moments before an arrival would not
// leave the cores to the engine.
const frugalFrom = 2_000 // arrivals a second

// maxLag is when a reader that cannot be served gives up, so that a rate beyond
// the engine's ends in time; it shows as skipped.
const maxLag = 2 * time.Second
