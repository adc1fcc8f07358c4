package storetest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// tap is called before each of these calls to an engine, and may delay it or
// return an error in its place: begin, visible, sync, snapshot, check, reindex;
// of a transaction query, next, exec, insert, update, commit; of a reader read,
// read next, read scan. A commit that fails is rolled back.
type tap func(call, sql string) error

// nextTap is the tap for the next engine that is opened.
var nextTap struct {
	see      tap
	overlaps bool
}

// tapped returns a URL that opens the same database through a tap. It must be
// the next URL to be opened. The engine then has no optional interfaces, except
// driver.Overlapper if overlaps is set.
func (see tap) tapped(t testing.TB, rawURL string, overlaps bool) string {
	t.Helper()
	nextTap.see, nextTap.overlaps = see, overlaps
	d := linkedDriver(t, rawURL)
	name, open := d.Name, d.Open
	d.Name = "tapped+" + name
	d.Open = func(ctx context.Context, u *url.URL, opts driver.Options) (driver.Engine, error) {
		own := *u
		own.Scheme = name
		e, err := open(ctx, &own, opts)
		if err != nil {
			return nil, err
		}
		tapped := tappedEngine{e, nextTap.see}
		if o, ok := e.(driver.Overlapper); ok && nextTap.overlaps {
			return tappedOverlapper{tapped, o}, nil
		}
		return tapped, nil
	}
	if _, known := driver.Lookup(d.Name); !known {
		driver.Register(d)
	}
	return "tapped+" + rawURL
}

type tappedEngine struct {
	driver.Engine
	see tap
}

func (e tappedEngine) tx(call string, begin func() (driver.Tx, error)) (driver.Tx, error) {
	if err := e.see(call, ""); err != nil {
		return nil, err
	}
	tx, err := begin()
	return tappedTx{tx, e.see}, err
}

// Begin implements driver.Engine.
func (e tappedEngine) Begin(ctx context.Context) (driver.Tx, error) {
	return e.tx("begin", func() (driver.Tx, error) { return e.Engine.Begin(ctx) })
}

// Snapshot implements driver.Engine.
func (e tappedEngine) Snapshot(ctx context.Context) (driver.Reader, error) {
	if err := e.see("snapshot", ""); err != nil {
		return nil, err
	}
	r, err := e.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return tappedReader{r, e.see}, nil
}

// Snapshots implements driver.Engine.
func (e tappedEngine) Snapshots(ctx context.Context, n int) (list []driver.Reader, err error) {
	for range n {
		r, err := e.Snapshot(ctx)
		if err != nil {
			return nil, errors.Join(err, driver.CloseReaders(list))
		}
		list = append(list, r)
	}
	return list, nil
}

// View implements driver.Engine.
func (e tappedEngine) View(ctx context.Context) (driver.Reader, error) { return e.Snapshot(ctx) }

// Check implements driver.Checker.
func (e tappedEngine) Check(ctx context.Context, report func(string) bool) (string, error) {
	if err := e.see("check", ""); err != nil {
		return "", err
	}
	return e.Engine.(driver.Checker).Check(ctx, report)
}

// Reindex implements driver.Reindexer.
func (e tappedEngine) Reindex(ctx context.Context) error {
	if err := e.see("reindex", ""); err != nil {
		return err
	}
	if indexes, ok := e.Engine.(driver.Reindexer); ok {
		return indexes.Reindex(ctx)
	}
	return nil
}

type tappedOverlapper struct {
	tappedEngine
	overlapper driver.Overlapper
}

// BeginVisible implements driver.Overlapper.
func (e tappedOverlapper) BeginVisible(ctx context.Context) (driver.Tx, error) {
	return e.tx("visible", func() (driver.Tx, error) { return e.overlapper.BeginVisible(ctx) })
}

// Sync implements driver.Overlapper.
func (e tappedOverlapper) Sync(ctx context.Context) error {
	return errors.Join(e.see("sync", ""), e.overlapper.Sync(ctx))
}

// Durable implements driver.Overlapper.
func (e tappedOverlapper) Durable(n uint64) uint64 { return e.overlapper.Durable(n) }

type tappedTx struct {
	driver.Tx
	see tap
}

// Query implements driver.Querier.
func (tx tappedTx) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	return tappedQuery(ctx, tx.Tx, tx.see, "", sql, args)
}

// Exec implements driver.Tx.
func (tx tappedTx) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	if err := tx.see("exec", sql); err != nil {
		return 0, err
	}
	return tx.Tx.Exec(ctx, sql, args...)
}

// Update implements driver.Tx.
func (tx tappedTx) Update(ctx context.Context, u *driver.Update, value any, keys []any) error {
	if err := tx.see("update", ""); err != nil {
		return err
	}
	return tx.Tx.Update(ctx, u, value, keys)
}

// Insert implements driver.Tx.
func (tx tappedTx) Insert(ctx context.Context, table *driver.Table, rows []any) error {
	if err := tx.see("insert", ""); err != nil {
		return err
	}
	return tx.Tx.Insert(ctx, table, rows)
}

// Commit implements driver.Tx.
func (tx tappedTx) Commit(ctx context.Context) error {
	if err := tx.see("commit", ""); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Tx.Commit(ctx)
}

type tappedReader struct {
	driver.Reader
	see tap
}

// Query implements driver.Querier.
func (r tappedReader) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	return tappedQuery(ctx, r.Reader, r.see, "read", sql, args)
}

func tappedQuery(ctx context.Context, q driver.Querier, see tap, of, sql string, args []any) (driver.Rows, error) {
	call := "query"
	if of != "" {
		call = of
	}
	if err := see(call, sql); err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return &tappedRows{Rows: rows, see: see, of: strings.TrimLeft(of+" ", " "), sql: sql}, nil
}

type tappedRows struct {
	driver.Rows
	see     tap
	of, sql string
	err     error
}

// Next implements driver.Rows.
func (r *tappedRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	r.err = r.see(r.of+"next", r.sql)
	return r.err == nil
}

// Scan implements driver.Rows.
func (r *tappedRows) Scan(dest ...any) error {
	if err := r.see(r.of+"scan", r.sql); err != nil {
		return err
	}
	return r.Rows.Scan(dest...)
}

// Err implements driver.Rows.
func (r *tappedRows) Err() error { return errors.Join(r.err, r.Rows.Err()) }

// watch counts reads of write transactions.
type watch struct {
	begun    atomic.Int64 // transactions asked for
	queries  atomic.Int64 // in transactions, since reset
	postings atomic.Int64 // rows of postings that they read
	events   atomic.Int64 // rows with the data of events
	before   func(n int)  // called with the number of each query, unless nil
}

func (w *watch) see(call, sql string) error {
	switch {
	case call == "begin":
		w.begun.Add(1)
	case call == "query":
		if n := w.queries.Add(1); w.before != nil {
			w.before(int(n))
		}
	case call == "next" && strings.Contains(sql, "FROM event_postings"):
		w.postings.Add(1)
	case call == "next" && strings.Contains(sql, "events.data"):
		w.events.Add(1)
	}
	return nil
}

// reset sets the counts to zero.
func (w *watch) reset(before func(n int)) {
	w.queries.Store(0)
	w.postings.Store(0)
	w.events.Store(0)
	w.before = before
}

// watchedEvents opens an event store whose transactions are watched.
func (h Harness) watchedEvents(t testing.TB, opts store.EventOptions) (eventStream, *watch) {
	t.Helper()
	w := &watch{}
	db := h.open(t, tap(w.see).tapped(t, h.quickURL(t), false), nil)
	return streamOf(t, db, "", opts), w
}

// queuedContext is a context that reports when an append first waits with it.
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
