package bench

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store/driver"
)

const (
	runPrefix  = "run-"
	lockSuffix = ".lock"
)

// lock takes the lock of a data set, and waits for it until ctx is done.
func (c *Cache) lock(ctx context.Context, key string) (*os.File, error) {
	return filelease.Wait(ctx, c.path(key)+lockSuffix, 0o644)
}

// RunDir is a directory for one run's database, on the cache's disk. Remove
// takes it away; what a killed process has left is taken away by the next run.
type RunDir struct {
	path string
	held *os.File // locked while the run lives
}

// NewRun makes the directory of a run, after removing those of runs that ended
// without doing so.
func (c *Cache) NewRun() (*RunDir, error) {
	if err := c.sweep(runPrefix, true); err != nil {
		return nil, err
	}
	held, err := os.CreateTemp(c.root, runPrefix+"*"+lockSuffix)
	if err != nil {
		return nil, err
	}
	r := &RunDir{path: strings.TrimSuffix(held.Name(), lockSuffix), held: held}
	if err = filelease.Lock(held); err == nil { // before there is something to sweep
		err = os.Mkdir(r.path, 0o755)
	}
	return r, err
}

// Data returns the directory for the database, which does not exist yet.
func (r *RunDir) Data() string { return filepath.Join(r.path, dataDir) }

// Remove takes the directory away. The database must be closed.
func (r *RunDir) Remove() error {
	return errors.Join(os.RemoveAll(r.path), os.Remove(r.held.Name()), r.held.Close())
}

// SweepCache removes from the cache what killed processes left: the databases of
// runs, and data sets that are not complete.
func SweepCache() error {
	c, err := OpenCache("")
	if err != nil {
		return err
	}
	return c.sweep("", false)
}

// EmptyCache removes all of the cache that is not in use.
func EmptyCache() error {
	c, err := OpenCache("")
	if err != nil {
		return err
	}
	return c.sweep("", true)
}

// sweep removes the directories whose names begin so and whose locks nobody holds, but
// complete data sets only if it is to.
func (c *Cache) sweep(prefix string, complete bool) error {
	locks, err := fs.Glob(os.DirFS(c.root), prefix+"*"+lockSuffix)
	errs := []error{err}
	for _, lock := range locks {
		errs = append(errs, sweep(c.path(strings.TrimSuffix(lock, lockSuffix)), complete))
	}
	return errors.Join(errs...)
}

func sweep(dir string, complete bool) error {
	if _, err := os.Stat(dir); err != nil {
		return nil // it is about to be made, or somebody has removed it
	}
	held, err := filelease.Open(dir+lockSuffix, 0o644)
	if errors.Is(err, driver.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = os.Stat(filepath.Join(dir, markerFile)); complete || errors.Is(err, os.ErrNotExist) {
		err = os.RemoveAll(dir)
	}
	if strings.HasPrefix(filepath.Base(dir), runPrefix) {
		err = errors.Join(err, os.RemoveAll(held.Name())) // a data set keeps its lock
	}
	return errors.Join(err, held.Close())
}
