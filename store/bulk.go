package store

import (
	"context"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
)

// buildIndexes makes the indexes that EntityOptions.DeferIndexes left out, each in a
// transaction of its own.
func (e *Entities) buildIndexes(ctx context.Context) (err error) {
	if !e.deferred.Load() {
		return nil
	}
	defer wrap(&err, "build indexes")
	indexed, names := e.deferredIndexes()
	for _, name := range names {
		err := e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error { return indexed.CreateIndex(ctx, tx, name) })
		if err != nil {
			return err
		}
	}
	err = e.db.write(ctx, func(ctx context.Context, tx driver.Tx) error { return e.db.meta.remove(ctx, tx, metaIndexes) })
	if err != nil {
		return err
	}
	e.deferred.Store(false)
	return e.analyzeAtOpen(ctx)
}

// deferredIndexes returns the layout's, and what makes them.
func (e *Entities) deferredIndexes() (layout.Indexed, []string) {
	indexed, ok := e.layout.(layout.Indexed)
	if !ok {
		return nil, nil
	}
	return indexed, indexed.DeferredIndexes()
}

// SetOrigin records in the store where its blocks come from: text of the
// caller's own, which Summary gives back.
func (e *Entities) SetOrigin(ctx context.Context, origin string) (err error) {
	defer wrap(&err, "set origin")
	return e.db.write(ctx, func(ctx context.Context, tx driver.Tx) error { return e.db.meta.set(ctx, tx, metaOrigin, origin) })
}

// Origin returns what SetOrigin recorded, or "".
func (e *Entities) Origin(ctx context.Context) (origin string, err error) {
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		origin, err = e.db.meta.get(ctx, q, metaOrigin)
		return err
	})
	return origin, err
}
