package bench

import (
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Engine says how databases of one linked engine are named. Its package must be
// imported for its side effect.
type Engine struct {
	Name   string            // the URL scheme, and the value in names of benchmarks
	Params map[string]string // engine parameters for every database, such as page_size
}

// URL returns the URL of the database in a directory.
func (e Engine) URL(dir string) string {
	u := url.URL{Scheme: e.Name, Path: filepath.ToSlash(filepath.Join(dir, engine.Find(e.Name).File))}
	values := url.Values{}
	for name, value := range e.Params {
		values.Set(name, value)
	}
	u.RawQuery = values.Encode()
	return u.String()
}

// Driver returns what the linked engine says of itself.
func (e Engine) Driver() (driver.Driver, error) {
	d, ok := driver.Lookup(e.Name)
	if !ok {
		return d, fmt.Errorf("engine %q is not linked into this program: import its package: %w", e.Name, store.ErrUnsupported)
	}
	return d, nil
}
