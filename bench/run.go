package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store/driver"
)

const (
	runsDir    = "runs"
	runLock    = "lock" // in the directory of a run
	lockSuffix = ".lock"
)

// lockPoll is how often a lock that another process holds is tried.
const lockPoll = 50 * time.Millisecond

// lock takes the lock of a data set or of runsDir, and waits for it until ctx is
// done. Closing the file gives the lock back, and so does the end of the process.
func (c *Cache) lock(ctx context.Context, key string) (*os.File, error) {
	path := c.path(key) + lockSuffix
	for {
		f, err := tryLock(path)
		if f != nil || err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %q: %w", path, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// tryLock takes the lock of a file, which it makes if need be, or returns nil when
// another has it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = filelease.Lock(f)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, driver.ErrLocked):
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), f.Close())
}

// RunDir is a directory for one run's database, on the cache's disk. Remove
// takes it away; what a killed process has left is taken away by the next run.
type RunDir struct {
	cache *Cache
	path  string
	held  *os.File // locked while the run lives
}

// NewRun makes the directory of a run, after removing those of runs that ended
// without doing so.
func (c *Cache) NewRun(ctx context.Context) (*RunDir, error) {
	held, err := c.lock(ctx, runsDir) // nobody sweeps while the directory has no lock
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if err := c.sweepRuns(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.path(runsDir), "")
	if err != nil {
		return nil, err
	}
	own, err := tryLock(filepath.Join(dir, runLock))
	return &RunDir{cache: c, path: dir, held: own}, err
}

// Data returns the directory for the database, which does not exist yet.
func (r *RunDir) Data() string { return filepath.Join(r.path, dataDir) }

// Remove takes the directory away. The database must be closed.
func (r *RunDir) Remove() error {
	held, err := r.cache.lock(context.Background(), runsDir)
	if err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return errors.Join(os.RemoveAll(r.path), r.held.Close(), held.Close())
}

// SweepCache removes from the cache what killed processes left: the databases of
// runs, and data sets that are not complete.
func SweepCache() error {
	c, err := OpenCache("")
	if err != nil {
		return err
	}
	held, err := c.lock(context.Background(), runsDir)
	if err != nil {
		return fmt.Errorf("sweep the cache: %w", err)
	}
	defer held.Close()
	entries, err := os.ReadDir(c.root)
	errs := []error{err, c.sweepRuns()}
	for _, entry := range entries {
		if key, isLock := strings.CutSuffix(entry.Name(), lockSuffix); isLock && key != runsDir {
			errs = append(errs, sweep(c.path(key), c.path(entry.Name())))
		}
	}
	return errors.Join(errs...)
}

// sweepRuns removes the directories of runs that have ended.
func (c *Cache) sweepRuns() error {
	entries, err := os.ReadDir(c.path(runsDir))
	errs := []error{err}
	for _, entry := range entries {
		dir := filepath.Join(c.path(runsDir), entry.Name())
		errs = append(errs, sweep(dir, filepath.Join(dir, runLock)))
	}
	return errors.Join(errs...)
}

// sweep removes a directory when nobody holds its lock, but no complete data set.
func sweep(dir, lockFile string) error {
	held, err := tryLock(lockFile)
	if held == nil {
		return err
	}
	if _, err = os.Stat(filepath.Join(dir, markerFile)); errors.Is(err, os.ErrNotExist) {
		err = os.RemoveAll(dir)
	}
	return errors.Join(err, held.Close())
}
