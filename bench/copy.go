package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store"
)

// Copy is an open copy of a data set that a run may change, or the data set itself where it
// is used in place. It has Entities or Events, or neither where its Source fills it.
type Copy struct {
	DB       *store.DB
	Dir      string // of the database
	Ready    Ready
	Entities *store.Entities
	Events   *store.Events

	data Dataset
	run  *RunDir
	held *os.File // the lock of a data set that is used in place
	url  string
	drop func() error // removes it from a server
	opts *store.Options
}

// errDamaged: the copy of a data set is not the store that it was built as.
var errDamaged = errors.New("damaged data set")

// OpenCopy copies a data set and opens the copy. A data set that turns out to
// be damaged is built again, once.
func (c *Cache) OpenCopy(ctx context.Context, d Dataset, opts *store.Options) (*Copy, error) {
	key, err := d.Key()
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	d.cache = c
	cp, err := c.openOnce(ctx, d, key, opts)
	if errors.Is(err, errDamaged) {
		if err = c.drop(ctx, key); err == nil {
			cp, err = c.openOnce(ctx, d, key, opts)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", key, err)
	}
	return cp, nil
}

func (c *Cache) openOnce(ctx context.Context, d Dataset, key string, opts *store.Options) (*Copy, error) {
	run, err := c.NewRun()
	if err != nil {
		return nil, err
	}
	cp := &Copy{Dir: run.Data(), data: d, run: run, opts: opts}
	if err := cp.fill(ctx, key); err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	return cp, nil
}

// NewCopy opens a new empty database, of which nothing stays when it is closed.
func (c *Cache) NewCopy(ctx context.Context, e Engine, opts *store.Options) (*Copy, error) {
	run, err := c.NewRun()
	if err != nil {
		return nil, err
	}
	cp := &Copy{Dir: run.Data(), data: Dataset{Engine: e}, run: run}
	if err = os.MkdirAll(cp.Dir, 0o755); err == nil {
		cp.url, cp.drop, err = e.place(ctx, cp.Dir)
	}
	if err == nil {
		cp.DB, err = store.Open(ctx, cp.url, opts)
	}
	if err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	return cp, nil
}

// fill makes the copy and opens it. At a server nothing is copied: each is built.
func (cp *Copy) fill(ctx context.Context, key string) (err error) {
	d, c := cp.data, cp.data.cache
	if d.Engine.Server != "" {
		if cp.url, cp.drop, err = d.Engine.place(ctx, cp.Dir); err != nil {
			return err
		}
		if cp.Ready, err = d.build(ctx, cp.url); err == nil {
			cp.Ready.Key = key
			err = cp.open(ctx)
		}
		return err
	}
	size, err := d.Size()
	free, noFree := filesync.Free(c.root)
	inPlace := false
	if err = errors.Join(err, noFree); err == nil {
		inPlace, err = c.room(key, size, free)
	}
	if err == nil {
		if inPlace {
			cp.Dir = c.data(key)
		}
		cp.Ready, cp.held, err = c.checkOut(ctx, cp.Dir, key, inPlace, func(ctx context.Context, dir string) (Ready, error) {
			return d.build(ctx, d.Engine.URL(dir))
		})
	}
	if err == nil {
		err = cp.Evict()
	}
	if err == nil {
		cp.url = d.Engine.URL(cp.Dir)
		err = cp.open(ctx)
	}
	return err
}

// Evict drops the pages of the database's files from the page cache, where the files are this
// machine's. Whoever built, copied or read them before has paid for these pages from another
// budget: they would be a present to whoever measures next.
func (cp *Copy) Evict() (err error) {
	if cp.data.Engine.Server == "" {
		err = probe.Evict(cp.Dir)
	}
	if errors.Is(err, probe.ErrUnsupported) {
		err = nil
	}
	return err
}

func (cp *Copy) open(ctx context.Context) (err error) {
	if cp.DB, err = store.Open(ctx, cp.url, cp.opts); err == nil {
		err = cp.check(ctx)
	}
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrLayout) || errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// check opens what the database holds and compares the head with that of the data
// set.
func (cp *Copy) check(ctx context.Context) (err error) {
	head := store.BlockHeader{}
	digest := cp.Ready.Digest
	switch {
	case cp.data.filled():
		return nil // the workload compares what it holds
	case cp.data.events():
		if cp.Events, err = cp.DB.Events(ctx, nil); err == nil {
			head.Number, err = cp.Events.Head(ctx)
		}
	default:
		if cp.Entities, err = cp.DB.Entities(ctx, &store.EntityOptions{Layout: cp.data.Layout}); err == nil {
			head, err = cp.Entities.Head(ctx)
			digest = head.Digest.String()
		}
	}
	if err == nil && (head.Number != cp.Ready.Head || digest != cp.Ready.Digest) {
		err = fmt.Errorf("%w: head is %d with digest %s, want %d with %s", errDamaged, head.Number, digest, cp.Ready.Head, cp.Ready.Digest)
	}
	return err
}

// Close closes the database and removes the copy. A data set that was used in place
// goes back when its head is still what it was, and is removed otherwise. A second
// Close does nothing.
func (cp *Copy) Close() (err error) {
	if cp.run == nil {
		return nil
	}
	whole := cp.held != nil && cp.DB != nil && cp.check(context.Background()) == nil
	if cp.DB != nil {
		err = cp.DB.Close()
	}
	if cp.held != nil {
		err = errors.Join(err, cp.data.cache.checkIn(cp.Ready, whole && err == nil))
	}
	if cp.drop != nil {
		err = errors.Join(err, cp.drop())
	}
	err = errors.Join(err, cp.run.Remove())
	if cp.held != nil {
		err = errors.Join(err, cp.held.Close())
	}
	cp.run = nil
	return err
}
