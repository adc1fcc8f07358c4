package driver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
)

// Driver opens databases of one engine.
type Driver struct {
	// Name is the engine's name and its URL scheme.
	Name string

	// Open opens the database that u names, making it when it does not exist
	// and opts.ReadOnly is false. U has no query: the caller has moved it into
	// opts. When Open fails nothing it started remains.
	Open func(ctx context.Context, u *url.URL, opts Options) (Engine, error)

	// Scratch makes an empty database at the server of a URL, without touching
	// the databases there. It returns the parameters that name the new
	// database, to be added to opts, and the function that removes it. It is
	// nil for engines without servers, and fails with ErrUnsupported for a URL
	// that names no server.
	Scratch func(ctx context.Context, u *url.URL, opts Options) (params map[string]string, drop func(ctx context.Context) error, err error)

	// Params documents the engine-specific URL parameters: name to meaning.
	Params map[string]string

	// Capabilities of a database that is opened with default options, for
	// listing engines without opening one.
	Capabilities Capabilities

	// Info is that of the linked library. Version is empty when it is known
	// only once a database is open.
	Info Info
}

var registry = struct {
	sync.RWMutex
	byName map[string]Driver
}{byName: map[string]Driver{}}

// Register makes a driver available under its name. It panics when the name is
// taken: two engines for one scheme in one binary is a programming error.
func Register(d Driver) {
	registry.Lock()
	defer registry.Unlock()
	if _, dup := registry.byName[d.Name]; dup {
		panic(fmt.Sprintf("driver: %q registered twice", d.Name))
	}
	registry.byName[d.Name] = d
}

// Lookup returns the driver registered under a URL scheme.
func Lookup(scheme string) (Driver, bool) {
	registry.RLock()
	defer registry.RUnlock()
	d, ok := registry.byName[scheme]
	return d, ok
}

// Linked returns the registered drivers, sorted by name.
func Linked() []Driver {
	registry.RLock()
	defer registry.RUnlock()
	return slices.SortedFunc(maps.Values(registry.byName), func(a, b Driver) int { return cmp.Compare(a.Name, b.Name) })
}
