package remote

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

func openURL(raw string, opts driver.Options) (*engine, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	if opts.Params == nil {
		opts.Params = map[string]string{}
	}
	for name := range query {
		opts.Params[name] = query.Get(name)
	}
	u.RawQuery = ""
	e, err := open(context.Background(), u, opts)
	if err != nil {
		return nil, err
	}
	return e.(*engine), nil
}

// with returns options with parameters, given as name and value in turn.
func with(params ...string) driver.Options {
	opts := driver.Options{Params: map[string]string{}}
	for i := 0; i < len(params); i += 2 {
		opts.Params[params[i]] = params[i+1]
	}
	return opts
}

// mustOpen opens a database and closes it when the test ends.
func mustOpen(t testing.TB, raw string, opts driver.Options) *engine {
	t.Helper()
	e, err := openURL(raw, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// openStore opens the entities of a database.
func openStore(t testing.TB, raw, layout string) (*store.DB, *store.Entities) {
	t.Helper()
	db, err := store.Open(t.Context(), raw, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	es, err := db.Entities(t.Context(), &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	return db, es
}

func write(t testing.TB, e driver.Engine, f func(tx driver.Tx)) {
	t.Helper()
	tx, err := e.Begin(context.Background())
	require.NoError(t, err)
	defer tx.Rollback()
	f(tx)
	require.NoError(t, tx.Commit(context.Background()))
}

func mustExec(t testing.TB, tx driver.Tx, text string, args ...any) {
	t.Helper()
	_, err := tx.Exec(context.Background(), text, args...)
	require.NoError(t, err)
}

func selectColumn[T any](t testing.TB, q driver.Querier, text string, args ...any) []T {
	t.Helper()
	rows, err := q.Query(context.Background(), text, args...)
	require.NoError(t, err)
	defer rows.Close()
	var list []T
	for rows.Next() {
		var v T
		require.NoError(t, rows.Scan(&v))
		list = append(list, v)
	}
	require.NoError(t, rows.Err())
	return list
}

func snapshot(t testing.TB, e driver.Engine) driver.Reader {
	t.Helper()
	r, err := e.Snapshot(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// wire is the way to a server, on which requests are counted and delayed.
type wire struct {
	http.RoundTripper

	mu    sync.Mutex
	paths []string
	delay func() time.Duration // before a request, or nil
}

// tap puts a wire between an open engine and its server.
func tap(e driver.Engine) *wire {
	client := e.(*engine).link.client
	w := &wire{RoundTripper: client.Transport}
	client.Transport = w
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.paths = append(w.paths, r.URL.Path)
	delay := w.delay
	w.mu.Unlock()
	if delay != nil {
		time.Sleep(delay())
	}
	return w.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is what http.Client looks for.
func (w *wire) CloseIdleConnections() {
	w.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// trips returns the requests since the last call.
func (w *wire) trips() (paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths, w.paths = w.paths, nil
	return paths
}

// block returns block n of a chain in which each block makes entities, changes some of
// the block before, and deletes some of the one before that.
func block(n uint64) entity.Block {
	key := func(n uint64, i int) entity.Key { return entity.Key{byte(n >> 8), byte(n), byte(i), 1} }
	b := entity.Block{Number: n}
	for i := range 20 {
		attributes := func(round uint64) entity.Op {
			return entity.Op{Key: key(n, i), BTL: 1000, Content: []byte{byte(n), byte(i)}, ContentType: "text/plain", Owner: entity.Address{byte(i)},
				StringAttributes:  map[string]string{"kind": "test", "name": string(rune('a' + i))},
				NumericAttributes: map[string]uint64{"block": n, "round": round}}
		}
		op := attributes(0)
		op.Kind, op.OpIndex = entity.Create, uint32(i)
		b.Ops = append(b.Ops, op)
		if n > 1 && i < 10 {
			op = attributes(1)
			op.Kind, op.Key = entity.Update, key(n-1, i)
			b.Ops = append(b.Ops, op)
		}
		if n > 2 && i < 5 {
			b.Ops = append(b.Ops, entity.Op{Kind: entity.Delete, Key: key(n-2, i)})
		}
	}
	return b
}
