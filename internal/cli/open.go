package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/store"
)

// readOnly opens a store for looking at it.
var readOnly = &store.Options{ReadOnly: true}

// openExisting opens a database that must exist, also where it is written to.
func openExisting(ctx context.Context, url string, o *store.Options) (*store.DB, error) {
	if !o.ReadOnly {
		// Only whether it exists: what cannot be read may still be mended.
		db, err := store.Open(ctx, url, readOnly)
		if errors.Is(err, store.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			if err := db.Close(); err != nil {
				return nil, err
			}
		}
	}
	return store.Open(ctx, url, o)
}

// openEntities opens a database and its entity store. The caller closes the
// database.
func openEntities(ctx context.Context, url string, o *store.Options, eo store.EntityOptions) (*store.DB, *store.Entities, error) {
	if known := store.Layouts(); eo.Layout != "" && !slices.Contains(known, eo.Layout) {
		// Before a database is made for it.
		return nil, nil, fmt.Errorf("%w: unknown layout %q; known are %s", store.ErrInvalid, eo.Layout, strings.Join(known, ", "))
	}
	db, err := store.Open(ctx, url, o)
	if err != nil {
		return nil, nil, err
	}
	ents, err := db.Entities(ctx, eo)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, ents, nil
}

// endWith ends the command's context with a database that ends by itself. A service would
// stay up without it for nothing, and nobody would start it again; what follows a chain
// fails when it looks for the next block. Why the database ended is the error of its Close.
func (e *env) endWith(db *store.DB) (release context.CancelFunc) {
	ctx, cancel := context.WithCancel(e.ctx)
	go func() {
		select {
		case <-db.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	e.ctx = ctx
	return cancel
}
