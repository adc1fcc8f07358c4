package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
)

// CacheEnv is the environment variable that names the cache's directory. It
// decides on which disk databases are measured, too.
const CacheEnv = "VARVE_CACHE"

// Progress is told how many units of long work are done, and its end.
type Progress interface {
	Set(done int64)
	Finish()
}

// Cache keeps data sets, each built once, for runs that use a copy or the data set itself:
//
//	<root>/<key>/data        the closed database
//	<root>/<key>/ready.json  written last: the data set is complete
//	<root>/<key>.lock        held while it is built or copied, or used in place
//	<root>/run-<n>/data      what is in use, on the same disk, with its lock
//
// Several processes may share it. Anything in it may be deleted while no
// benchmark runs.
type Cache struct {
	// InPlace uses the data sets themselves and no copies, as is right for what only reads,
	// and is done for others where the disk has no room for a copy. What has changed is
	// built again when it is needed next. One user at a time has a data set; others wait.
	InPlace bool

	// Progress, unless it is nil, begins a report on building a data set of total units;
	// zero means unknown.
	Progress func(name, unit string, total int64) Progress

	root string
}

// OpenCache returns the cache in a directory and makes it if need be. Empty
// means that of CacheEnv, else "varve/datasets" in the user's cache directory.
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
	Spec    any     `json:"spec,omitempty"` // for people
	Head    uint64  `json:"head"`
	Digest  string  `json:"digest"` // of the head
	Counts  Counts  `json:"counts"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // it took to build
}

// builder makes a database in an empty directory, closes it, and describes it;
// Key and Bytes are filled in for it.
type builder func(ctx context.Context, dir string) (Ready, error)

// drop forgets a data set, so that it is built again.
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

// ready returns the description of a data set, or an error that says why it
// cannot be used.
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

// build replaces whatever is there. The marker appears at once and last.
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

// seal marks a data set as complete, with the size that it has now.
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
