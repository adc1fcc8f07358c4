package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store"
)

// File returns the path of a file that is kept under a key as data sets are. Where it is
// missing, write makes it: it is there when it is whole.
func (c *Cache) File(ctx context.Context, key, name string, write func(f *os.File) error) (path string, err error) {
	held, err := c.lock(ctx, key)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	dir := c.path(key)
	path, marker := filepath.Join(dir, name), filepath.Join(dir, markerFile)
	if exists(path) && exists(marker) {
		return path, nil
	}
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = filesync.Write(path, 0o600, write)
	}
	if err == nil {
		err = filesync.Replace(marker, []byte("{}\n"), 0o644)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w; remove other data sets in %s, or set %s to a directory on another disk", store.ErrDiskFull, err, c.root, CacheEnv)
	}
	return path, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Told begins a report on long work, of a total of zero where that is not known.
func (c *Cache) Told(name, unit string, total int64) Progress {
	if c == nil || c.Progress == nil {
		return silent{}
	}
	return c.Progress(name, unit, total)
}

// silent reports nothing.
type silent struct{}

func (silent) Set(int64) {}
func (silent) Finish()   {}
