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

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/node/rpc"
)

// TestServeWithoutDatabase: while the database's server is down every interface says that it
// is unavailable, and that the same request may succeed later; when it is back, so are they.
func TestServeWithoutDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	postgres, err := pgembed.Start(t.Context(), pgembed.Config{Dir: dir})
	require.NoError(t, err)
	var out, errs output
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{"serve", pgtest.URL(postgres, pgembed.Database), "--plaintext", "--listen=127.0.0.1:0", "--grpc=off", "--arkiv=127.0.0.1:0", "--cache=off"}, &out, &errs)
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") || len(code) > 0 }, 20*time.Second, 5*time.Millisecond)
	at := regexp.MustCompile(`REST on (\S+), gRPC on no port, Arkiv on (\S+),`).FindStringSubmatch(out.String())
	require.NotNil(t, at, "%s%s", &out, &errs)
	path := "/v1/entities/0x" + strings.Repeat("01", 32)
	require.Equal(t, "201", ask(t, "PUT", at[1], path))

	require.NoError(t, postgres.Stop(t.Context()))
	require.Eventually(t, func() bool { return ask(t, "GET", at[1], "/readyz") == "503 after 1" }, 20*time.Second, 10*time.Millisecond)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		require.Equal(t, "503 after 1", ask(t, method, at[1], path), method)
	}
	require.Equal(t, "200", ask(t, "GET", at[1], "/healthz"))
	answer, err := http.Post("http://"+at[2], "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"arkiv_getEntityCount"}`))
	require.NoError(t, err)
	var failed struct{ Error struct{ Code int } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&failed))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, rpc.CodeUnavailable, failed.Error.Code)

	postgres, err = pgembed.Start(t.Context(), pgembed.Config{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, postgres.Stop(context.Background())) })
	require.Eventually(t, func() bool { return ask(t, "PUT", at[1], path) == "200" }, 20*time.Second, 10*time.Millisecond)
	cancel()
	require.Zero(t, <-code, errs.String())
	http.DefaultClient.CloseIdleConnections()
}

// ask makes a request and returns its status, and when to ask again.
func ask(t *testing.T, method, rest, path string) string {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+rest+path, strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	status := strconv.Itoa(answer.StatusCode)
	if after := answer.Header.Get("Retry-After"); after != "" {
		status += " after " + after
	}
	return status
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
	rest, code, errs := serve(t.Context())
	require.Equal(t, "201", ask(t, "PUT", rest, path))
	requireEndsWithServer(t, dir, code, errs)

	ctx, cancel := context.WithCancel(t.Context())
	rest, code, errs = serve(ctx)
	require.Equal(t, "200", ask(t, "GET", rest, path))
	cancel()
	require.Zero(t, <-code, errs.String())
	http.DefaultClient.CloseIdleConnections()
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
