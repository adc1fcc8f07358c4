package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/node/rpc"
)

// TestServeWithoutDatabase: while the database's server is down every interface says that it
// is unavailable, and where the same request may succeed later; when it is back, so are they.
func TestServeWithoutDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	start := func() *pgembed.Server {
		server, err := pgembed.Start(t.Context(), pgembed.Config{Dir: dir})
		require.NoError(t, err)
		return server
	}
	postgres := start()
	var out, errs output
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{"serve", pgtest.URL(postgres, pgembed.Database), "--plaintext", "--listen=127.0.0.1:0", "--grpc=127.0.0.1:0", "--arkiv=127.0.0.1:0", "--cache=off"}, &out, &errs)
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") || len(code) > 0 }, 20*time.Second, 5*time.Millisecond)
	at := regexp.MustCompile(`REST on (\S+), gRPC on (\S+), Arkiv on (\S+),`).FindStringSubmatch(out.String())
	require.NotNil(t, at, "%s%s", &out, &errs)
	conn, err := grpc.NewClient(at[2], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	entities, events := varvev1.NewEntityServiceClient(conn), varvev1.NewEventServiceClient(conn)
	path := "/v1/entities/0x" + strings.Repeat("01", 32)
	ask := func(method, path, body string) (status int, retry string) {
		r, err := http.NewRequest(method, "http://"+at[1]+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode, answer.Header.Get("Retry-After")
	}
	is := func(want int, method, path, body string) bool {
		status, _ := ask(method, path, body)
		return status == want
	}
	require.True(t, is(201, "PUT", path, "{}"))

	require.NoError(t, postgres.Stop(t.Context()))
	require.Eventually(t, func() bool { return is(503, "GET", "/readyz", "") }, 20*time.Second, 10*time.Millisecond)
	for _, c := range [][3]string{
		{"GET", path}, {"GET", "/readyz"}, {"PUT", path, "{}"}, {"DELETE", path}, {"POST", "/v1/query", `{"query":"*"}`}, {"POST", "/v1/events", `{"events":[{"type":"A"}]}`},
	} {
		status, retry := ask(c[0], c[1], c[2])
		require.Equal(t, 503, status, "%v", c)
		require.Equal(t, "1", retry, "%v", c)
	}
	require.True(t, is(200, "GET", "/healthz", ""))
	require.True(t, is(200, "GET", "/metrics", ""))
	key := make([]byte, 32)
	_, err = entities.Get(t.Context(), &varvev1.GetRequest{Key: key})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	_, err = entities.Put(t.Context(), &varvev1.PutRequest{Key: key})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	_, err = events.Append(t.Context(), &varvev1.AppendRequest{Events: []*varvev1.Event{{Type: "A"}}})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	answer, err := http.Post("http://"+at[3], "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"arkiv_getEntityCount"}`))
	require.NoError(t, err)
	var failed struct{ Error struct{ Code int } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&failed))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, rpc.CodeUnavailable, failed.Error.Code)

	postgres = start()
	t.Cleanup(func() { require.NoError(t, postgres.Stop(context.Background())) })
	require.Eventually(t, func() bool { return is(200, "PUT", path, "{}") }, 20*time.Second, 10*time.Millisecond)
	require.True(t, is(200, "GET", path, ""))
	require.NoError(t, conn.Close())
	cancel()
	require.Zero(t, <-code, errs.String())
	http.DefaultClient.CloseIdleConnections()
}

// TestServeEndsWithItsServer: a service does not outlive its embedded server, and says why
// it ends. What it acknowledged is there when it is started again.
func TestServeEndsWithItsServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	path := "/v1/entities/0x" + strings.Repeat("01", 32)
	serve := func(ctx context.Context) (rest string, code chan int, errs *output) {
		var out output
		errs, code = &output{}, make(chan int, 1)
		go func() {
			code <- cli.Run(ctx, []string{"serve", "postgres:" + dir, "--plaintext", "--listen=127.0.0.1:0", "--grpc=off"}, &out, errs)
		}()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") || len(code) > 0 }, 60*time.Second, 5*time.Millisecond)
		at := regexp.MustCompile(`REST on (\S+),`).FindStringSubmatch(out.String())
		require.NotNil(t, at, "%s%s", &out, errs)
		return at[1], code, errs
	}
	ask := func(method, rest string) int {
		r, err := http.NewRequest(method, "http://"+rest+path, strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	rest, code, errs := serve(t.Context())
	require.Equal(t, 201, ask("PUT", rest))
	requireEndsWithServer(t, dir, code, errs)

	ctx, cancel := context.WithCancel(t.Context())
	rest, code, errs = serve(ctx)
	require.Equal(t, 200, ask("GET", rest))
	cancel()
	require.Zero(t, <-code, errs.String())
	http.DefaultClient.CloseIdleConnections()
}

// TestFollowEndsWithItsServer: nor does a follower outlive it.
func TestFollowEndsWithItsServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	c := chaintest.New(1337, 6)
	c.Grow(3)
	var out, errs output
	code := make(chan int, 1)
	rpc := execution(t, c)
	go func() {
		code <- cli.Run(t.Context(), []string{"follow", rpc, "postgres:" + dir, "--interval=10ms"}, &out, &errs)
	}()
	require.Eventually(t, func() bool { return c.Asked() > 100 || len(code) > 0 }, time.Minute, 5*time.Millisecond)
	requireEndsWithServer(t, dir, code, &errs)
}

// requireEndsWithServer kills a directory's server, and waits for a command that ends with it.
func requireEndsWithServer(t *testing.T, dir string, code chan int, errs *output) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	require.NoError(t, err)
	server, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	select {
	case got := <-code:
		require.Equal(t, cli.ExitError, got)
		require.Contains(t, errs.String(), "signal: killed")
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
}
