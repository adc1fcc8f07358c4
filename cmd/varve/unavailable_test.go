package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
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
	r := begin(t, "serve", pgtest.URL(postgres, pgembed.Database), "--plaintext", "--listen=127.0.0.1:0", "--grpc=off", "--arkiv=127.0.0.1:0", "--cache=off")
	at := r.says(t, `REST on (\S+), gRPC on no port, Arkiv on (\S+),`)
	path := "/v1/entities/0x" + strings.Repeat("01", 32)
	require.Equal(t, "201", ask(t, "PUT", at[0], path))

	require.NoError(t, postgres.Stop(t.Context()))
	require.Eventually(t, func() bool { return ask(t, "GET", at[0], "/readyz") == "503 after 1" }, 20*time.Second, 10*time.Millisecond)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		require.Equal(t, "503 after 1", ask(t, method, at[0], path), method)
	}
	require.Equal(t, "200", ask(t, "GET", at[0], "/healthz"))
	answer, err := http.Post("http://"+at[1], "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"arkiv_getEntityCount"}`))
	require.NoError(t, err)
	var failed struct{ Error struct{ Code int } }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&failed))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, rpc.CodeUnavailable, failed.Error.Code)

	postgres, err = pgembed.Start(t.Context(), pgembed.Config{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, postgres.Stop(context.Background())) })
	require.Eventually(t, func() bool { return ask(t, "PUT", at[0], path) == "200" }, 20*time.Second, 10*time.Millisecond)
	require.Zero(t, r.stop(), &r.errs)
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

// TestServeEndsWithItsServer: a service does not outlive its embedded server, and says why it ends.
func TestServeEndsWithItsServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	r := begin(t, "serve", "postgres:"+dir, "--plaintext", "--listen=127.0.0.1:0", "--grpc=off")
	rest := r.says(t, `REST on (\S+),`)[0]
	require.Equal(t, "201", ask(t, "PUT", rest, "/v1/entities/0x"+strings.Repeat("01", 32)))
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	require.NoError(t, err)
	server, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	select {
	case got := <-r.code:
		require.Equal(t, cli.ExitError, got)
		require.Contains(t, r.errs.String(), "signal: killed")
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
	http.DefaultClient.CloseIdleConnections()
}
