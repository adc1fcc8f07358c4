package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

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
		const gb = 1e9
		return false, fmt.Errorf("%w: about %.1f GB are needed in %s and %.1f are free; remove other data sets there, choose a smaller scale, or set %s to a directory on another disk",
			driver.ErrDiskFull, float64(build+spareSpace)/gb, c.root, float64(free)/gb, CacheEnv)
	}
	return c.InPlace || build+estimate+spareSpace > free, nil
}

// A row takes about rowBytes, and indexBytes in each of the layout's indexes, which
// all are of one of three tables.
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

// cloneTree copies a closed database: files, directories with their
// permissions, and symbolic links. Files share their blocks with the original
// where the system and its file system can, which io.Copy asks for. All is on the
// disk when it returns, so that a measurement that follows does not pay for it.
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
	return errors.Join(err, flush(dst))
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
