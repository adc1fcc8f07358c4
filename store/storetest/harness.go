// Package storetest tests the contract of every engine and layout: of the
// engine itself, of entities and blocks, of queries and of events. The reference
// is a model in memory. An engine package runs the suites from one test file:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{NewURL: func(t testing.TB) string {
//			return "sqlite://" + t.TempDir() + "/varve.db"
//		}})
//	}
package storetest

import (
	"context"
	"flag"
	"iter"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// Harness makes databases of one engine for tests.
type Harness struct {
	// NewURL returns the URL of a database that does not exist yet or
	// is empty, and that no other test uses. It registers its cleanup with t.
	NewURL func(t testing.TB) string

	// Server: databases belong to a server. Their files, missing databases and
	// opening for reading only are not tested.
	Server bool

	// Checks, if not zero, is the number of random histories on each layout.
	// It is for engines that open and commit slowly. Tests that depend on
	// layouts or package store only are then shortened, because quick engines
	// run them whole.
	Checks int

	// Layouts are the entity layouts to test. Nil means store.Layouts and two
	// layouts of the lab: one without indexes and one of the ablation. With nil
	// runDifferential tries all layouts of the lab.
	Layouts []string

	// connect is the argument of RunEventStore; nil: the store in this process
	// is tested.
	connect func(t testing.TB, db *store.DB) event.Checkpointer

	layout  string // of the entities, in suites that run on several
	durable bool   // quickURL is to be durable
}

// slow reports that only the parts that an engine can get wrong are tested.
func (h Harness) slow() bool { return h.Checks > 0 }

func (h Harness) layouts() []string {
	if h.Layouts != nil && !*everyLayout {
		return h.Layouts
	}
	return append(schemas.Layouts(), "bare", "arkiv-7")
}

var everyLayout = flag.Bool("varve.layouts", false, "run each suite on each layout, which takes minutes")

// tables returns a name for the tables of a layout. Layouts with the same
// tables differ in indexes only: in how entities are found, not in how they are
// written.
func tables(layout string) string {
	if layout == "bare" {
		return "arkiv"
	}
	name, _, _ := strings.Cut(layout, "-")
	return name
}

// repeats reports whether an earlier layout in the list has the same tables.
// Then only the indexes need further tests.
func (h Harness) repeats() bool {
	list := h.layouts()
	before := list[:max(slices.Index(list, h.layout), 0)]
	return !*everyLayout && slices.ContainsFunc(before, func(l string) bool { return tables(l) == tables(h.layout) })
}

// with returns the harness with a layout of entities.
func (h Harness) with(layout string) Harness {
	h.layout = layout
	return h
}

// open opens a database and closes it when the test ends.
func (h Harness) open(t testing.TB, url string, opts *store.Options) *store.DB {
	t.Helper()
	db := must(store.Open(t.Context(), url, opts))(t)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// must returns the first result of a call that has to succeed:
//
//	head := must(ents.Head(ctx))(t)
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// refuses checks that a call fails with an error, and the text of the error:
//
//	refuses(t, store.ErrInvalid, "no events")(evs.Append(ctx, nil, nil))
func refuses(t testing.TB, want error, says ...string) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		require.ErrorIs(t, err, want)
		for _, text := range says {
			require.ErrorContains(t, err, text)
		}
	}
}

// call returns the result of a method that takes only a context and has to
// succeed.
func call[T any](t testing.TB, f func(context.Context) (T, error)) T {
	t.Helper()
	return must(f(t.Context()))(t)
}

// call1 is call with one argument.
func call1[A, T any](t testing.TB, f func(context.Context, A) (T, error), arg A) T {
	t.Helper()
	return must(f(t.Context(), arg))(t)
}

// collect returns the elements of a sequence, which has to end without an
// error.
func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	return must(model.Collect(seq))(t)
}

// newFile returns the URL and the path of a new database that is a file.
func (h Harness) newFile(t testing.TB) (rawURL, path string) {
	t.Helper()
	rawURL = h.NewURL(t)
	return rawURL, filePath(t, rawURL)
}

// closeDB closes a database.
func closeDB(t testing.TB, db *store.DB) {
	t.Helper()
	require.NoError(t, db.Close())
}

// openDB opens a database that the test closes.
func openDB(t testing.TB, url string) *store.DB {
	t.Helper()
	return must(store.Open(t.Context(), url, nil))(t)
}

// refuseOpen checks that a database is not opened, that the error is want,
// unless that is nil, and its text.
func refuseOpen(t testing.TB, url string, opts *store.Options, want error, says string) {
	t.Helper()
	_, err := store.Open(t.Context(), url, opts)
	require.ErrorContains(t, err, says)
	if want != nil {
		require.ErrorIs(t, err, want, "open %s with %+v", url, opts)
	}
}

// quickURL returns the URL of a new database with the weakest durability of the
// engine. It is for tests that open many databases and lose none.
func (h Harness) quickURL(t testing.TB) string {
	t.Helper()
	rawURL := h.NewURL(t)
	if h.durable {
		return rawURL
	}
	levels := linkedDriver(t, rawURL).Capabilities.Durabilities
	require.NotEmpty(t, levels, "an engine accepts at least one durability")
	return withParams(t, rawURL, "durability", string(levels[len(levels)-1]))
}

// linkedDriver returns the driver of a URL.
func linkedDriver(t testing.TB, rawURL string) driver.Driver {
	t.Helper()
	u := must(url.Parse(rawURL))(t)
	d, ok := driver.Lookup(u.Scheme)
	require.True(t, ok, "engine %q is not linked", u.Scheme)
	return d
}

// withParams returns a URL with further parameters, given as name, value, ….
func withParams(t testing.TB, rawURL string, pairs ...string) string {
	t.Helper()
	u := must(url.Parse(rawURL))(t)
	values := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = values.Encode()
	return u.String()
}

// parts are the tests of one subject in the order in which they run.
type parts[T any] []struct {
	name string
	test func(*testing.T, T)
}

func (list parts[T]) run(t *testing.T, subject T) {
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) { p.test(t, subject) })
	}
}

// Run runs every suite.
func Run(t *testing.T, h Harness) {
	parts[Harness]{
		{"driver", runDriver},
		{"entities", runEntities},
		{"query", runQuery},
		{"differential", runDifferential},
	}.run(t, h)
	if slices.Contains(h.layouts(), "compact") {
		t.Run("compact", func(t *testing.T) { runCompact(t, h) })
	}
	parts[Harness]{
		{"events", runEvents},
		{"creation", runCreation},
		{"check", runCheck},
		{"concurrent", runConcurrent},
		{"arkiv", runArkiv},
	}.run(t, h)
}
