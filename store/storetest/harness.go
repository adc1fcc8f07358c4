// Package storetest is what every engine and layout promises, as tests: the
// engine's contract, the meaning of entities and blocks, and the query
// language, checked against an in-memory reference model. An engine package
// runs the suites from one test file:
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

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// Harness says how tests get databases of one engine.
type Harness struct {
	// NewURL returns the URL of a database that does not exist yet, or is
	// empty, and that nobody else uses. What it needs is cleaned up by t.
	NewURL func(t testing.TB) string

	// Server tells that databases belong to a server that runs without them, so
	// that opening one that does not exist, or one for reading only, is not
	// tested.
	Server bool

	// Checks says that opening and committing are slow: so many random histories are tried
	// on each layout, and of what depends on layouts or on package store alone, which is
	// tried on quick engines, only a part.
	Checks int

	// Layouts are the entity layouts to test; nil means all of store.Layouts, and
	// of those of the lab the one without an index and one of the ablation.
	// runDifferential tries all of the lab.
	Layouts []string

	// connect is that of RunEventStore; nil tests the store in this process.
	connect func(t testing.TB, db *store.DB) event.Checkpointer

	durable bool // quickURL is to be durable
}

// slow tells that only what an engine can get wrong is to be tried.
func (h Harness) slow() bool { return h.Checks > 0 }

func (h Harness) layouts() []string {
	if h.Layouts != nil {
		return h.Layouts
	}
	return append(store.Layouts(), "bare", "arkiv-7")
}

var everyLayout = flag.Bool("varve.layouts", false, "run each suite whole on each layout, also on those that differ from another in their indexes alone")

// tables returns what the tables of a layout are called. Layouts of the same tables differ
// in indexes: in how answers are found, and not in what is written.
func tables(layout string) string {
	if layout == "bare" {
		return "arkiv"
	}
	name, _, _ := strings.Cut(layout, "-")
	return name
}

// repeats tells whether a layout has the tables of one before it, so that what is not about
// finding is tried enough already.
func (h Harness) repeats(layout string) bool {
	list := h.layouts()
	before := list[:max(slices.Index(list, layout), 0)]
	return !*everyLayout && slices.ContainsFunc(before, func(l string) bool { return tables(l) == tables(layout) })
}

// open opens a database and closes it when the test ends.
func (h Harness) open(t testing.TB, url string, opts *store.Options) *store.DB {
	t.Helper()
	db := mustOpen(t, url, opts)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// mustOpen opens a database that the test closes.
func mustOpen(t testing.TB, url string, opts *store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), url, opts)
	require.NoError(t, err)
	return db
}

// What follows makes calls that have to succeed.

func entitiesOf(t testing.TB, db *store.DB, opts store.EntityOptions) *store.Entities {
	t.Helper()
	ents, err := db.Entities(context.Background(), opts)
	require.NoError(t, err)
	return ents
}

func eventsOf(t testing.TB, db *store.DB, opts store.EventOptions) *store.Events {
	t.Helper()
	evs, err := db.Events(context.Background(), opts)
	require.NoError(t, err)
	return evs
}

// headOf returns the head of entities or of events, and summaryOf their summary.
func headOf[H any](t testing.TB, of interface {
	Head(ctx context.Context) (H, error)
}) H {
	t.Helper()
	head, err := of.Head(context.Background())
	require.NoError(t, err)
	return head
}

func summaryOf[S any](t testing.TB, of interface {
	Summary(ctx context.Context) (S, error)
}) S {
	t.Helper()
	summary, err := of.Summary(context.Background())
	require.NoError(t, err)
	return summary
}

func checkOf(t testing.TB, db *store.DB) store.CheckReport {
	t.Helper()
	report, err := db.Check(context.Background(), store.CheckOptions{})
	require.NoError(t, err)
	return report
}

func snapshotAt(t testing.TB, ents *store.Entities, block uint64) *store.Snapshot {
	t.Helper()
	s, err := ents.At(context.Background(), block)
	require.NoError(t, err)
	return s
}

func countOf(t testing.TB, s *store.Snapshot, q query.Expr) uint64 {
	t.Helper()
	n, err := s.Count(context.Background(), q)
	require.NoError(t, err)
	return n
}

func loadInto(t testing.TB, ents *store.Entities, blocks iter.Seq2[entity.Block, error], opts store.LoadOptions) store.Loaded {
	t.Helper()
	done, err := ents.Load(context.Background(), blocks, opts)
	require.NoError(t, err)
	return done
}

func importInto(t testing.TB, ents *store.Entities, history iter.Seq2[entity.Changeset, error], opts store.LoadOptions) store.Loaded {
	t.Helper()
	done, err := ents.Import(context.Background(), history, opts)
	require.NoError(t, err)
	return done
}

func collected[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	list, err := model.Collect(seq)
	require.NoError(t, err)
	return list
}

// quickURL returns the URL of a new database with the weakest durability that
// the engine offers, for tests that open many and lose none.
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
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	d, ok := driver.Lookup(u.Scheme)
	require.True(t, ok, "engine %q is not linked", u.Scheme)
	return d
}

// withParams returns a URL with further parameters, given as name, value, ….
func withParams(t testing.TB, rawURL string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	values := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = values.Encode()
	return u.String()
}

// Run runs every suite.
func Run(t *testing.T, h Harness) {
	t.Run("driver", func(t *testing.T) { runDriver(t, h) })
	t.Run("entities", func(t *testing.T) { runEntities(t, h) })
	t.Run("query", func(t *testing.T) { runQuery(t, h) })
	t.Run("differential", func(t *testing.T) { runDifferential(t, h) })
	if slices.Contains(h.layouts(), "compact") {
		t.Run("compact", func(t *testing.T) { runCompact(t, h) })
	}
	t.Run("events", func(t *testing.T) { runEvents(t, h) })
	t.Run("check", func(t *testing.T) { runCheck(t, h) })
	t.Run("beside", func(t *testing.T) { runBeside(t, h) })
	t.Run("arkiv", func(t *testing.T) { runArkiv(t, h) })
}
