package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	arkivrpc "github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

const attackToken = "a token for the attacked server"

// small opens a connection that takes little before it is read.
func small(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetReadBuffer(128 << 10)
}

// runWithArkiv runs a server with JSON-RPC, which may be public.
func runWithArkiv(t *testing.T, o server.Options, public bool) *world {
	t.Helper()
	db, s := newService(t, newURL(t)+"?durability=relaxed", service.Options{})
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	handler, err := arkivrpc.New(t.Context(), ents, arkivrpc.Options{})
	require.NoError(t, err)
	o.Site = &server.Site{Name: "Arkiv", Handler: handler, Metrics: s.Metrics().Handler(), Public: public}
	return runOver(t, db, s, o)
}

// ask sends a request for a host and returns status and body.
func (w *world) ask(t *testing.T, method, url, host, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+url, strings.NewReader(body))
	require.NoError(t, err)
	if r.Host = host; body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// TestHost: without a token no page reads or writes whose name was made to mean 127.0.0.1.
func TestHost(t *testing.T) {
	w := runWithArkiv(t, server.Options{UI: true, Hosts: []string{"varve.example"}}, false)
	answers := func(host string) map[string]int {
		got := map[string]int{}
		got["get"], _ = w.ask(t, "GET", strings.TrimPrefix(w.url(1), "http://"), host, "")
		got["put"], _ = w.ask(t, "PUT", strings.TrimPrefix(w.url(1), "http://"), host, `{"payload":"aGVsbG8="}`)
		got["ui"], _ = w.ask(t, "GET", w.server.REST()+"/ui", host, "")
		got["metrics"], _ = w.ask(t, "GET", w.server.REST()+"/metrics", host, "")
		got["JSON-RPC"], _ = w.ask(t, "POST", w.server.Site(), host, `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`)
		got["preflight"], _ = w.ask(t, "OPTIONS", w.server.Site(), host, "")
		conn, resp, err := websocket.Dial(t.Context(), "ws://"+w.server.Site(), &websocket.DialOptions{Host: host, HTTPClient: w.client}) //nolint:bodyclose // the library has closed it
		if err == nil {
			require.NoError(t, conn.CloseNow())
		}
		got["WebSocket"] = resp.StatusCode
		return got
	}
	call := func(host string) codes.Code {
		conn, err := grpc.NewClient(w.server.GRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(host))
		require.NoError(t, err)
		defer conn.Close()
		_, err = varvev1.NewEntityServiceClient(conn).Delete(t.Context(), &varvev1.DeleteRequest{Key: make([]byte, 32)})
		if status.Code(err) == codes.PermissionDenied {
			require.ErrorContains(t, err, "--host")
		}
		return status.Code(err)
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:1", "192.0.2.1", "[::2]:80"} {
		for what, status := range answers(host) {
			require.Equal(t, http.StatusForbidden, status, "%s for %s", what, host)
		}
		require.Equal(t, codes.PermissionDenied, call(host), host)
	}
	require.Zero(t, w.service.Head(), "nothing was written")
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.1.2.3", "[::1]:80", "[::1]", "varve.example", "Varve.Example:443"} {
		for what, status := range answers(host) {
			require.NotEqual(t, http.StatusForbidden, status, "%s for %s", what, host)
		}
		require.Equal(t, codes.NotFound, call(host), host)
	}
	status, text := w.ask(t, "GET", strings.TrimPrefix(w.url(1), "http://"), "evil.example", "")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "urn:varve:problem:host")
	w = run(t, service.Options{}, server.Options{Token: attackToken})
	status, _ = w.ask(t, "GET", strings.TrimPrefix(w.url(1), "http://"), "evil.example", "")
	require.Equal(t, http.StatusUnauthorized, status, "with a token the token decides")
}

// TestQueryTime: a query that makes the store work for too long ends, also
// within data that is not merged yet.
func TestQueryTime(t *testing.T) {
	for _, order := range []string{"", `,"order":{"name":"a","kind":"string"}`} {
		testQueryTime(t, order)
	}
}

func testQueryTime(t *testing.T, order string) {
	t.Helper()
	w := run(t, service.Options{Work: 20 * time.Millisecond}, server.Options{})
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			_, err := w.service.Put(context.Background(), &service.Put{Key: entity.Key{30: byte(i >> 8), 31: byte(i)}, StringAttributes: map[string]string{"a": strings.Repeat("xy", 400) + strconv.Itoa(i)}}) // a value is compared once
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var globs []string
	for i := range 900 {
		globs = append(globs, fmt.Sprintf(`a ~ "*x*y*%d*z"`, i))
	}
	text := strings.Join(globs, " || ")
	code, answer := w.ask(t, "POST", w.server.REST()+"/v1/query", "localhost", fmt.Sprintf(`{"query":%q%s}`, text, order))
	require.Equal(t, http.StatusServiceUnavailable, code, answer)
	require.Contains(t, answer, "urn:varve:problem:timeout")
	require.Contains(t, answer, "ask for less")
	stream, err := varvev1.NewEntityServiceClient(dialPlain(t, w)).Query(t.Context(), &varvev1.QueryRequest{Query: text})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
	code, _ = w.ask(t, "POST", w.server.REST()+"/v1/query", "localhost", `{"query":"a = \"none\"","limit":1}`)
	require.Equal(t, http.StatusOK, code)
}

// TestSubscriptionsApart: however many follow the events, the rest is answered.
func TestSubscriptionsApart(t *testing.T) {
	w := run(t, service.Options{}, server.Options{Limits: service.GateOptions{Concurrent: 1, Subscriptions: 2}})
	events := varvev1.NewEventServiceClient(dialPlain(t, w))
	subscribe := "http://" + w.server.REST() + "/v1/events/subscribe"
	first, err := w.client.Get(subscribe)
	require.NoError(t, err)
	defer first.Body.Close()
	require.Equal(t, http.StatusOK, first.StatusCode)
	second, err := events.Subscribe(t.Context(), &varvev1.SubscribeRequest{})
	require.NoError(t, err)
	_, err = second.Header()
	require.NoError(t, err)
	third, err := w.client.Get(subscribe)
	require.NoError(t, err)
	require.NoError(t, third.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, third.StatusCode)
	fourth, err := events.Subscribe(t.Context(), &varvev1.SubscribeRequest{})
	require.NoError(t, err)
	_, err = fourth.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/v1/events/head"} {
		code, text := w.ask(t, "GET", w.server.REST()+path, "localhost", "")
		require.Equal(t, http.StatusOK, code, text)
	}
	code, err := w.put(1, "x")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, code)
	w.end(t)
}

// TestStockClient: everything that any protocol accepts can be read by a client
// of gRPC with default limits.
func TestStockClient(t *testing.T) {
	w := run(t, service.Options{}, server.Options{})
	for n, want := range map[int]int{service.DefaultMaxPayload: http.StatusCreated, service.DefaultMaxPayload + 1: http.StatusRequestEntityTooLarge} {
		code, err := w.put(1, strings.Repeat("x", n))
		require.NoError(t, err)
		require.Equal(t, want, code)
	}
	for n, want := range map[int]error{80: service.ErrTooLarge, 60: nil} {
		attributes := map[string]string{}
		for i := range n {
			attributes[fmt.Sprintf("a%d", i)] = strings.Repeat("v", 1000)
		}
		_, err := w.service.Put(t.Context(), &service.Put{Payload: make([]byte, service.DefaultMaxPayload), StringAttributes: attributes})
		require.ErrorIs(t, err, want)
	}
	conn := dialPlain(t, w)
	entities := varvev1.NewEntityServiceClient(conn)
	for i := range 2 {
		got, err := entities.Get(t.Context(), &varvev1.GetRequest{Key: append(make([]byte, 31), byte(i))})
		require.NoError(t, err)
		require.Greater(t, len(got.GetEntity().GetPayload()), 4_000_000)
	}
	stream, err := entities.Query(t.Context(), &varvev1.QueryRequest{Query: "*", Limit: 1})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)

	for n, want := range map[int]error{4<<20 - 1000: nil, 4 << 20: service.ErrTooLarge} {
		_, err = w.service.Events().Append(t.Context(), []event.Event{{Type: "A", Data: make([]byte, n)}, {Type: "A", Data: make([]byte, 60_000)}}, nil)
		require.ErrorIs(t, err, want)
	}
	read, err := varvev1.NewEventServiceClient(conn).Read(t.Context(), &varvev1.ReadRequest{})
	require.NoError(t, err)
	for n := 0; n < 2; {
		part, err := read.Recv()
		require.NoError(t, err)
		n += len(part.GetEvents())
	}
}

// TestSlowBodyAtTheEnd: a server that goes down does not wait for a body that does not come,
// and that is no error.
func TestSlowBodyAtTheEnd(t *testing.T) {
	w := runWithArkiv(t, server.Options{Timeouts: service.Timeouts{Drain: 4 * time.Second}}, false)
	conn := w.dial(t)
	_, err := fmt.Fprintf(conn, "PUT /v1/entities/0x%064x/payload HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc", 99)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, text := w.ask(t, "GET", w.server.REST()+"/metrics", "localhost", "")
		return strings.Contains(text, "varve_requests_in_flight 2\n")
	}, 20*time.Second, 5*time.Millisecond)
	w.stop()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.NoError(t, <-w.done)
	w.done <- nil
}

// TestJSONRPCFaults: a request that does not come in time is told so, and who is refused is in
// the access log.
func TestJSONRPCFaults(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	access := slog.New(slog.NewTextHandler(&locked{w: &log, mu: &mu}, nil))
	w := runWithArkiv(t, server.Options{Token: attackToken, Access: access, Timeouts: service.Timeouts{Read: 200 * time.Millisecond}}, false)
	code, _ := w.ask(t, "POST", w.server.Site(), "localhost", "{}")
	require.Equal(t, http.StatusUnauthorized, code)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(log.String(), "method=POST path=/ status=401")
	}, 20*time.Second, time.Millisecond)
	conn, err := small(t.Context(), w.server.Site())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", attackToken)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.Contains(t, string(text), fmt.Sprint(arkivrpc.CodeTimeout))
}

// locked guards a writer.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// TestBusyIsNoError: a service that has too much to do does not write a line for each request.
func TestBusyIsNoError(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	w := run(t, service.Options{}, server.Options{
		Log: slog.New(slog.NewTextHandler(&locked{w: &log, mu: &mu}, nil)), Limits: service.GateOptions{Subscriptions: 1},
	})
	events := varvev1.NewEventServiceClient(dialPlain(t, w))
	first, err := events.Subscribe(t.Context(), &varvev1.SubscribeRequest{})
	require.NoError(t, err)
	_, err = first.Header()
	require.NoError(t, err)
	const n = 100
	for range n {
		code, _ := w.ask(t, "GET", w.server.REST()+"/v1/events/subscribe", "localhost", "")
		require.Equal(t, http.StatusServiceUnavailable, code)
		other, err := events.Subscribe(t.Context(), &varvev1.SubscribeRequest{})
		require.NoError(t, err)
		_, err = other.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err))
	}
	w.end(t)
	require.NotContains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "problem=busy")
	require.Less(t, strings.Count(log.String(), "\n"), n/2, log.String())
}

// TestLeavingIsNoError: a client that leaves is not logged as an error.
func TestLeavingIsNoError(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	w := run(t, service.Options{}, server.Options{Log: slog.New(slog.NewTextHandler(&locked{w: &log, mu: &mu}, nil))})
	for range 3 {
		resp, err := w.client.Get("http://" + w.server.REST() + "/v1/events/subscribe")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		ctx, leave := context.WithCancel(t.Context())
		stream, err := varvev1.NewEventServiceClient(dialPlain(t, w)).Subscribe(ctx, &varvev1.SubscribeRequest{})
		require.NoError(t, err)
		_, err = stream.Header()
		require.NoError(t, err)
		leave()
	}
	require.Eventually(t, func() bool {
		_, text := w.ask(t, "GET", w.server.REST()+"/metrics", "localhost", "")
		return strings.Contains(text, "varve_requests_in_flight 1\n") && strings.Contains(text, `code="499"`)
	}, 20*time.Second, 5*time.Millisecond)
	w.end(t)
	require.Empty(t, log.String())
}

// TestCancelledCalls: a client that gives calls up keeps its connection and its other calls, and what
// it gave up holds no memory.
func TestCancelledCalls(t *testing.T) {
	const write = 300 * time.Millisecond
	w := run(t, service.Options{CacheBytes: -1}, server.Options{
		Limits: service.GateOptions{Memory: 2 << 20}, Timeouts: service.Timeouts{Write: write},
	})
	data := bytes.Repeat([]byte("d"), 200_000)
	key := make([]byte, 32)
	_, err := w.service.Put(t.Context(), &service.Put{Payload: data})
	require.NoError(t, err)
	for range 20 {
		_, err := w.service.Events().Append(t.Context(), []event.Event{{Type: "A", Data: data[:20_000]}}, nil)
		require.NoError(t, err)
	}
	conn := dialPlain(t, w)
	entities, events := varvev1.NewEntityServiceClient(conn), varvev1.NewEventServiceClient(conn)
	follows, err := events.Subscribe(t.Context(), &varvev1.SubscribeRequest{From: 21})
	require.NoError(t, err)
	_, err = follows.Header()
	require.NoError(t, err)
	// Each takes what comes until it is cancelled. How that ends does not matter.
	drain := func(recv func() error, err error) {
		for err == nil {
			err = recv()
		}
	}
	calls := []func(ctx context.Context){
		func(ctx context.Context) {
			s, err := events.Subscribe(ctx, &varvev1.SubscribeRequest{})
			drain(func() error { _, err := s.Recv(); return err }, err)
		},
		func(ctx context.Context) {
			s, err := events.Read(ctx, &varvev1.ReadRequest{})
			drain(func() error { _, err := s.Recv(); return err }, err)
		},
		func(ctx context.Context) {
			s, err := entities.Query(ctx, &varvev1.QueryRequest{Query: "*"})
			drain(func() error { _, err := s.Recv(); return err }, err)
		},
		func(ctx context.Context) { _, _ = entities.Get(ctx, &varvev1.GetRequest{Key: key}) },
	}
	var wg sync.WaitGroup
	end := time.Now().Add(4 * time.Second)
	for _, call := range calls {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				ctx, cancel := context.WithCancel(context.Background())
				within := time.Duration(n%80) * 100 * time.Microsecond
				if n%2 == 0 {
					ctx, cancel = context.WithTimeout(context.Background(), within) // the server knows of it
				}
				time.AfterFunc(within, cancel)
				call(ctx)
				cancel()
			}
		})
	}
	wg.Wait()
	time.Sleep(2 * write) // until whatever was given up would be too slow
	_, err = w.service.Events().Append(t.Context(), []event.Event{{Type: "B"}}, nil)
	require.NoError(t, err)
	got, err := follows.Recv()
	require.NoError(t, err, "the other call on the connection")
	require.Equal(t, "B", got.GetEvents()[0].GetEvent().GetType())
	for range 3 {
		_, err = entities.Get(t.Context(), &varvev1.GetRequest{Key: key})
		require.NoError(t, err)
	}
}
