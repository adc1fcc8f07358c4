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
	"github.com/varvedb/varve/store/entity"
)

// ReadMixConfig is clients that read by a mix, in a closed loop or at a rate.
type ReadMixConfig struct {
	pace.Config // Workers are the clients, each with snapshots of its own; Rate is of all together

	Mix mix.Reads

	// Head, where blocks are applied meanwhile, returns the last one that is
	// committed; what is read by key is drawn from the entities of it.
	Head func() uint64
}

// ReadMix reads and records the latency of each read by kind: snapshot, read and
// the end of the snapshot, without the comparison with the right answer, which
// follows. In an open loop latency is from the scheduled start. It fails with
// mix.ErrMismatch at the first wrong answer.
func ReadMix(ctx context.Context, ents *store.Entities, cfg ReadMixConfig) (*pace.Outcome, error) {
	clients := max(cfg.Workers, 1)
	readers, streams := make([]*mix.Reader, clients), make([]mix.Stream, clients)
	for i := range readers {
		readers[i] = mix.NewReader(ents)
		streams[i] = cfg.Mix.Stream(mix.StreamOptions{HeadOnly: !ents.Temporal(), Head: cfg.Head})
	}
	out, err := pace.Loop(ctx, cfg.Config, func(ctx context.Context, s *pace.Step) error {
		op := streams[s.Worker](s.Rand)
		s.Kind = op.Kind
		answer, err := readers[s.Worker].Do(ctx, op)
		s.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w", op.Kind, err)
		}
		return cfg.Mix.Check(op, answer)
	})
	if err != nil {
		return out, fmt.Errorf("read mix %s: %w", cfg.Mix.Name(), err)
	}
	return out, nil
}

// Combined runs commits and readers at the same time, from a common beginning. When
// one ends with an error, so does the other. Readers that are told no end of their own
// end with the commits.
func Combined(ctx context.Context, ents *store.Entities, writes CommitConfig, reads ReadMixConfig) (Result, *pace.Outcome, error) {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now().Add(50 * time.Millisecond)
	var head atomic.Uint64
	var ended atomic.Bool
	head.Store(reads.Mix.Head())
	observe := writes.Observe
	writes.Start, writes.Mix = start, reads.Mix
	writes.Observe = func(b *entity.Block, took time.Duration) {
		head.Store(b.Number)
		if observe != nil {
			observe(b, took)
		}
	}
	reads.Start, reads.Head = start, head.Load
	if reads.Duration == 0 && reads.N == 0 {
		reads.More = func() bool { return !ended.Load() }
	}
	var read *pace.Outcome
	group.Go(func() (err error) {
		read, err = ReadMix(ctx, ents, reads)
		return err
	})
	wrote, err := Commit(ctx, ents, writes)
	ended.Store(true)
	group.Go(func() error { return err })
	err = group.Wait()
	return wrote, read, err
}
