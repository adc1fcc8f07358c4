package postgres

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// wire stands between clients and a server on a Unix socket. It counts the messages after which a
// client waits until the server is ready again, all but ROLLBACK, and holds answers back on demand.
type wire struct {
	mu    sync.Mutex
	waits int
	ends  int          // ROLLBACKs in messages of their own
	flow  sync.RWMutex // held for writing, no answer passes
}

// newWire returns the wire before the server of a URL and the URL that leads through it.
func newWire(t *testing.T, rawURL string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	q := u.Query()
	const socket = ".s.PGSQL.5432"
	server := filepath.Join(q.Get("host"), socket)
	dir, err := os.MkdirTemp("", "wire")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	require.NoError(t, err)
	w := &wire{}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed below
			}
			running.Go(func() { w.join(t, client, server) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		running.Wait()
	})
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return w, u.String()
}

// join copies messages between a client and the server until one of them has
// gone.
func (w *wire) join(t *testing.T, client net.Conn, address string) {
	server, err := net.Dial("unix", address)
	if err != nil {
		t.Error(err)
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		_ = w.requests(server, bufio.NewReader(client)) // one of them has gone
	})
	both.Go(func() {
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			w.flow.RLock()
			_, _ = client.Write(buf[:n]) // it may have gone
			w.flow.RUnlock()
			if err != nil {
				return
			}
		}
	})
	both.Wait()
}

// requests copies the messages of a client. Its first message has no type.
func (w *wire) requests(server io.Writer, client *bufio.Reader) error {
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[:4]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return err
		}
		if !first && (head[0] == 'S' || head[0] == 'Q') {
			w.mu.Lock()
			if string(body) == "ROLLBACK\x00" {
				w.ends++
			} else {
				w.waits++
			}
			w.mu.Unlock()
		}
		if _, err := server.Write(slices.Concat(head, body)); err != nil {
			return err
		}
	}
}

// ended returns how many ROLLBACKs were sent by themselves.
func (w *wire) ended() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ends
}

// during returns how many of the messages that f sends are answered.
func (w *wire) during(f func()) int {
	w.mu.Lock()
	before := w.waits
	w.mu.Unlock()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits - before
}

// least is the smallest of several results of during, because put-off work may
// run at the same time.
func (w *wire) least(f func()) int {
	return min(w.during(f), w.during(f), w.during(f))
}

// TestTrips: how often the server is waited for once statements are prepared. An
// entity of a key that is named travels with the head.
func TestTrips(t *testing.T) {
	for _, layout := range []string{"arkiv", "simple", "compact"} {
		t.Run(layout, func(t *testing.T) {
			ctx := t.Context()
			w, url := newWire(t, pgtest.NewURL(t))
			db, err := store.Open(ctx, url, &store.Options{Readers: 1})
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ents, err := db.Entities(ctx, &store.EntityOptions{Layout: layout})
			require.NoError(t, err)
			first := entity.Block{Number: 1}
			for i := range byte(100) {
				first.Ops = append(first.Ops, entity.Op{Kind: entity.Create, Key: entity.Key{i}, OpIndex: uint32(i), BTL: 10, Content: []byte("x")})
			}
			_, err = ents.Apply(ctx, first)
			require.NoError(t, err)
			require.NoError(t, ents.Flush(ctx))
			read := func(block uint64, key entity.Key, named ...entity.Key) func() {
				return func() {
					s, err := ents.At(ctx, block, named...)
					require.NoError(t, err)
					e, err := s.Get(ctx, key)
					require.NoError(t, err)
					require.Equal(t, "x", string(e.Content))
					require.NoError(t, s.Close())
				}
			}
			key := entity.Key{1}
			read(store.Head, key)()
			require.Equal(t, 2, w.least(read(store.Head, key)), "head and entity")
			require.Equal(t, 2, w.least(read(store.Head, key, entity.Key{2})), "another key is named")
			if layout != "compact" {
				return
			}
			require.Equal(t, 1, w.least(read(store.Head, key, key)), "its key is named")

			// A key that waits for the sweep is found by the number of its entity, also in
			// a past block, and in the log.
			last := entity.Key{0, 1}
			_, err = ents.Apply(ctx, entity.Block{Number: 2, Ops: []entity.Op{{Kind: entity.Create, Key: last, BTL: 10, Content: []byte("x")}}})
			require.NoError(t, err)
			read(store.Head, last, last)()
			require.Equal(t, 1, w.least(read(store.Head, last, last)), "in the log")
			require.NoError(t, ents.Flush(ctx))
			read(store.Head, last, last)()
			require.Equal(t, 1, w.least(read(store.Head, last, last)), "its key waits")
			require.Equal(t, 1, w.least(read(1, key, key)), "a past block")
			next := uint64(3)
			require.Equal(t, 2, w.least(func() {
				_, err := ents.Apply(ctx, entity.Block{Number: next, Ops: []entity.Op{{Kind: entity.Update, Key: last, BTL: 10, Content: []byte("x")}}})
				require.NoError(t, err)
				next++
			}), "a block changes an entity whose key waits")
		})
	}
}

// TestTripsOfBlocks: a block locks and reads in one message, and writes with its
// COMMIT in another. A payload that it keeps, and that is merged, is one more,
// because its number stands in the version.
func TestTripsOfBlocks(t *testing.T) {
	ctx := t.Context()
	w, url := newWire(t, pgtest.NewURL(t))
	db, err := store.Open(ctx, url, &store.Options{Readers: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: "compact"})
	require.NoError(t, err)
	number := uint64(0)
	apply := func(kind entity.Kind, key byte) func() {
		return func() {
			number++
			op := entity.Op{Kind: kind, Key: entity.Key{key}, BTL: 10, Content: []byte("x")}
			if kind == entity.ExtendBTL {
				op.Content = nil
			}
			_, err := ents.Apply(ctx, entity.Block{Number: number, Ops: []entity.Op{op}})
			require.NoError(t, err)
		}
	}
	for _, kind := range []entity.Kind{entity.Create, entity.Update, entity.ExtendBTL} {
		apply(kind, 1)() // statements are prepared
	}
	for _, merged := range []bool{false, true} {
		if merged {
			require.NoError(t, ents.Flush(ctx))
		}
		require.Equal(t, 2, w.during(apply(entity.Update, 1)), "update, merged %t", merged)
	}
	require.Equal(t, 2, w.during(apply(entity.Create, 2)), "create")
	require.Equal(t, 2, w.during(apply(entity.ExtendBTL, 2)), "a payload of the log is kept")
	require.NoError(t, ents.Flush(ctx))
	require.Equal(t, 3, w.during(apply(entity.ExtendBTL, 2)), "a merged payload is kept")
}

// TestTripsOfEvents: an append locks, reads where it is, and inserts with its COMMIT.
func TestTripsOfEvents(t *testing.T) {
	ctx := t.Context()
	w, url := newWire(t, pgtest.NewURL(t))
	db, err := store.Open(ctx, url, &store.Options{Readers: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(ctx, nil)
	require.NoError(t, err)
	add := func() {
		_, err := evs.Append(ctx, []event.Event{{Type: "made", Tags: []event.Tag{event.NewTag("n", "1")}}}, nil)
		require.NoError(t, err)
	}
	add()
	add()
	require.Equal(t, 3, w.during(add))
}

// TestTripsOfReads: a page of events is one statement, or two where postings
// find the positions; the second one ends the view. A decision that needs the
// head, or has a thousand terms, costs no more.
func TestTripsOfReads(t *testing.T) {
	ctx := t.Context()
	w, url := newWire(t, pgtest.NewURL(t))
	db, err := store.Open(ctx, url, &store.Options{Readers: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(ctx, nil)
	require.NoError(t, err)
	var many event.Query
	var batch []event.Event
	for i := range 200 {
		n := event.NewTag("n", fmt.Sprint(i))
		many.Items = append(many.Items, event.Item{Tags: []event.Tag{n}})
		batch = append(batch, event.Event{Type: "made", Tags: []event.Tag{n, event.NewTag("all", "x")}})
	}
	for _, part := range [][]event.Event{batch[:150], batch[150:]} { // the second has no postings
		_, err := evs.Append(ctx, part, nil)
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		q     event.Query
		opts  event.ReadOptions
		want  int
		trips int
	}{
		"everything": {event.All(), event.ReadOptions{}, 200, 1},
		"a tag":      {event.Tagged(event.NewTag("n", "1")), event.ReadOptions{}, 1, 2},
		"tags":       {event.Tagged(event.NewTag("n", "1"), event.NewTag("all", "x")), event.ReadOptions{}, 1, 2},
		"a type":     {event.Of("made"), event.ReadOptions{Limit: 150}, 150, 2},
		"backwards":  {event.Tagged(event.NewTag("all", "x")), event.ReadOptions{Backwards: true, Limit: 1}, 1, 2},
		"many":       {many, event.ReadOptions{}, 200, 2},
		"nothing":    {event.Tagged(event.NewTag("n", "none")), event.ReadOptions{}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			read := func() {
				var head uint64
				opts := c.opts
				opts.Head = &head
				n := 0
				for _, err := range evs.Read(ctx, c.q, &opts) {
					require.NoError(t, err)
					n++
				}
				require.Equal(t, c.want, n)
				if opts.Limit == 0 {
					require.EqualValues(t, 200, head)
				}
			}
			read()
			before := w.ended()
			require.Equal(t, c.trips, w.during(read))
			read() // behind what ended the view before
			if c.trips == 2 {
				require.Equal(t, before, w.ended(), "the second statement ends the view")
			}
		})
	}
}

// TestFinal: after a view's final query no statement is sent to it, and the
// next view begins new.
func TestFinal(t *testing.T) {
	e := openTest(t, pgtest.NewURL(t), func(o *driver.Options) { o.Readers = 1 })
	for range 2 {
		r, err := e.View(t.Context())
		require.NoError(t, err)
		var n int64
		require.NoError(t, driver.Statement{Text: "SELECT 1", Final: true}.Row(t.Context(), r, nil, &n))
		require.ErrorContains(t, driver.QueryRow(t.Context(), r, "SELECT 1", nil, &n), "final")
		require.NoError(t, r.Close())
	}
}

// TestEndIsNotWaitedFor: a view closes although the server does not answer.
func TestEndIsNotWaitedFor(t *testing.T) {
	w, url := newWire(t, pgtest.NewURL(t))
	e := openTest(t, url, func(o *driver.Options) { o.Readers = 1 })
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	w.flow.Lock()
	require.NoError(t, r.Close())
	w.flow.Unlock()
	require.EqualValues(t, 1, count(t, e, "pg_class WHERE relname = 'pg_class'"))
}
