package store

import (
	"cmp"
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
)

// target is what a URL and options come to.
type target struct {
	driver  driver.Driver
	url     *url.URL
	options driver.Options
	layout  string // of the entities
	backlog int    // EntityOptions.Backlog
}

func parseURL(rawURL string, opts *Options) (target, error) {
	name := driver.Redact(rawURL) // for errors: none may show a password or token
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return target{}, fmt.Errorf("open %s: %w: %w", name, ErrInvalid, err)
	}
	if u.Scheme == "" {
		return target{}, fmt.Errorf("open %q: %w: no engine named; write for example sqlite:%s", name, ErrInvalid, name)
	}
	d, ok := driver.Lookup(u.Scheme)
	if !ok {
		return target{}, notLinked(u.Scheme)
	}
	t := target{driver: d, url: u, options: driver.Options{Params: map[string]string{}}}
	values, err := url.ParseQuery(u.RawQuery)
	u.RawQuery = ""
	if err != nil { // whose text may have a part of a token
		return target{}, fmt.Errorf("open %s: %w: its parameters have a wrong escape, or a semicolon", name, ErrInvalid)
	}
	for param, list := range values {
		if err := t.set(param, list); err != nil {
			return target{}, fmt.Errorf("open %s: parameter %s: %w: %w", name, param, ErrInvalid, err)
		}
	}
	if opts != nil {
		t.options = override(t.options, *opts)
	}
	t.options = t.options.WithDefaults()
	if err := checkOptions(t.options); err != nil {
		return target{}, fmt.Errorf("open %s: %w", name, err)
	}
	return t, nil
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
		return fmt.Errorf("engine %q is not linked into this program (%s); add import _ %q: %w", scheme, linked, engine.Find(scheme).Package(), ErrUnsupported)
	}
	return fmt.Errorf("unknown engine %q (%s): %w", scheme, linked, ErrUnsupported)
}

// set takes one URL parameter. Names that are not the store's are left to the
// engine, if it knows them.
func (t *target) set(name string, list []string) (err error) {
	if len(list) != 1 {
		return fmt.Errorf("given %d times", len(list))
	}
	value := list[0]
	if i := slices.IndexFunc(params, func(p param) bool { return p.name == name }); i >= 0 {
		return params[i].set(t, value)
	}
	if _, known := t.driver.Params[name]; !known {
		return fmt.Errorf("unknown; known are %s", strings.Join(t.known(), ", "))
	}
	t.options.Params[name] = value
	return nil
}

// param is a parameter that is the store's and so of every engine.
type param struct {
	name, meaning string
	set           func(t *target, value string) error
}

var params = []param{
	{"durability", "what a commit promises when power fails: durable, relaxed or unsafe, as the engine offers (default durable)",
		func(t *target, v string) (err error) {
			t.options.Durability, err = driver.ParseDurability(v)
			return err
		}},
	{"checkpoint", "who copies the log into the database, where the engine leaves that open: background, inline or manual (default background)",
		func(t *target, v string) (err error) {
			t.options.Checkpoint, err = driver.ParseCheckpointPolicy(v)
			return err
		}},
	{"checkpoint_frames", "pages of the log from which it is copied, above 0 (default those of 16 MiB, with inline 1000)",
		func(t *target, v string) (err error) { t.options.WALFrames, err = positive(v); return err }},
	{"readers", fmt.Sprintf("snapshots that are open at once, above 0 (default %d)", driver.DefaultReaders),
		func(t *target, v string) (err error) { t.options.Readers, err = positive(v); return err }},
	{"concurrency", "snapshots that are at work beside each other, above 0 (default the processors that Go uses; of a server, readers)",
		func(t *target, v string) (err error) { t.options.Concurrency, err = positive(v); return err }},
	{"memory", fmt.Sprintf("bytes for caching, above 0, with a suffix such as KiB or GiB (default %dMiB)", driver.DefaultMemory>>20),
		func(t *target, v string) (err error) { t.options.Memory, err = ParseBytes(v); return err }},
	{"lock_timeout", fmt.Sprintf("longest wait for a database that another process writes, above 0, such as 500ms (default %v)", driver.DefaultLockTimeout),
		func(t *target, v string) (err error) { t.options.LockTimeout, err = duration(v); return err }},
	{"max_reader_age", fmt.Sprintf("age from which a snapshot may be ended that holds back a full log, above 0, such as 30s (default %v)", driver.DefaultMaxReaderAge),
		func(t *target, v string) (err error) { t.options.MaxReaderAge, err = duration(v); return err }},
	{"read_only", "true to open what is there and write nothing, or false (default false)",
		func(t *target, v string) (err error) { t.options.ReadOnly, err = strconv.ParseBool(v); return err }},
	{"layout", "that of entities (default what the database has, else " + DefaultLayout + ")", (*target).setLayout},
	{"backlog", fmt.Sprintf("changes that compact may leave unmerged, above 0 (default %d)", compact.DefaultBacklog),
		func(t *target, v string) (err error) { t.backlog, err = positive(v); return err }},
}

// Params documents the parameters of URLs that every engine takes: name to meaning. Those
// of one engine are in its driver.Driver.
func Params() map[string]string {
	all := make(map[string]string, len(params))
	for _, p := range params {
		all[p.name] = p.meaning
	}
	return all
}

// setLayout takes the layout of a URL. It is checked here, so that a mistyped one makes no
// database.
func (t *target) setLayout(value string) error {
	if !slices.Contains(schemas.EntityLayouts(), value) {
		return fmt.Errorf("unknown layout %q; known are %s", value, strings.Join(Layouts(), ", "))
	}
	t.layout = value
	return nil
}

func (t *target) known() []string {
	all := Params()
	maps.Copy(all, t.driver.Params)
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

// checkOptions refuses options that no engine accepts. Those of a URL have been
// checked; this is for those given in Go.
func checkOptions(o driver.Options) error {
	if _, err := driver.ParseDurability(string(o.Durability)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if o.Checkpoint != "" {
		if _, err := driver.ParseCheckpointPolicy(string(o.Checkpoint)); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if o.WALFrames < 0 || o.Memory < 0 || o.Readers < 0 || o.Concurrency < 0 || o.LockTimeout < 0 || o.MaxReaderAge < 0 {
		return fmt.Errorf("%w: negative option in %+v", ErrInvalid, o)
	}
	return nil
}

// ParseBytes reads a number of bytes: "1048576", "64KiB", "256MiB", "1GiB"; the
// suffixes KB, MB and GB mean the same powers of 1024.
func ParseBytes(s string) (int64, error) {
	number, shift := s, 0
	for i, unit := range []string{"K", "M", "G"} {
		for _, suffix := range []string{unit + "iB", unit + "B", unit} {
			if rest, ok := strings.CutSuffix(s, suffix); ok && shift == 0 {
				number, shift = rest, 10*(i+1)
			}
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("want a number of bytes such as 256MiB, got %q", s)
	}
	return n << shift, nil
}

// override returns base with the fields that over sets.
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
