package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
)

// openFed opens a store to feed blocks to it. It takes the lease, where the
// engine has one, so that no two feed it, or one beside a service, and refuses a
// store whose blocks a service makes. The caller ends it.
func (e *env) openFed(url string, eo store.EntityOptions) (*store.DB, *store.Entities, func() error, error) {
	db, ents, err := e.openEntities(url, nil, eo)
	if err != nil {
		return nil, nil, nil, err
	}
	end := db.Close
	lease, err := db.Engine().Lease(e.ctx)
	switch {
	case err == nil:
		end = func() error { return errors.Join(lease.Release(), db.Close()) }
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%w; another process feeds or serves this store, end it first", err)
	}
	if err == nil || errors.Is(err, store.ErrUnsupported) {
		err = notServed(e.ctx, ents)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, end())
	}
	return db, ents, end, nil
}

func notServed(ctx context.Context, ents *store.Entities) error {
	origin, err := ents.Origin(ctx)
	if err == nil && origin == service.Origin {
		err = fmt.Errorf("%w: varve serve makes the blocks of this store; give a new one", store.ErrHistory)
	}
	return err
}
