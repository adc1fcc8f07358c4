package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store/driver"
)

// CacheEnv is the environment variable that names the cache's directory.
// Databases are measured on the disk of that directory.
const CacheEnv = "VARVE_CACHE"

// Progress receives how many units of a long task are done, and its end.
type Progress interface {
	Set(done int64)
	Finish()
}

// Cache keeps data sets, each built once, for runs that use a copy or the data set itself:
//
//	<root>/<key>/data        the closed database
//	<root>/<key>/ready.json  written last: the data set is complete
//	<root>/<key>.lock        held while it is built or copied, or used in place
//	<root>/run-<n>/data      the database of a run, on the same disk, with its lock
//
// Several processes may share it. Anything in it may be deleted while no benchmark runs.
type Cache struct {
	// InPlace uses a data set itself instead of a copy. It is meant for
	// workloads that only read, or for disks without room for a copy. A data
	// set that was changed is rebuilt before its next use. Only one user at a
	// time may hold a data set; others wait.
	InPlace bool

	// Progress, if not nil, starts a progress report for building a data set of
	// total units; zero means that the total is unknown.
	Progress func(name, unit string, total int64) Progress

	root string
}

// OpenCache opens the cache in a directory and creates it if it is missing. An
// empty root means the directory that CacheEnv names, else "varve/datasets" in
// the user's cache directory.
func OpenCache(root string) (*Cache, error) {
	if root = cmp.Or(root, os.Getenv(CacheEnv)); root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("data-set cache: %w; set %s to a directory", err, CacheEnv)
		}
		root = filepath.Join(user, "varve", "datasets")
	}
	root, err := filepath.Abs(root)
	if err == nil {
		err = os.MkdirAll(root, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("data-set cache: %w; set %s to a directory that can be written", err, CacheEnv)
	}
	return &Cache{root: root}, nil
}

// Root returns the cache's directory.
func (c *Cache) Root() string { return c.root }

const (
	dataDir    = "data"
	markerFile = "ready.json"
)

// Ready describes a complete data set.
type Ready struct {
	Key     string  `json:"key"`
	Head    uint64  `json:"head"`
	Digest  string  `json:"digest"` // of the head
	Counts  Counts  `json:"counts"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // it took to build
}

// builder creates a database in an empty directory, closes it, and describes
// it. The caller fills in Key and Bytes.
type builder func(ctx context.Context, dir string) (Ready, error)

// drop removes a data set, so that the next use rebuilds it.
func (c *Cache) drop(ctx context.Context, key string) error {
	held, err := c.lock(ctx, key)
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(c.path(key)), held.Close())
}

func (c *Cache) path(key string) string { return filepath.Join(c.root, key) }

// data is the directory of a data set's database.
func (c *Cache) data(key string) string { return filepath.Join(c.path(key), dataDir) }

// ready returns the description of a data set, or an error that says why it cannot be used.
func (c *Cache) ready(key string) (r Ready, err error) {
	text, err := os.ReadFile(filepath.Join(c.path(key), markerFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	if r.Key != key {
		return r, fmt.Errorf("marker of another data set, %q", r.Key)
	}
	bytes, err := size(c.data(key))
	if err == nil && bytes != r.Bytes {
		err = fmt.Errorf("%d bytes, want %d", bytes, r.Bytes)
	}
	return r, err
}

// build removes whatever is in the directory and builds the data set. The ready
// marker is written last and atomically.
func (c *Cache) build(ctx context.Context, key string, build builder) (r Ready, err error) {
	dir := c.path(key)
	if err := os.RemoveAll(dir); err != nil {
		return r, err
	}
	if err := os.MkdirAll(c.data(key), 0o755); err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if r, err = build(ctx, c.data(key)); err != nil {
		return r, err
	}
	r.Key = key
	return c.seal(r)
}

// seal writes the ready marker of a data set, with its present size.
func (c *Cache) seal(r Ready) (_ Ready, err error) {
	if r.Bytes, err = size(c.data(r.Key)); err != nil {
		return r, err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return r, err
	}
	return r, filesync.Replace(filepath.Join(c.path(r.Key), markerFile), append(text, '\n'), 0o644)
}

// File returns the path of a file that is cached under a key, like a data set.
// If it is missing, write creates it; it appears under its name only when it is
// complete.
func (c *Cache) File(ctx context.Context, key, name string, write func(f *os.File) error) (path string, err error) {
	held, err := c.lock(ctx, key)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	dir := c.path(key)
	path, marker := filepath.Join(dir, name), filepath.Join(dir, markerFile)
	_, missing := os.Stat(path)
	if _, err := os.Stat(marker); err == nil && missing == nil { // the marker is written last
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
		err = fmt.Errorf("%w: %w; remove other data sets in %s, or set %s to a directory on another disk", driver.ErrDiskFull, err, c.root, CacheEnv)
	}
	return path, err
}

// StartProgress starts a progress report for a long task; a total of zero means unknown.
func (c *Cache) StartProgress(name, unit string, total int64) Progress {
	if c == nil || c.Progress == nil {
		return silent{}
	}
	return c.Progress(name, unit, total)
}

// silent discards progress reports.
type silent struct{}

func (silent) Set(int64) {}
func (silent) Finish()   {}

const (
	runPrefix  = "run-"
	lockSuffix = ".lock"
)

// lock takes the lock of a data set, and waits for it until ctx is done.
func (c *Cache) lock(ctx context.Context, key string) (*os.File, error) {
	return filelease.Wait(ctx, c.path(key)+lockSuffix, 0o644)
}

// RunDir is a directory for one run's database, on the cache's disk. Remove
// removes it; the next run removes the directory of a killed process.
type RunDir struct {
	path string
	held *os.File // locked while the run lives
}

// NewRun creates the directory of a run. It first removes the directories of
// runs that were killed.
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

// Remove deletes the directory. The database must be closed.
func (r *RunDir) Remove() error {
	return errors.Join(os.RemoveAll(r.path), os.Remove(r.held.Name()), r.held.Close())
}

// SweepCache removes the remains of killed processes from the cache: databases
// of runs, and incomplete data sets.
func SweepCache() error {
	c, err := OpenCache("")
	if err != nil {
		return err
	}
	return c.sweep("", false)
}

// EmptyCache removes everything from the cache that is not in use.
func EmptyCache() error {
	c, err := OpenCache("")
	if err != nil {
		return err
	}
	return c.sweep("", true)
}

// sweep removes the directories with a prefix that no process has locked.
// Complete data sets are removed only if complete is set.
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
		return nil // it is about to be made, or another process has removed it
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
