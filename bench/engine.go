package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/storeurl"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Engine describes how databases of one linked engine are named. The engine's
// package must be imported for its side effect.
type Engine struct {
	Name   string            // the URL scheme, and the value in names of benchmarks
	Params map[string]string // engine parameters for every database, such as page_size

	// Server is the URL of a server that the user runs. Each run creates a
	// database there and removes it afterwards. Empty means files, or the
	// server that the engine's package starts.
	Server string `json:"-"`
}

// Label names the engine in records; for a user's server it includes the host.
func (e Engine) Label() string {
	if e.Server == "" {
		return e.Name
	}
	host := ""
	if u, err := driver.ParseURL(e.Server); err == nil {
		host = u.Hostname()
	}
	return e.Name + "@" + cmp.Or(host, "localhost")
}

// newDatabase returns the URL of a new database, in a directory or on the
// server, and for a server the function that removes it.
func (e Engine) newDatabase(ctx context.Context, dir string) (rawURL string, drop func() error, err error) {
	if e.Server == "" {
		return e.URL(dir), nil, nil
	}
	rawURL, remove, err := storeurl.Scratch(ctx, e.Server)
	if err != nil {
		return "", nil, err
	}
	return rawURL, func() error { return remove(context.WithoutCancel(ctx)) }, nil
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

// Driver returns the linked engine's description.
func (e Engine) Driver() (driver.Driver, error) {
	d, ok := driver.Lookup(e.Name)
	if !ok {
		return d, fmt.Errorf("engine %q is not linked into this program: import its package: %w", e.Name, store.ErrUnsupported)
	}
	return d, nil
}
