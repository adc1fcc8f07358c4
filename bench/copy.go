package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/varvedb/varve/store"
)

// copied is an open copy of a data set that a run may change.
type copied struct {
	DB    *store.DB
	Dir   string // of the database
	Ready Ready

	run    *RunDir
	engine Engine
	opts   *store.Options
	attach func(ctx context.Context) error // opens what the database holds and checks it
}

// Copy is an open copy of a data set that a run may change.
type Copy struct {
	copied
	Entities *store.Entities

	data Dataset
}

// OpenCopy copies a data set and opens the copy. A data set that turns out to
// be damaged is built again, once.
func (c *Cache) OpenCopy(ctx context.Context, d Dataset, opts *store.Options) (*Copy, error) {
	key, err := d.Key()
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	cp := &Copy{copied: copied{engine: d.Engine, opts: opts}, data: d}
	cp.attach = cp.check
	if err := c.open(ctx, &cp.copied, key, d.build); err != nil {
		return nil, err
	}
	return cp, nil
}

// open copies a data set and opens the copy, and builds it again, once, when it
// turns out to be damaged.
func (c *Cache) open(ctx context.Context, cp *copied, key string, build builder) error {
	err := c.openOnce(ctx, cp, key, build)
	if errors.Is(err, errDamaged) {
		if err := c.drop(ctx, key); err != nil {
			return fmt.Errorf("data set %s: %w", key, err)
		}
		err = c.openOnce(ctx, cp, key, build)
	}
	if err != nil {
		return fmt.Errorf("data set %s: %w", key, err)
	}
	return nil
}

// errDamaged: the copy of a data set is not the store that it was built as.
var errDamaged = errors.New("damaged data set")

func (c *Cache) openOnce(ctx context.Context, cp *copied, key string, build builder) error {
	run, err := c.NewRun(ctx)
	if err != nil {
		return err
	}
	cp.run, cp.Dir, cp.DB = run, run.Data(), nil
	if cp.Ready, err = c.copyTo(ctx, cp.Dir, key, build); err == nil {
		err = cp.open(ctx)
	}
	if err != nil {
		return errors.Join(err, cp.Close())
	}
	return nil
}

// Reopen closes the database, lets a function have its files, and opens it
// again: with a new engine, whose caches are empty.
func (cp *copied) Reopen(ctx context.Context, between func(dir string) error) error {
	if err := cp.DB.Close(); err != nil {
		return err
	}
	if err := between(cp.Dir); err != nil {
		return err
	}
	return cp.open(ctx)
}

func (cp *copied) open(ctx context.Context) (err error) {
	if cp.DB, err = store.Open(ctx, cp.engine.URL(cp.Dir), cp.opts); err != nil {
		return blame(err)
	}
	return blame(cp.attach(ctx))
}

// check compares the head with that of the data set.
func (cp *Copy) check(ctx context.Context) (err error) {
	if cp.Entities, err = cp.DB.Entities(ctx, store.EntityOptions{Layout: cp.data.Layout}); err != nil {
		return err
	}
	head, err := cp.Entities.Head(ctx)
	if err != nil {
		return err
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
func (cp *copied) Close() error {
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
