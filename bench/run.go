package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const runsDir = "runs"

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
	runs := filepath.Join(c.root, runsDir)
	held, err := c.lockRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("new run: %w", err)
	}
	defer held.Close()
	if err := sweep(runs); err != nil {
		return nil, fmt.Errorf("remove what earlier runs left: %w", err)
	}
	dir, err := os.MkdirTemp(runs, "")
	if err != nil {
		return nil, fmt.Errorf("new run: %w", err)
	}
	own, err := tryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("new run: %w", err)
	}
	return &RunDir{cache: c, path: dir, held: own}, nil
}

// lockRuns keeps others from sweeping while a directory exists without its lock.
func (c *Cache) lockRuns(ctx context.Context) (*os.File, error) {
	return lock(ctx, filepath.Join(c.root, runsDir+".lock"))
}

// sweep removes the directories whose locks nobody holds.
func sweep(runs string) error {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		dir := filepath.Join(runs, entry.Name())
		held, err := tryLock(filepath.Join(dir, "lock"))
		if held != nil {
			err = errors.Join(os.RemoveAll(dir), held.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// SweepCache removes from the cache what killed processes left: the databases of
// runs, and data sets that are not complete.
func SweepCache() error {
	c, err := OpenCache("")
	if err != nil {
		return err
	}
	held, err := c.lockRuns(context.Background())
	if err != nil {
		return fmt.Errorf("sweep the cache: %w", err)
	}
	defer held.Close()
	return errors.Join(sweep(filepath.Join(c.root, runsDir)), c.sweepData())
}

// sweepData removes the data sets without a marker whose locks nobody holds.
func (c *Cache) sweepData() error {
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		key, isLock := strings.CutSuffix(entry.Name(), ".lock")
		if !isLock || key == runsDir {
			continue
		}
		held, err := tryLock(c.path(key) + ".lock")
		if held == nil {
			errs = append(errs, err)
			continue
		}
		if _, err := os.Stat(filepath.Join(c.path(key), markerFile)); errors.Is(err, os.ErrNotExist) {
			errs = append(errs, os.RemoveAll(c.path(key)))
		}
		errs = append(errs, held.Close())
	}
	return errors.Join(errs...)
}

// Data returns the directory for the database, which does not exist yet.
func (r *RunDir) Data() string { return filepath.Join(r.path, dataDir) }

// Remove takes the directory away. The database must be closed.
func (r *RunDir) Remove() error {
	held, err := r.cache.lockRuns(context.Background())
	if err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return errors.Join(os.RemoveAll(r.path), r.held.Close(), held.Close())
}
