package bench

import (
	"context"
	"fmt"

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
	wants, err := cfg.wants()
	if err != nil {
		return NewResult(), fmt.Errorf("get: %w", err)
	}
	choice := newRandom(cfg.Seed)
	res, err := atHead(ctx, ents, cfg.Loop, func(snap *store.Snapshot, res *Result) (err error) {
		w := wants[choice.IntN(len(wants))]
		var e *store.Entity
		err = res.Time(func() error { e, err = snap.Get(ctx, w.Key); return err })
		res.Entities++
		return w.check(e, err)
	})
	res.Rows = res.Entities * uint64(cfg.Profile.Rows())
	if err != nil {
		err = fmt.Errorf("get: %w", err)
	}
	return res, err
}

// atHead reads as often as a loop says on one open snapshot at the head.
func atHead(ctx context.Context, ents *store.Entities, l Loop, read func(snap *store.Snapshot, res *Result) error) (Result, error) {
	res := NewResult()
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return res, err
	}
	defer snap.Close()
	for l = orOnce(l); err == nil && l.Loop(); {
		err = read(snap, &res)
	}
	return res, err
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
