// Package storeurl parses the URLs of stores: the engine that opens a store,
// and its options.
package storeurl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/layout/compact"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Target is the result of parsing a URL with options.
type Target struct {
	Driver  driver.Driver
	URL     *url.URL // without parameters
	Options driver.Options
	Layout  string // of the entities, or ""
	Backlog int    // store.EntityOptions.Backlog, or 0
}

// Parse parses a URL. Options that are not zero take precedence. The error is
// driver.ErrURL, and also entity.ErrInvalid, or driver.ErrUnsupported for an
// engine that is not linked. It shows no password or token.
func Parse(rawURL string, opts *driver.Options) (Target, error) {
	t, err := parse(rawURL, opts)
	if err != nil {
		if !errors.Is(err, driver.ErrUnsupported) {
			err = driver.Of(entity.ErrInvalid, err)
		}
		err = driver.Of(driver.ErrURL, fmt.Errorf("open %s: %w", driver.Redact(rawURL), err))
	}
	return t, err
}

func parse(rawURL string, opts *driver.Options) (Target, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return Target{}, err
	}
	if u.Scheme == "" {
		return Target{}, fmt.Errorf("no engine named; write for example sqlite:%s", driver.Redact(rawURL))
	}
	d, ok := driver.Lookup(u.Scheme)
	if !ok {
		return Target{}, notLinked(u.Scheme)
	}
	t := Target{Driver: d, URL: u, Options: driver.Options{Params: map[string]string{}}}
	values, err := url.ParseQuery(u.RawQuery)
	u.RawQuery = ""
	if err != nil { // whose text may have a part of a token
		return Target{}, errors.New("its parameters have a wrong escape, or a semicolon; between parameters stands &")
	}
	for param, list := range values {
		if err := t.set(param, list); err != nil {
			return Target{}, fmt.Errorf("parameter %s: %w", param, err)
		}
	}
	if opts != nil {
		t.Options = override(t.Options, *opts)
	}
	t.Options = t.Options.WithDefaults()
	return t, checkOptions(t.Options)
}

func notLinked(scheme string) error {
	var names []string
	for _, d := range driver.Linked() {
		names = append(names, d.Name)
	}
	linked := "linked are: " + strings.Join(names, ", ")
	if len(names) == 0 {
		linked = "none is linked"
	}
	if slices.Contains(engine.Names(), scheme) {
		return driver.Of(driver.ErrUnsupported, fmt.Errorf("engine %q is not linked into this program (%s); add import _ %q", scheme, linked, engine.Find(scheme).Package()))
	}
	return driver.Of(driver.ErrUnsupported, fmt.Errorf("unknown engine %q (%s)", scheme, linked))
}

// set applies one URL parameter. Unknown names are left to the engine, if it
// knows them.
func (t *Target) set(name string, list []string) (err error) {
	if len(list) != 1 {
		return fmt.Errorf("given %d times, want once", len(list))
	}
	value := list[0]
	if i := slices.IndexFunc(params, func(p param) bool { return p.name == name }); i >= 0 {
		return params[i].set(t, value)
	}
	if _, known := t.Driver.Params[name]; !known {
		return fmt.Errorf("unknown; known are %s", strings.Join(t.known(), ", "))
	}
	t.Options.Params[name] = value
	return nil
}

// param is a parameter that all engines share.
type param struct {
	name, meaning string
	set           func(t *Target, value string) error
}

var params = []param{
	{"durability", "what a commit promises when power fails: durable, relaxed or unsafe, as the engine offers (default durable)",
		func(t *Target, v string) (err error) {
			t.Options.Durability, err = driver.ParseDurability(v)
			return err
		}},
	{"checkpoint", "who copies the log into the database, where the engine leaves that open: background, inline or manual (default background)",
		func(t *Target, v string) (err error) {
			t.Options.Checkpoint, err = driver.ParseCheckpointPolicy(v)
			return err
		}},
	{"checkpoint_frames", "pages of the log from which it is copied, above 0 (default those of 16 MiB, with inline 1000)",
		func(t *Target, v string) (err error) { t.Options.WALFrames, err = positive(v); return err }},
	{"readers", fmt.Sprintf("snapshots that are open at once, above 0 (default %d)", driver.DefaultReaders),
		func(t *Target, v string) (err error) { t.Options.Readers, err = positive(v); return err }},
	{"concurrency", "how many snapshots work at the same time, above 0 (default the processors that Go uses; of a server, readers)",
		func(t *Target, v string) (err error) { t.Options.Concurrency, err = positive(v); return err }},
	{"memory", fmt.Sprintf("bytes for caching, above 0, with a suffix such as KiB or GiB (default %dMiB)", driver.DefaultMemory>>20),
		func(t *Target, v string) (err error) { t.Options.Memory, err = driver.ParseBytes(v); return err }},
	{"lock_timeout", fmt.Sprintf("longest wait for a database that another process writes, above 0, such as 500ms (default %v)", driver.DefaultLockTimeout),
		func(t *Target, v string) (err error) { t.Options.LockTimeout, err = duration(v); return err }},
	{"max_reader_age", fmt.Sprintf("age from which a snapshot may be ended that holds back a full log, above 0, such as 30s (default %v)", driver.DefaultMaxReaderAge),
		func(t *Target, v string) (err error) { t.Options.MaxReaderAge, err = duration(v); return err }},
	{"read_only", "true to open what is there and write nothing, or false (default false)",
		func(t *Target, v string) (err error) { t.Options.ReadOnly, err = strconv.ParseBool(v); return err }},
	{"layout", "layout of the entities (default what the database has, else " + schemas.DefaultLayout + ")", (*Target).setLayout},
	{"backlog", fmt.Sprintf("changes that compact may leave unmerged, above 0 (default %d)", compact.DefaultBacklog),
		func(t *Target, v string) (err error) { t.Backlog, err = positive(v); return err }},
}

// Params documents the URL parameters that all engines share: name to meaning.
// An engine's own parameters are in its driver.Driver.
func Params() map[string]string {
	all := make(map[string]string, len(params))
	for _, p := range params {
		all[p.name] = p.meaning
	}
	return all
}

// setLayout sets the layout of a URL. It is checked here, so that a mistyped
// layout does not create a database.
func (t *Target) setLayout(value string) error {
	if !slices.Contains(schemas.EntityLayouts(), value) {
		return fmt.Errorf("unknown layout %q; known are %s", value, strings.Join(schemas.Layouts(), ", "))
	}
	t.Layout = value
	return nil
}

func (t *Target) known() []string {
	all := Params()
	maps.Copy(all, t.Driver.Params)
	return slices.Sorted(maps.Keys(all))
}

func positive(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("want a positive number, got %q", value)
	}
	return n, nil
}

func duration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a duration such as 500ms or 5s, got %q", value)
	}
	return d, nil
}

// checkOptions refuses options that no engine accepts. A URL's options are
// already checked; this is for options given in Go.
func checkOptions(o driver.Options) error {
	_, err := driver.ParseDurability(string(o.Durability))
	if err == nil && o.Checkpoint != "" {
		_, err = driver.ParseCheckpointPolicy(string(o.Checkpoint))
	}
	if err == nil && min(int64(o.WALFrames), o.Memory, int64(o.Readers), int64(o.Concurrency), int64(o.LockTimeout), int64(o.MaxReaderAge)) < 0 {
		o.Params = nil // which may have a token
		err = fmt.Errorf("an option below zero: %+v", o)
	}
	return err
}

// override returns base with the non-zero fields of over.
func override(base, over driver.Options) driver.Options {
	base.Durability = cmp.Or(over.Durability, base.Durability)
	base.Checkpoint = cmp.Or(over.Checkpoint, base.Checkpoint)
	base.WALFrames = cmp.Or(over.WALFrames, base.WALFrames)
	base.Readers = cmp.Or(over.Readers, base.Readers)
	base.Concurrency = cmp.Or(over.Concurrency, base.Concurrency)
	base.Memory = cmp.Or(over.Memory, base.Memory)
	base.LockTimeout = cmp.Or(over.LockTimeout, base.LockTimeout)
	base.MaxReaderAge = cmp.Or(over.MaxReaderAge, base.MaxReaderAge)
	base.ReadOnly = base.ReadOnly || over.ReadOnly
	maps.Copy(base.Params, over.Params)
	return base
}
