package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// ReorgConfig is a chain that reorganises again and again: the last block is
// taken back and another comes in its place, which creates entities of the same
// keys with other values. In a layout with a row for each attribute that deletes
// rows and inserts rows of the same primary keys, the worst case of a B-tree
// that the user's documents ask for.
type ReorgConfig struct {
	Profile  Profile
	After    GenOptions // what the store holds already; its Entities are not touched
	Entities int        // of the block that is replaced; zero means 20
	Loop     Loop       // how many reorgs; nil means one

	// Observe, if not nil, is told how long each took, after it.
	Observe func(rewind, commit time.Duration)
}

// ReorgResult is what reorgs did: taking the block back, applying the other, and
// both together.
type ReorgResult struct {
	Rewind Result
	Commit Result
	Both   Result
}

// reorgEntities make about 500 rows with 24 attributes, as the user's documents
// have them.
const reorgEntities = 20

// Reorg applies a block, and then takes it back and applies another in its place,
// over and over. It fails with ErrMismatch when head, digest or the entities are
// not those of the last block, and with
// store.ErrUnsupported on layouts without history.
func Reorg(ctx context.Context, ents *store.Entities, cfg ReorgConfig) (ReorgResult, error) {
	res := ReorgResult{Rewind: newResult(), Commit: newResult(), Both: newResult()}
	if cfg.Entities == 0 {
		cfg.Entities = reorgEntities
	}
	if err := reorg(ctx, ents, cfg, &res); err != nil {
		return res, fmt.Errorf("reorg: %w", err)
	}
	return res, nil
}

func reorg(ctx context.Context, ents *store.Entities, cfg ReorgConfig, res *ReorgResult) error {
	before, err := ents.Head(ctx)
	if err != nil {
		return err
	}
	g := newGenerator(cfg.Profile, cfg.After.Next(cfg.Entities))
	g.o.Start = before.Block + 1
	b := g.replacement(0)
	if _, err := ents.Apply(ctx, b); err != nil {
		return err
	}
	loop := orOnce(cfg.Loop)
	for revision := uint64(1); loop.Loop(); revision++ {
		loop.StopTimer()
		b = g.replacement(revision)
		loop.StartTimer()
		start := time.Now()
		if err := ents.Rewind(ctx, before.Block); err != nil {
			return err
		}
		middle := time.Now()
		applied, err := ents.Apply(ctx, b)
		end := time.Now()
		if err == nil {
			err = follows(before, &b, applied.Head)
		}
		if err != nil {
			return err
		}
		res.Rewind.Latency.Record(middle.Sub(start))
		res.Commit.Latency.Record(end.Sub(middle))
		res.Both.Latency.Record(end.Sub(start))
		if cfg.Observe != nil {
			cfg.Observe(middle.Sub(start), end.Sub(middle))
		}
		res.Both.Entities += uint64(len(b.Ops))
		res.Both.Rows += uint64(2 * len(b.Ops) * cfg.Profile.Rows()) // deleted and inserted
	}
	return checkCreated(ctx, ents, b)
}

// replacement is the block of a revision: the same keys, other values.
func (g *generator) replacement(revision uint64) store.Block {
	b := store.Block{Number: g.o.Start, Ops: make([]store.Op, g.o.Entities)}
	for i := range b.Ops {
		b.Ops[i] = g.op(store.Create, i, uint64(g.o.Skip+i), revision)
	}
	return b
}

// follows checks the head after a block of creations by its digest.
func follows(before store.BlockHead, b *store.Block, after store.BlockHead) error {
	set, err := entity.Fold(b, nil, entity.Rules{})
	if err != nil {
		return err
	}
	set.Block = b.Number
	if want := before.Digest.Next(set); after.Digest != want {
		return mismatch("block %d has digest %s, want %s", b.Number, after.Digest, want)
	}
	return nil
}
