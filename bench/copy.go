package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/varvedb/varve/store"
)

// Copy is an open copy of a data set that a run may change.
type Copy struct {
	DB       *store.DB
	Entities *store.Entities
	Dir      string // of the database
	Ready    Ready

	run  *RunDir
	data Dataset
	opts *store.Options
}

// OpenCopy copies a data set and opens the copy. A data set that turns out to
// be damaged is built again, once.
func (c *Cache) OpenCopy(ctx context.Context, d Dataset, opts *store.Options) (*Copy, error) {
	key, err := d.Key()
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	cp, err := c.openCopy(ctx, key, d, opts)
	if errors.Is(err, errDamaged) {
		if err := c.drop(ctx, key); err != nil {
			return nil, fmt.Errorf("data set %s: %w", key, err)
		}
		cp, err = c.openCopy(ctx, key, d, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", key, err)
	}
	return cp, nil
}

// errDamaged: the copy of a data set is not the store that it was built as.
var errDamaged = errors.New("damaged data set")

func (c *Cache) openCopy(ctx context.Context, key string, d Dataset, opts *store.Options) (*Copy, error) {
	run, err := c.NewRun(ctx)
	if err != nil {
		return nil, err
	}
	cp := &Copy{Dir: run.Data(), run: run, data: d, opts: opts}
	if cp.Ready, err = c.copyTo(ctx, cp.Dir, key, d.build); err == nil {
		err = cp.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	return cp, nil
}

// Reopen closes the database, lets a function have its files, and opens it
// again: with a new engine, whose caches are empty.
func (cp *Copy) Reopen(ctx context.Context, between func(dir string) error) error {
	if err := cp.DB.Close(); err != nil {
		return err
	}
	if err := between(cp.Dir); err != nil {
		return err
	}
	return cp.open(ctx)
}

func (cp *Copy) open(ctx context.Context) (err error) {
	if cp.DB, err = store.Open(ctx, cp.data.Engine.URL(cp.Dir), cp.opts); err != nil {
		return blame(err)
	}
	if cp.Entities, err = cp.DB.Entities(ctx, store.EntityOptions{Layout: cp.data.Layout}); err != nil {
		return blame(err)
	}
	head, err := cp.Entities.Head(ctx)
	if err != nil {
		return blame(err)
	}
	if head.Block != cp.Ready.Head || head.Digest.String() != cp.Ready.Digest {
		return fmt.Errorf("%w: head is block %d with digest %s, want %d with %s", errDamaged, head.Block, head.Digest, cp.Ready.Head, cp.Ready.Digest)
	}
	return nil
}

// blame marks errors that a damaged file may cause.
func blame(err error) error {
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrLayout) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// Close closes the database and removes the copy. A second Close does nothing.
func (cp *Copy) Close() error {
	if cp.run == nil {
		return nil
	}
	run := cp.run
	cp.run = nil
	var err error
	if cp.DB != nil {
		err = cp.DB.Close()
	}
	return errors.Join(err, run.Remove())
}
