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

// checkOut puts a data set into the directory of a run, and builds it first when it is
// missing, incomplete or damaged. In place it moves the data set. The ready marker is removed
// first, so that a crash, whenever it comes, forces a rebuild. The lock that it returns then keeps
// others waiting until the run has ended.
func (c *Cache) checkOut(ctx context.Context, dir, key string, inPlace bool, build builder) (r Ready, held *os.File, err error) {
	if held, err = c.lock(ctx, key); err != nil {
		return r, nil, err
	}
	if r, err = c.ready(key); err != nil {
		r, err = c.build(ctx, key, build)
	}
	data := filepath.Join(c.path(key), dataDir)
	if !inPlace {
		if err == nil {
			err = cloneTree(dir, data)
		}
		return r, nil, errors.Join(err, held.Close())
	}
	if err == nil {
		err = os.Remove(filepath.Join(c.path(key), markerFile))
	}
	if err == nil {
		err = filesync.Dir(c.path(key))
	}
	if err == nil {
		err = os.Rename(data, dir)
	}
	return r, held, err
}

// checkIn moves a data set that was used in place back and marks it as complete. Its files
// may be others: engines change them for readers too.
func (c *Cache) checkIn(dir string, r Ready) error {
	err := flush(dir)
	if err == nil {
		err = os.Rename(dir, filepath.Join(c.path(r.Key), dataDir))
	}
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
