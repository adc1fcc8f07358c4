package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Copy is an open copy of a data set that a run may change, or the data set
// itself if it is used in place. Either Entities or Events is set, or neither
// if the data set's Source fills the database.
type Copy struct {
	DB       *store.DB
	Dir      string // of the database
	Ready    Ready
	Entities *store.Entities
	Events   *store.Events
	Built    bool // by this call; otherwise it was in the cache

	data Dataset
	run  *RunDir
	held *os.File // the lock of a data set that is used in place
	url  string
	drop func() error // removes the database from a server
	opts *store.Options
}

// errDamaged: the copy is not the store that the data set was built as.
var errDamaged = errors.New("damaged data set")

// OpenCopy copies a data set and opens the copy. If the data set is damaged, it
// is rebuilt once.
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

// NewCopy opens a new empty database, which is removed when it is closed.
func (c *Cache) NewCopy(ctx context.Context, e Engine, opts *store.Options) (*Copy, error) {
	run, err := c.NewRun()
	if err != nil {
		return nil, err
	}
	cp := &Copy{Dir: run.Data(), data: Dataset{Engine: e}, run: run}
	if err = os.MkdirAll(cp.Dir, 0o755); err == nil {
		cp.url, cp.drop, err = e.newDatabase(ctx, cp.Dir)
	}
	if err == nil {
		cp.DB, err = store.Open(ctx, cp.url, opts)
	}
	if err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	return cp, nil
}

// fill copies the data set and opens the copy. On a server nothing is copied:
// each database is built.
func (cp *Copy) fill(ctx context.Context, key string) (err error) {
	d, c := cp.data, cp.data.cache
	if d.Engine.Server != "" {
		if cp.url, cp.drop, err = d.Engine.newDatabase(ctx, cp.Dir); err != nil {
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
		err = cp.Evict(ctx)
	}
	if err == nil {
		cp.url = d.Engine.URL(cp.Dir)
		err = cp.open(ctx)
	}
	return err
}

// Flush completes deferred work: merges of the layout, and the checkpoint of
// the log. The log file keeps its size, because growing it again would cost as
// much as writing to it.
func (cp *Copy) Flush(ctx context.Context) error {
	if cp.Entities != nil {
		if err := cp.Entities.Flush(ctx); err != nil {
			return err
		}
	}
	const tries, pause = 100, 10 * time.Millisecond
	for range tries { // the engine may be running a checkpoint itself
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

// Evict drops the pages of the database's files from the page cache, if the
// files are on this machine. These pages were charged to the memory budget of
// the process that built, copied or read them, so a later measurement would get
// them for free.
func (cp *Copy) Evict(ctx context.Context) error {
	if cp.data.Engine.Server != "" {
		return nil
	}
	err := probe.Evict(ctx, cp.Dir)
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

// check opens the store and compares its head with the data set's.
func (cp *Copy) check(ctx context.Context) (err error) {
	head := store.BlockHeader{}
	digest := cp.Ready.Digest
	switch {
	case cp.data.fillsItself():
		return nil // the workload compares the contents
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

// Close closes the database and removes the copy. A data set that was used in
// place is marked as complete again if its head has not changed, and removed
// otherwise. A second Close has no effect.
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

// checkOut copies a data set to a directory, and builds it first if it is
// missing, incomplete or damaged. In place it copies nothing and returns the
// lock, which keeps others waiting until the run has ended. The ready marker is
// removed first, so that a crash forces a rebuild.
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

// checkIn marks a data set that was used in place as complete again, or removes
// it if it was changed. The recorded size is updated, because engines may write
// to their files even for readers.
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

// spareSpace is kept free in addition to the estimate, for logs and temporary
// files.
const spareSpace = 256 << 20

// room decides, before anything is written, whether a data set is used in
// place: if that is asked for, or if the disk has no room for a copy. It fails
// if there is not even room to build the data set, about the estimated size.
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

// The estimated size of a row, and of its entry in each index. Each index of a
// layout belongs to one of three tables, so a row has entries in about a third
// of them.
const (
	rowBytes   = 80
	indexBytes = 30
)

// Size returns an estimate of the data set's size in bytes; 0 if it is not
// known.
func (d Dataset) Size() (uint64, error) {
	if d.events() || d.fillsItself() {
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

// cloneTree copies a closed database: files, directories with their
// permissions, and symbolic links. Where the file system can, files share their
// blocks with the original (reflink, by io.CopyN). Everything is synced before
// it returns, so that a later measurement does not pay for it.
func cloneTree(dst, src string) error {
	from, ok := os.DirFS(src).(fs.ReadLinkFS)
	if !ok {
		return fmt.Errorf("copy %s: %w", src, errors.ErrUnsupported)
	}
	if err := os.CopyFS(dst, piecewiseFS{from}); err != nil {
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
		return os.Chmod(filepath.Join(dst, path), info.Mode().Perm()) // set again, because the umask may have reduced them
	})
	return errors.Join(err, flush(dst))
}

// A piecewiseFS copies files in pieces, each of which leaves the page cache
// before the next is read. Otherwise gigabytes would become free at once when
// the copy is evicted, just before it is measured (see probe.Evict).
type piecewiseFS struct{ fs.ReadLinkFS }

func (p piecewiseFS) Open(name string) (fs.File, error) {
	f, err := p.ReadLinkFS.Open(name)
	if file, ok := f.(*os.File); ok {
		return piecewiseFile{file}, err
	}
	return f, err
}

type piecewiseFile struct{ *os.File }

// piece is so long that syncing it costs little compared with writing it.
const piece = 64 << 20

// WriteTo is what io.Copy calls.
func (f piecewiseFile) WriteTo(w io.Writer) (n int64, err error) {
	for err == nil {
		var copied int64
		copied, err = io.CopyN(w, f.File, piece)
		n += copied
		for _, file := range []any{f.File, w} {
			if file, ok := file.(*os.File); ok {
				if evicted := probe.EvictFile(file); evicted != nil && !errors.Is(evicted, probe.ErrUnsupported) {
					return n, evicted
				}
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
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
