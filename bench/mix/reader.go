package mix

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// ReaderOptions say how a reader asks.
type ReaderOptions struct {
	// Reuse is how many operations in a row share a snapshot of the head; 0 or 1
	// means that each opens its own, as a node that answers requests does. Reads
	// at a past block always do.
	Reuse int
}

// Reader carries out operations on a store. It is not safe for concurrent use:
// each goroutine has its own. It holds at most one of the store's readers.
type Reader struct {
	ents  *store.Entities
	reuse int
	head  *store.Snapshot // shared, or nil
	used  int             // operations on head
	keys  []entity.Key
}

// NewReader returns a reader, which must be closed.
func NewReader(ents *store.Entities, o ReaderOptions) *Reader {
	return &Reader{ents: ents, reuse: o.Reuse}
}

// Close ends the snapshot that the reader may hold. A second Close does nothing.
func (r *Reader) Close() error {
	if r.head == nil {
		return nil
	}
	head := r.head
	r.head = nil
	return head.Close()
}

// Do asks and reads the answer to its end. It fails when the store does; that
// an entity is not visible is an answer.
func (r *Reader) Do(ctx context.Context, op Op) (a Answer, err error) {
	if op.Block == store.Head && r.reuse > 1 {
		return r.share(ctx, op)
	}
	if err := r.Close(); err != nil { // of many readers, none may wait for a second one
		return a, err
	}
	snap, err := r.ents.At(ctx, op.Block)
	if err != nil {
		return a, err
	}
	a, err = r.ask(ctx, snap, op)
	return a, errors.Join(err, snap.Close())
}

// share asks on the reader's snapshot of the head and takes a new one when it
// has been used often enough.
func (r *Reader) share(ctx context.Context, op Op) (a Answer, err error) {
	if r.head != nil && r.used >= r.reuse {
		if err := r.Close(); err != nil {
			return a, err
		}
	}
	if r.head == nil {
		if r.head, err = r.ents.At(ctx, store.Head); err != nil {
			return a, err
		}
		r.used = 0
	}
	r.used++
	return r.ask(ctx, r.head, op)
}

func (r *Reader) ask(ctx context.Context, snap *store.Snapshot, op Op) (a Answer, err error) {
	a.Block = snap.Block()
	switch {
	case op.Get:
		a.Entity, err = snap.Get(ctx, op.Key)
		if errors.Is(err, store.ErrNotFound) {
			return a, nil
		}
		if err == nil {
			a.Count = 1
		}
		return a, err
	case op.Count:
		a.Count, err = snap.Count(ctx, op.Expr)
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
