package crashtest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// pastBlocks is how many past blocks are compared.
const pastBlocks = 3

// compare lets the store check itself and compares it with a state, at the head
// and at past blocks.
func (w *entityWorker) compare(ctx context.Context, want *state) error {
	if _, err := w.ents.Verify(ctx); errors.Is(err, store.ErrCorrupt) {
		return violation("%v", err)
	} else if err != nil {
		return err
	}
	head := want.head()
	if err := w.compareAt(ctx, want, store.Head); err != nil || head.Empty || !w.ents.Temporal() {
		return err
	}
	for range pastBlocks {
		at := want.horizon + w.rng.Uint64N(head.Block-want.horizon+1)
		if err := w.compareAt(ctx, want, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *entityWorker) compareAt(ctx context.Context, want *state, at uint64) (err error) {
	model, err := want.model.At(at)
	if err != nil {
		return fmt.Errorf("model at block %d: %w", at, err)
	}
	s, err := w.ents.At(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	orders := [][]store.Order{
		nil, {{Name: "n", Kind: entity.Numeric}}, {{Name: entity.AttrExpiration, Desc: true}},
		{{Name: "rare", Kind: entity.String, Desc: true}, {Name: "n", Kind: entity.Numeric}},
	}
	for i, q := range Questions() {
		order := orders[i%len(orders)]
		wanted, err := model.Query(q, order, 0, nil)
		if err != nil {
			return err
		}
		found, err := pages(ctx, s, q, store.QueryOptions{Order: order, Limit: i % 3 * 7})
		if err != nil {
			return err
		}
		if err := sameEntities(wanted, found); err != nil {
			return violation("at block %d, query %v: %v", model.Block(), q, err)
		}
		n, err := s.Count(ctx, q)
		if err != nil {
			return err
		}
		if n != uint64(len(wanted)) {
			return violation("at block %d, count of %v is %d, should be %d", model.Block(), q, n, len(wanted))
		}
	}
	return nil
}

// pages reads a result, page by page where there is a limit.
func pages(ctx context.Context, s *store.Snapshot, q query.Expr, opts store.QueryOptions) (all []*store.Entity, err error) {
	for {
		page, err := gather(s.Query(ctx, q, &opts))
		all = append(all, page...)
		if err != nil || opts.Limit == 0 || len(page) < opts.Limit {
			return all, err
		}
		if opts.After, err = s.Cursor(page[len(page)-1], &opts); err != nil {
			return all, err
		}
	}
}

func gather(found iter.Seq2[*store.Entity, error]) (all []*store.Entity, err error) {
	for e, err := range found {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// sameEntities compares by the digest that the store itself chains: it covers all
// that a version has.
func sameEntities(want, got []*store.Entity) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d entities, should be %d", len(got), len(want))
	}
	for i := range want {
		if want[i].Key != got[i].Key || Fingerprint(want[i]) != Fingerprint(got[i]) {
			return fmt.Errorf("place %d has %s of block %d, should have %s of block %d, or its content differs", i,
				got[i].Key, got[i].LastModifiedAtBlock, want[i].Key, want[i].LastModifiedAtBlock)
		}
	}
	return nil
}

// Fingerprint covers everything that entities have, and their order.
func Fingerprint(list ...*store.Entity) store.Digest {
	set := entity.Changeset{Block: 1}
	for _, e := range list {
		set.Changes = append(set.Changes, entity.Change{Key: e.Key, New: e})
	}
	return store.Digest{1}.Next(set)
}
