package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"

	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server that runs.
type world struct {
	db      *store.DB
	service *service.Service
	server  *server.Server
	stop    context.CancelFunc
	done    chan error
	client  *http.Client
}

func openDB(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func newService(t testing.TB, url string, so service.Options) (*store.DB, *service.Service) {
	t.Helper()
	db := openDB(t, url)
	var err error
	so.Keys, err = seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	require.NoError(t, err)
	s, err := service.New(context.Background(), db, so)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return db, s
}

func newURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "varve.db") }

func run(t testing.TB, so service.Options, o server.Options) *world {
	t.Helper()
	db, s := newService(t, newURL(t)+"?durability=relaxed", so)
	return runOver(t, db, s, o)
}

func runOver(t testing.TB, db *store.DB, s *service.Service, o server.Options) *world {
	t.Helper()
	w := &world{db: db, service: s, done: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	var err error
	w.server, err = server.Listen(t.Context(), w.service, o)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() { w.done <- w.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		w.client.CloseIdleConnections()
		if err := <-w.done; err != nil {
			t.Log("the server ended with", err) // the tests whose end matters have looked at it
		}
	})
	return w
}

// end stops the server and waits until it has ended, without an error.
func (w *world) end(t *testing.T) {
	t.Helper()
	w.stop()
	require.NoError(t, <-w.done)
	w.done <- nil
}

func (w *world) url(n int) string {
	return fmt.Sprintf("http://%s/v1/entities/0x%064x", w.server.REST(), n)
}

func (w *world) put(n int, payload string) (status int, err error) {
	return put(w.client, w.server.REST(), n, payload)
}

func put(client *http.Client, address string, n int, payload string) (status int, err error) {
	req, err := http.NewRequest(http.MethodPut, fmt.Sprintf("http://%s/v1/entities/0x%064x/payload", address, n), strings.NewReader(payload))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestNotOnLoopback(t *testing.T) {
	_, s := newService(t, newURL(t), service.Options{})
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		_, err := server.Listen(t.Context(), s, server.Options{REST: address})
		require.ErrorIs(t, err, server.ErrUnsafe, address)
		_, err = server.Listen(t.Context(), s, server.Options{GRPC: address})
		require.ErrorIs(t, err, server.ErrUnsafe, address)
	}
	_, err := server.Listen(t.Context(), s, server.Options{Token: "short"})
	require.ErrorContains(t, err, "too short")
	srv, err := server.Listen(t.Context(), s, server.Options{REST: "0.0.0.0:0", GRPC: "off", Token: "a token for the tests"})
	require.NoError(t, err)
	require.Empty(t, srv.GRPC())
	require.NoError(t, srv.Close())
	srv, err = server.Listen(t.Context(), s, server.Options{REST: "localhost:0", GRPC: "127.0.0.1:0"})
	require.NoError(t, err, "loopback needs none")
	require.NoError(t, srv.Close())
}

func dialPlain(t testing.TB, w *world) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(w.server.GRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dial opens a connection to the REST side, which a test writes by hand.
func (w *world) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", w.server.REST())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

// TestSlowClients: who dawdles over the head, the body or the next request is cut off.
func TestSlowClients(t *testing.T) {
	const short = 200 * time.Millisecond
	w := run(t, service.Options{}, server.Options{Timeouts: service.Timeouts{Header: short, Read: short, Write: short, Idle: short}})
	t.Run("head", func(t *testing.T) {
		conn := w.dial(t)
		_, err := io.WriteString(conn, "GET /healthz HT")
		require.NoError(t, err)
		_, err = io.ReadAll(conn)
		require.NoError(t, err, "closed by the server")
	})
	t.Run("body", func(t *testing.T) {
		conn := w.dial(t)
		_, err := fmt.Fprintf(conn, "PUT /v1/entities/0x%064x/payload HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc", 99)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	})
	t.Run("next request", func(t *testing.T) {
		conn := w.dial(t)
		_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		text, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(text), "200 OK")
	})
}

// TestDrain: requests under way when the server ends are answered, and their
// writes are in the store.
func TestDrain(t *testing.T) {
	w := run(t, service.Options{Window: 2 * time.Second}, server.Options{})
	const n = 8
	var wg sync.WaitGroup
	statuses := make([]int, n)
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { statuses[i], errs[i] = w.put(i, "x") })
	}
	require.Eventually(t, func() bool {
		rec, err := w.client.Get("http://" + w.server.REST() + "/metrics")
		if err != nil {
			return false
		}
		defer rec.Body.Close()
		text, err := io.ReadAll(rec.Body)
		return err == nil && strings.Contains(string(text), fmt.Sprintf("varve_requests_in_flight %d", n+1))
	}, 10*time.Second, 5*time.Millisecond, "all wait for their block")
	w.end(t)
	wg.Wait()
	for i := range n {
		require.NoError(t, errs[i])
		require.Equal(t, http.StatusCreated, statuses[i])
	}
	_, err := w.put(99, "x")
	require.Error(t, err, "nobody listens any more")
	w.service.Close()
	require.Positive(t, w.service.Head())
}

// TestArkiv: its address needs the token as the others do, unless it is public.
func TestArkiv(t *testing.T) {
	for _, public := range []bool{false, true} {
		w := runWithArkiv(t, server.Options{REST: "off", GRPC: "off", Token: attackToken}, public)
		require.Empty(t, w.server.REST())
		for _, authorization := range []string{"", "Bearer " + attackToken} {
			r, err := http.NewRequest(http.MethodPost, "http://"+w.server.Site(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`))
			require.NoError(t, err)
			r.Header.Set("Authorization", authorization)
			r.Header.Set("Content-Type", "application/json")
			answer, err := w.client.Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, public || authorization != "", answer.StatusCode == http.StatusOK)
		}
	}
	_, err := server.Listen(t.Context(), nil, server.Options{REST: "off", GRPC: "off", Site: &server.Site{Name: "Arkiv", Address: "0.0.0.0:0"}})
	require.ErrorIs(t, err, server.ErrUnsafe)
}
