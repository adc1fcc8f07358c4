package store_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// router spreads writes over stores by the key. Each store has a block of every number.
type router []*store.Entities

func (r router) of(key entity.Key) int { return int(key[0]) % len(r) }

// apply cuts a block into one for each store. After a crash between two stores
// it gets the same block again, and skips the stores that have it.
func (r router) apply(ctx context.Context, b entity.Block) error {
	parts := make([]entity.Block, len(r))
	for _, op := range b.Ops {
		part := &parts[r.of(op.Key)]
		part.Ops = append(part.Ops, op)
	}
	for i, ents := range r {
		head, err := ents.Head(ctx)
		if err == nil && (head.Empty || head.Number < b.Number) {
			parts[i].Number = b.Number
			_, err = ents.Apply(ctx, parts[i])
		}
		if err != nil {
			return fmt.Errorf("store %d: %w", i, err)
		}
	}
	return nil
}

// head returns the last block that all stores have: later ones may be there in parts.
func (r router) head(ctx context.Context) (block uint64, err error) {
	block = store.Head
	for _, ents := range r {
		head, err := ents.Head(ctx)
		if err != nil {
			return 0, err
		}
		block = min(block, head.Number)
	}
	return block, nil
}

// mostCPUs asks every store for its best matches at one block, and merges the answers.
func (r router) mostCPUs(ctx context.Context, q query.Expr, limit int) (all []*entity.Entity, err error) {
	block, err := r.head(ctx)
	if err != nil {
		return nil, err
	}
	order := []store.Order{{Name: "cpu", Kind: entity.Numeric, Desc: true}}
	for _, ents := range r {
		snap, err := ents.At(ctx, block)
		if err != nil {
			return nil, err
		}
		for e, err := range snap.Query(ctx, q, &store.QueryOptions{Order: order, Limit: limit}) {
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		if err := snap.Close(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b *entity.Entity) int {
		return cmp.Compare(b.NumericAttributes["cpu"], a.NumericAttributes["cpu"])
	})
	return all[:min(limit, len(all))], nil
}

// Two stores take the writes of one application; docs/scaling-out.md describes
// the price.
func Example_router() {
	ctx := context.Background()
	var r router
	for range 2 {
		ents, done := temporary(ctx)
		defer done()
		r = append(r, ents)
	}
	q, err := query.Parse(`type = "node"`)
	if err != nil {
		log.Fatal(err)
	}
	show := func() {
		list, err := r.mostCPUs(ctx, q, 2)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range list {
			fmt.Print(e.NumericAttributes["cpu"], " ")
		}
	}
	first := entity.Block{Number: 1, Ops: []entity.Op{node(1, 4, 100), node(2, 16, 100), node(3, 8, 100)}}
	second := entity.Block{Number: 2, Ops: []entity.Op{node(4, 32, 100), node(5, 64, 100)}}
	if err := r.apply(ctx, first); err != nil {
		log.Fatal(err)
	}
	show()
	// One store has its part of the second block, then the application ends.
	if _, err := r[0].Apply(ctx, entity.Block{Number: 2, Ops: second.Ops[:1]}); err != nil {
		log.Fatal(err)
	}
	show()
	if err := r.apply(ctx, second); err != nil {
		log.Fatal(err)
	}
	show()
	// Output: 16 8 16 8 64 32
}
