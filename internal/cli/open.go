package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// readOnly opens a store for reading only.
var readOnly = &store.Options{ReadOnly: true}

// openExisting opens a database that must already exist, for reading or
// writing.
func openExisting(ctx context.Context, url string, o *store.Options) (*store.DB, error) {
	if !o.ReadOnly {
		// Any other error than "does not exist" is ignored here, because an
		// unreadable store may still be repairable.
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

// openEntities opens a database and its entity store, and prints the layout of
// a new one. The caller closes the database.
func (e *env) openEntities(url string, o *store.Options, eo store.EntityOptions) (*store.DB, *store.Entities, error) {
	if eo.Layout != "" && !slices.Contains(schemas.EntityLayouts(), eo.Layout) {
		// Refuse an unknown layout before a database is created.
		return nil, nil, usageError{fmt.Errorf("unknown layout %q; known are %s", eo.Layout, strings.Join(schemas.Layouts(), ", "))}
	}
	db, err := store.Open(e.ctx, url, o)
	if err != nil {
		return nil, nil, err
	}
	ents, err := db.Entities(e.ctx, &eo)
	if err == nil && !db.ReadOnly() {
		var head store.BlockHeader
		if head, err = ents.Head(e.ctx); err == nil && head.Empty {
			e.printNewLayout(ents.Layout(), url)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, ents, nil
}

// withSnapshot opens a store and a snapshot for reading, and closes both afterwards.
func (e *env) withSnapshot(url string, at uint64, read func(*store.Snapshot) error) (err error) {
	db, ents, err := e.openEntities(url, readOnly, store.EntityOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	snap, err := ents.At(e.ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return read(snap)
}

// printNewLayout prints the layout of a store that has no block yet, because it cannot
// be changed later.
func (e *env) printNewLayout(layout, url string) {
	fmt.Fprintf(e.stderr, "new store, layout %s: %s\n", layout, driver.Redact(url))
}

// openForBlocks opens a store to write blocks to it. It takes the lease, if the
// engine has one, so that no other process or service writes blocks too. It
// refuses a store whose blocks a service makes. The caller calls the returned
// function at the end.
func (e *env) openForBlocks(url string, eo store.EntityOptions) (*store.DB, *store.Entities, func() error, error) {
	db, ents, err := e.openEntities(url, nil, eo)
	if err != nil {
		return nil, nil, nil, err
	}
	end := db.Close
	lease, err := driver.TakeLease(e.ctx, db.Engine())
	switch {
	case err == nil:
		end = func() error { return errors.Join(lease.Release(), db.Close()) }
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%w; another process writes to this store: end it first", err)
	}
	if err == nil || errors.Is(err, store.ErrUnsupported) {
		var origin string
		if origin, err = ents.Origin(e.ctx); err == nil && origin == service.Origin {
			err = errors.New("varve serve makes the blocks of this store; give a new one")
		}
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, end())
	}
	return db, ents, end, nil
}

// endWith cancels the command's context when the database ends by itself.
// Otherwise a service would stay up without its database and would not be
// restarted. The error of the database's Close names the cause.
func (e *env) endWith(db *store.DB) (release context.CancelFunc) {
	ctx, cancel := context.WithCancel(e.ctx)
	if engine, ok := db.Engine().(driver.Ender); ok {
		go func() {
			select {
			case <-engine.Ended():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	e.ctx = ctx
	return cancel
}
