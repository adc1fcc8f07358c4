package cli

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store"
)

// readOnly opens a store for looking at it.
var readOnly = &store.Options{ReadOnly: true}

// openEntities opens a database and its entity store. The caller closes the
// database.
func openEntities(ctx context.Context, url string, o *store.Options, eo store.EntityOptions) (*store.DB, *store.Entities, error) {
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
