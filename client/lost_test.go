package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// proxy forwards connections and cuts them off after some bytes of answers.
type proxy struct {
	on    net.Listener
	to    string
	bytes func() int64 // of the next connection

	mu    sync.Mutex
	conns []net.Conn
	cuts  int
	wg    sync.WaitGroup
}

func newProxy(t testing.TB, to string, bytes func() int64) *proxy {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{on: on, to: to, bytes: bytes}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		require.NoError(t, on.Close())
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		from, err := p.on.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		limit := p.bytes()
		p.mu.Unlock()
		p.wg.Go(func() { _, _ = io.Copy(to, from); _ = to.Close() })
		p.wg.Go(func() {
			if n, _ := io.CopyN(from, to, limit); n == limit {
				p.mu.Lock()
				p.cuts++
				p.mu.Unlock()
			}
			_ = from.Close()
			_ = to.Close()
		})
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) address() string { return p.on.Addr().String() }

func openDB(t testing.TB, url string) (*store.DB, *store.Events) {
	t.Helper()
	db, err := store.Open(context.Background(), url+"?durability=relaxed", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	events, err := db.Events(context.Background(), nil)
	require.NoError(t, err)
	return db, events
}

func numbered(from, to int) (list []event.Event) {
	for n := from; n < to; n++ {
		e := event.Event{Type: "N", Data: []byte(fmt.Sprintf("%d %0100d", n, n)), Tags: []event.Tag{event.NewTag("n", fmt.Sprint(n))}}
		copy(e.ID[:], fmt.Sprintf("%016d", n))
		list = append(list, e)
	}
	return list
}

// TestLostConnections: over connections that break all the time a subscription
// gives each event once and in order, a read gives the same events as
// otherwise, and an append whose events have IDs is done once.
func TestLostConnections(t *testing.T) {
	const total, each = 600, 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	db, local := openDB(t, newURL(t))
	p := newProxy(t, serve(t, db, service.Options{}, server.Options{}), func() int64 { return 5_000 + rnd.Int64N(100_000) })
	events := dial(t, p.address(), client.Options{Retry: 5 * time.Minute})

	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for n := 0; n < total; n += each {
			if _, err := events.Append(t.Context(), numbered(n, n+each), event.Unless(event.Tagged(event.NewTag("n", fmt.Sprint(n))))); err != nil {
				t.Errorf("append %d: %v", n, err)
			}
		}
	})
	next := 0
	for e, err := range events.Subscribe(t.Context(), event.Of("N"), 0) {
		require.NoError(t, err)
		require.Equal(t, numbered(next, next+1)[0], e.Event)
		require.EqualValues(t, next+1, e.Position)
		if next++; next == total {
			break
		}
	}
	wg.Wait()
	all := collect(t, local.Read(t.Context(), event.All(), nil))
	require.Len(t, all, total)
	var head uint64
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	for range 3 {
		require.Equal(t, all, collect(t, events.Read(t.Context(), event.All(), &event.ReadOptions{Head: &head})))
		require.EqualValues(t, total, head)
		require.Equal(t, all[99:550], collect(t, events.Read(t.Context(), event.Of("N"), &event.ReadOptions{From: 100, Limit: 451})))
		require.Equal(t, reversed, collect(t, events.Read(t.Context(), event.All(), &event.ReadOptions{Backwards: true})))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Greater(t, p.cuts, 5)
}

func collect(t testing.TB, seq func(func(event.Sequenced, error) bool)) (list []event.Sequenced) {
	t.Helper()
	for e, err := range seq {
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// TestUnknownOutcome: an append that was sent and not answered is repeated if its events have IDs; what
// the repetitions meet says nothing of the first one, unless it is an answer about the events.
func TestUnknownOutcome(t *testing.T) {
	db, local := openDB(t, newURL(t))
	target := serve(t, db, service.Options{}, server.Options{})
	taken := event.Event{Type: "Taken", ID: event.ID{9}}
	_, err := local.Append(t.Context(), []event.Event{taken}, nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		repeat   error // of the repetitions; nil sends them
		deadline time.Duration
		cond     *event.Condition
		want     error
		unknown  bool
		add      []event.Event
		once     bool // it is not repeated
	}{
		"connection refused": {repeat: status.Error(codes.Unavailable, "connection refused"), want: store.ErrUnavailable, unknown: true},
		"deadline":           {repeat: status.Error(codes.Unavailable, "connection refused"), deadline: time.Second, want: context.DeadlineExceeded, unknown: true},
		"refused by a proxy": {repeat: status.Error(codes.PermissionDenied, "no"), unknown: true},
		"answered":           {},
		"without an ID":      {add: []event.Event{{Type: "A"}}, want: store.ErrUnavailable, unknown: true, once: true},
		"duplicate":          {add: []event.Event{{Type: "Other", ID: taken.ID}}, want: event.ErrDuplicate},
		"conflict":           {cond: event.Unless(event.Of("Taken")), want: store.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			// The answer to the first call is lost, and the repeated call goes
			// elsewhere.
			lose := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				first := calls.Add(1) == 1
				if !first && c.repeat != nil {
					return c.repeat
				}
				err := invoke(ctx, method, req, reply, cc, opts...)
				if first {
					return status.Error(codes.Unavailable, "the connection is lost")
				}
				return err
			}
			// Patience would end before the deadline where the next pause reached beyond both.
			patience := 2*time.Second + 10*c.deadline
			events := dial(t, target, client.Options{Retry: patience, Dial: []grpc.DialOption{grpc.WithUnaryInterceptor(lose)}})
			batch := append(numbered(0, 1), c.add...)
			copy(batch[0].ID[:], name)
			for kind, call := range map[string]func(context.Context) error{
				"append": func(ctx context.Context) error { _, err := events.Append(ctx, batch, c.cond); return err },
				"advance": func(ctx context.Context) error {
					_, err := events.Advance(ctx, event.Checkpoint{Consumer: name}, batch, c.cond)
					return err
				},
			} {
				calls.Store(0)
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.deadline, time.Minute))
				err := call(ctx)
				cancel()
				require.Equal(t, c.once, calls.Load() == 1, kind)
				if c.want == nil && !c.unknown {
					require.NoError(t, err, kind)
					continue
				}
				if c.want != nil {
					require.ErrorIs(t, err, c.want, kind)
				}
				require.Equal(t, c.unknown, errors.Is(err, store.ErrUnknownOutcome), "%s: %v", kind, err)
			}
		})
	}
}

// TestShortDeadlines: whatever a call was doing when its time was up, its error says so, or
// that the service was not reached.
func TestShortDeadlines(t *testing.T) {
	db, local := openDB(t, newURL(t))
	_, err := local.Append(t.Context(), numbered(0, 300), nil)
	require.NoError(t, err)
	target := serve(t, db, service.Options{}, server.Options{})
	events := dial(t, target, client.Options{})
	_, err = events.Head(t.Context()) // connects
	require.NoError(t, err)
	drain := func(seq func(func(event.Sequenced, error) bool)) (err error) {
		for _, err = range seq {
		}
		return err
	}
	calls := map[string]func(context.Context, *client.Events) error{
		"append": func(ctx context.Context, e *client.Events) error {
			_, err := e.Append(ctx, []event.Event{{Type: "A"}}, nil)
			return err
		},
		"again": func(ctx context.Context, e *client.Events) error {
			_, err := e.Append(ctx, numbered(0, 1), nil)
			return err
		},
		"advance": func(ctx context.Context, e *client.Events) error {
			_, err := e.Advance(ctx, event.Checkpoint{Consumer: "c"}, nil, nil)
			return err
		},
		"checkpoint": func(ctx context.Context, e *client.Events) error { _, err := e.Checkpoint(ctx, "c"); return err },
		"head":       func(ctx context.Context, e *client.Events) error { _, err := e.Head(ctx); return err },
		"read":       func(ctx context.Context, e *client.Events) error { return drain(e.Read(ctx, event.All(), nil)) },
		"subscribe":  func(ctx context.Context, e *client.Events) error { return drain(e.Subscribe(ctx, event.All(), 0)) },
	}
	for name, call := range calls {
		for i := range 400 {
			with := events
			if i%20 == 0 { // not connected yet
				with = dial(t, target, client.Options{})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%201)*5*time.Microsecond)
			err := call(ctx, with)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s within %d µs: %v", name, i%201*5, err)
			}
		}
	}
}

// TestNobodyThere: the error of an unsent request differs from that of an
// unanswered one.
func TestNobodyThere(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, on.Close())
	for _, retry := range []time.Duration{-1, 300 * time.Millisecond} {
		events := dial(t, on.Addr().String(), client.Options{Retry: retry})
		_, err = events.Append(t.Context(), []event.Event{{Type: "A"}}, nil)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
		_, err = events.Head(t.Context())
		require.ErrorIs(t, err, store.ErrUnavailable)
		for _, err = range events.Subscribe(t.Context(), event.All(), 0) {
			require.ErrorIs(t, err, store.ErrUnavailable, "it has never begun")
		}
		require.Error(t, err)
	}
}

// TestRestart: a subscription goes on when the service comes back, and a server that goes
// down does not wait for it.
func TestRestart(t *testing.T) {
	db, local := openDB(t, newURL(t))
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := on.Addr().String()
	require.NoError(t, on.Close())
	events := dial(t, address, client.Options{})
	var got []uint64
	next, stop := iter.Pull2(events.Subscribe(t.Context(), event.All(), 0))
	defer stop()
	for round := range 3 {
		s, err := service.New(t.Context(), db, service.Options{})
		require.NoError(t, err)
		srv, err := server.Listen(t.Context(), s, server.Options{REST: "off", GRPC: address})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- srv.Run(ctx) }()
		_, err = local.Append(t.Context(), []event.Event{{Type: "A"}, {Type: "A"}}, nil)
		require.NoError(t, err)
		for range 2 {
			e, err, ok := next()
			require.True(t, ok)
			require.NoError(t, err)
			got = append(got, e.Position)
		}
		cancel()
		require.NoError(t, <-done, "round %d: the server does not wait until its time is over", round)
		s.Close()
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, got)
}
