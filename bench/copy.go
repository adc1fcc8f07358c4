package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Copy is an open copy of a data set that a run may change, or the data set itself where it
// is used in place. It has Entities or Events, or neither where its Source fills it.
type Copy struct {
	DB       *store.DB
	Dir      string // of the database
	Ready    Ready
	Entities *store.Entities
	Events   *store.Events
	Built    bool // just now, by this process

	data Dataset
	run  *RunDir
	held *os.File // the lock of a data set that is used in place
	url  string
	drop func() error // removes it from a server
	opts *store.Options
}

// errDamaged: the copy of a data set is not the store that it was built as.
var errDamaged = errors.New("damaged data set")

// OpenCopy copies a data set and opens the copy. A data set that turns out to be damaged is built again, once.
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
		if cp.Ready, err = d.build(ctx, cp.url, cp.opts); err == nil {
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
			cp.Built = true
			return d.build(ctx, d.Engine.URL(dir), cp.opts)
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

// Flush does the work that commits have put off: merges of the layout, and copying the
// log into the database. Its file stays as long as it is, because making a log
// grow again costs as much as writing to it.
func (cp *Copy) Flush(ctx context.Context) error {
	if cp.Entities != nil {
		if err := cp.Entities.Flush(ctx); err != nil {
			return err
		}
	}
	const tries, pause = 100, 10 * time.Millisecond
	for range tries { // the engine may be at it by itself
		res, err := driver.Checkpoint(ctx, cp.DB.Engine(), false)
		if errors.Is(err, store.ErrUnsupported) {
			return nil
		}
		if err != nil || !res.Busy && res.DoneFrames >= res.LogFrames {
			return err
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("%w: the log could not be copied into the database within %v", store.ErrLocked, tries*pause)
}

// Evict drops the pages of the database's files from the page cache, where the files are this
// machine's. Whoever built, copied or read them before has paid for these pages from another
// budget: they would be a present to whoever measures next.
func (cp *Copy) Evict() error {
	if cp.data.Engine.Server != "" {
		return nil
	}
	return evict(cp.Dir)
}

func evict(dir string) error {
	err := probe.Evict(dir)
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

// check opens what the database holds and compares the head with that of the data set.
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

// Close closes the database and removes the copy. A data set that was used in place goes back when its head is
// still what it was, and is removed otherwise. A second Close does nothing.
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

// checkOut copies a data set to a directory, and builds it first when it is missing, incomplete or
// damaged. In place nothing is copied, and it returns the lock that keeps others waiting until the
// run has ended; the ready marker is removed, so that a crash, whenever it comes, forces a rebuild.
func (c *Cache) checkOut(ctx context.Context, dir, key string, inPlace bool, build builder) (r Ready, held *os.File, err error) {
	if held, err = c.lock(ctx, key); err != nil {
		return r, nil, err
	}
	if r, err = c.ready(key); err != nil {
		r, err = c.build(ctx, key, build)
	}
	switch {
	case err != nil:
	case !inPlace:
		err = cloneTree(dir, c.data(key))
	default:
		if err = os.Remove(filepath.Join(c.path(key), markerFile)); err == nil {
			err = filesync.Dir(c.path(key))
		}
		if err == nil {
			return r, held, nil
		}
	}
	return r, nil, errors.Join(err, held.Close())
}

// checkIn marks a data set that was used in place as complete again, or removes what is no longer
// whole. Its files may be others: engines change them for readers too.
func (c *Cache) checkIn(r Ready, whole bool) error {
	if !whole {
		return os.RemoveAll(c.path(r.Key))
	}
	err := flush(c.data(r.Key))
	if err == nil {
		_, err = c.seal(r)
	}
	return err
}

// spareSpace is kept free beside what is to be written, for logs and sorting.
const spareSpace = 256 << 20

// room tells, before anything is written, whether a data set is used in place: where that is
// asked for, and where a disk with so many free bytes has no room for the copy. It fails
// where there is none to build it, which takes about the estimate.
func (c *Cache) room(key string, estimate, free uint64) (inPlace bool, err error) {
	build := estimate
	if r, err := c.ready(key); err == nil {
		build, estimate = 0, uint64(r.Bytes)
	}
	if build > 0 && build+spareSpace > free {
		const gib = 1 << 30
		return false, fmt.Errorf("%w: about %.1f GiB are needed in %s and %.1f GiB are free; remove other data sets there, choose a smaller scale, or set %s to a directory on another disk",
			driver.ErrDiskFull, float64(build+spareSpace)/gib, c.root, float64(free)/gib, CacheEnv)
	}
	return c.InPlace || build+estimate+spareSpace > free, nil
}

// A row takes about rowBytes, and indexBytes in each of the layout's indexes, which all are of one of three tables.
const (
	rowBytes   = 80
	indexBytes = 30
)

// Size returns about how many bytes the data set will take; 0 is not known.
func (d Dataset) Size() (uint64, error) {
	if d.events() || d.filled() {
		return 0, nil
	}
	linked, err := d.Engine.Driver()
	if err != nil {
		return 0, err
	}
	schema, err := schemas.Entities(d.Layout, string(linked.Info.Dialect))
	if err != nil {
		return 0, err
	}
	rows, payload := d.amount()
	return payload + rows*uint64(rowBytes+indexBytes*len(schema.Indexes)), nil
}

// cloneTree copies a closed database: files, directories with their permissions, and symbolic links. Files
// share their blocks with the original where the system and its file system can, which io.Copy asks for. All is
// on the disk when it returns, so that a measurement that follows does not pay for it.
func cloneTree(dst, src string) error {
	from := os.DirFS(src)
	if err := os.CopyFS(dst, from); err != nil {
		return err
	}
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(dst, path), info.Mode().Perm()) // not what the umask leaves
	})
	return errors.Join(err, flush(dst), evict(src)) // which building and copying have read
}

// size returns how many bytes the files below a directory have.
func size(dir string) (bytes int64, err error) {
	err = filepath.Walk(dir, func(_ string, info fs.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
