package mix

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// Reader carries out operations on a store, each on a snapshot of its own, as a node
// does that answers requests. It is not safe for concurrent use: each goroutine has its
// own.
type Reader struct {
	ents *store.Entities
	keys []entity.Key
}

// NewReader returns a reader.
func NewReader(ents *store.Entities) *Reader { return &Reader{ents: ents} }

// Do asks and reads the answer to its end. It fails when the store does; that
// an entity is not visible is an answer.
func (r *Reader) Do(ctx context.Context, op Op) (a Answer, err error) {
	snap, err := r.ents.At(ctx, op.Block)
	if err != nil {
		return a, err
	}
	a, err = r.ask(ctx, snap, op)
	return a, errors.Join(err, snap.Close())
}

func (r *Reader) ask(ctx context.Context, snap *store.Snapshot, op Op) (a Answer, err error) {
	a.Block = snap.Block()
	if op.Get {
		a.Entity, err = snap.Get(ctx, op.Key)
		if errors.Is(err, store.ErrNotFound) {
			return a, nil
		}
		a.Count = 1
		return a, err
	}
	r.keys = r.keys[:0]
	opts := store.QueryOptions{Order: op.Order, Limit: op.Limit, Parts: op.Parts}
	for e, err := range snap.Query(ctx, op.Expr, &opts) {
		if err != nil {
			return a, err
		}
		r.keys = append(r.keys, e.Key)
		if op.Key != (entity.Key{}) {
			a.Entity = e
		}
	}
	a.Keys, a.Count = r.keys, uint64(len(r.keys))
	return a, nil
}
