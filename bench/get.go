package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/store"
)

// GetConfig is a closed loop of reads by key on one open snapshot at the head.
type GetConfig struct {
	Profile Profile
	Of      GenOptions // the stream that created the entities, none changed since
	Seed    uint64     // chooses the entities
	Loop    Loop       // how many reads; nil means one
}

// sample is how many different entities are read, in random order again and again.
const sample = 4096

// Get reads existing entities whole and records the latency of each Get,
// without the comparison with what it must be, which follows. It fails with
// ErrMismatch when an entity differs.
func Get(ctx context.Context, ents *store.Entities, cfg GetConfig) (Result, error) {
	res := NewResult()
	wants, err := cfg.wants()
	if err != nil {
		return res, fmt.Errorf("get: %w", err)
	}
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return res, fmt.Errorf("get: %w", err)
	}
	defer snap.Close()
	choice := newRandom(cfg.Seed)
	for loop := orOnce(cfg.Loop); loop.Loop(); {
		w := wants[choice.IntN(len(wants))]
		start := time.Now()
		e, err := snap.Get(ctx, w.Key)
		res.Latency.Record(time.Since(start))
		if err := w.check(e, err); err != nil {
			return res, fmt.Errorf("get: %w", err)
		}
		res.Entities++
	}
	res.Rows = res.Entities * uint64(cfg.Profile.Rows())
	return res, nil
}

// wants returns what the sampled entities must be.
func (cfg *GetConfig) wants() ([]*want, error) {
	g := newGenerator(cfg.Profile, cfg.Of)
	if err := cfg.Of.check(); err != nil {
		return nil, err
	}
	n := min(sample, g.o.Entities)
	if n == 0 {
		return nil, fmt.Errorf("%w: no entities to read", store.ErrInvalid)
	}
	choice := newRandom(cfg.Seed)
	choice.at(sampleStream, 0, 0)
	wants := make([]*want, n)
	for i, nth := range choice.distinct(n, g.o.Entities) {
		op := g.op(store.Create, nth%g.o.PerBlock, uint64(g.o.Skip+nth), 0)
		wants[i] = newWant(&op, g.o.Start+uint64(nth/g.o.PerBlock))
	}
	return wants, nil
}
