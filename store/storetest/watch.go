package storetest

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// watchedEngine is an engine whose write transactions announce their queries.
type watchedEngine struct {
	driver.Engine
	begun   atomic.Int64 // transactions asked for
	queries atomic.Int64 // run in transactions
	before  func(n int)  // a query, the n-th since reset; nil announces nothing

	postings atomic.Int64 // rows of them that were read in transactions
	events   atomic.Int64 // rows with the data of events
}

// Begin implements driver.Engine.
func (w *watchedEngine) Begin(ctx context.Context) (driver.Tx, error) {
	w.begun.Add(1)
	tx, err := w.Engine.Begin(ctx)
	return watchedTx{tx, w}, err
}

// reset counts anew.
func (w *watchedEngine) reset(before func(n int)) {
	w.queries.Store(0)
	w.postings.Store(0)
	w.events.Store(0)
	w.before = before
}

type watchedTx struct {
	driver.Tx
	engine *watchedEngine
}

// Query implements driver.Querier.
func (tx watchedTx) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if n := tx.engine.queries.Add(1); tx.engine.before != nil {
		tx.engine.before(int(n))
	}
	rows, err := tx.Tx.Query(ctx, sql, args...)
	switch {
	case err != nil:
		return nil, err
	case strings.Contains(sql, "FROM event_postings"):
		return watchedRows{rows, &tx.engine.postings}, nil
	case strings.Contains(sql, "events.data"):
		return watchedRows{rows, &tx.engine.events}, nil
	}
	return rows, nil
}

// watchedRows count those that are read.
type watchedRows struct {
	driver.Rows
	read *atomic.Int64
}

// Next implements driver.Rows.
func (r watchedRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	r.read.Add(1)
	return true
}

// wrapped returns the URL of a database on an engine around the one of a URL, which has none
// of the optional interfaces of its own.
func wrapped(t testing.TB, rawURL, as string, around func(driver.Engine) driver.Engine) string {
	t.Helper()
	d := linkedDriver(t, rawURL)
	other := d
	other.Name = as + "-" + d.Name
	other.Open = func(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
		own := *u
		own.Scheme = d.Name
		e, err := d.Open(ctx, &own, opts)
		return around(e), err
	}
	if _, known := driver.Lookup(other.Name); !known {
		driver.Register(other)
	}
	return as + "-" + rawURL
}

// openWatched opens a database on a watched engine.
func (h Harness) openWatched(t testing.TB, rawURL string) (*store.DB, *watchedEngine) {
	t.Helper()
	rawURL = wrapped(t, rawURL, "watched", func(e driver.Engine) driver.Engine { return &watchedEngine{Engine: e} })
	db := h.open(t, rawURL, nil)
	w, ok := db.Engine().(*watchedEngine)
	require.True(t, ok)
	return db, w
}

// queuedContext is a context that tells when an append first waits with it.
type queuedContext struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

// Done implements context.Context.
func (c *queuedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}
