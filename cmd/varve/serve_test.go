package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/pace"
	load "github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// running is a command that runs until it is stopped.
type running struct {
	out, errs clitest.Output
	code      chan int
	cancel    context.CancelFunc
}

// begin begins a command, which runs until the test is over unless it is
// stopped before.
func begin(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{code: make(chan int, 1), cancel: cancel}
	go func() { r.code <- cli.Run(ctx, args, &r.out, &r.errs) }()
	return r
}

// says waits until the command has printed something, and returns the groups of the pattern.
func (r *running) says(t *testing.T, pattern string) (groups []string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	require.Eventually(t, func() bool {
		groups = want.FindStringSubmatch(r.out.String())
		return groups != nil || len(r.code) > 0
	}, time.Minute, 5*time.Millisecond)
	require.NotNil(t, groups, "%s\n%s", &r.out, &r.errs)
	return groups[1:]
}

// stop ends the command and returns its exit code.
func (r *running) stop() int {
	r.cancel()
	return <-r.code
}

// serve runs varve serve until stop is called, which returns its exit code.
func serve(t *testing.T, args ...string) (rest, grpc string, stop func() int) {
	t.Helper()
	r := begin(t, append([]string{"serve"}, args...)...)
	at := r.says(t, `REST on (\S+), gRPC on (\S+), payloads (?:sealed|in plain text), block \d+(?:, reading only)?\n`)
	return at[0], at[1], r.stop
}

func TestServe(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(keys, []byte("# one key\n"+strings.Repeat("ab", 32)+"\n"), 0o600))
	store := url(t, "s.db")
	args := []string{store, "--layout=compact", "--key-file", keys, "--listen=127.0.0.1:0", "--grpc=127.0.0.1:0"}
	rest, grpc, stop := serve(t, args...)
	entity := "http://" + rest + "/v1/entities/0x" + strings.Repeat("01", 32)
	req, err := http.NewRequest(http.MethodPut, entity+"/payload?s.type=note", strings.NewReader("hello"))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "text/plain")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	overGRPC, err := load.GRPC(grpc)
	require.NoError(t, err)
	for _, client := range []load.Client{load.REST(rest, 4), overGRPC} {
		require.NoError(t, load.Load(t.Context(), client, 40))
		_, err := load.NewRequests(client, 40).Loop(t.Context(), pace.Config{Workers: 4, N: 80}, (*load.Requests).PutGet)
		require.NoError(t, err)
		require.NoError(t, client.Close())
	}
	require.Equal(t, cli.ExitOK, stop())

	require.NotContains(t, must(t, "query", store, `type = "note"`, "--json"), "aGVsbG8", "the payload is sealed")
	rest, _, stop = serve(t, args...)
	entity = "http://" + rest + "/v1/entities/0x" + strings.Repeat("01", 32)
	resp, err = http.Get(entity + "/payload")
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "hello", string(text))
	require.Equal(t, cli.ExitOK, stop())
	http.DefaultClient.CloseIdleConnections()
}

// TestServeFork: a store has one maker of blocks, a chain or a service; the other
// is told so and writes nothing.
func TestServeFork(t *testing.T) {
	chain := url(t, "chain.db")
	must(t, "import", arkiv+"blocks.tar", chain)
	before := must(t, "inspect", chain)
	listen := []string{"--listen=127.0.0.1:0", "--grpc=127.0.0.1:0"}
	_, errs, code := varve(t, append([]string{"serve", chain, "--plaintext"}, listen...)...)
	require.Equal(t, cli.ExitError, code, errs)
	require.Contains(t, errs, "--read-only")
	for _, args := range [][]string{{chain, "--read-only"}, {chain + "?read_only=true"}} {
		rest, _, stop := serve(t, append(args, listen...)...)
		resp, err := http.Get("http://" + rest + "/readyz")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
		must(t, "import", arkiv+"blocks.tar", chain) // while a service reads
		require.Equal(t, cli.ExitOK, stop())
	}
	require.Equal(t, before, must(t, "inspect", chain))

	own := url(t, "own.db")
	_, _, stop := serve(t, append([]string{own, "--plaintext"}, listen...)...)
	_, errs, code = varve(t, "import", arkiv+"blocks.tar", own)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "has the lease")
	_, errs, code = varve(t, append([]string{"serve", own, "--plaintext"}, listen...)...)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "--read-only")
	require.Equal(t, cli.ExitOK, stop())
	for _, args := range [][]string{
		{"import", arkiv + "blocks.tar", own}, {"import", "mendoza:scale=0.0001", own}, {"import", arkiv + "blocks.tar", own, "--factor=2"},
	} {
		_, errs, code = varve(t, args...)
		require.Equal(t, cli.ExitError, code, args)
		require.Contains(t, errs, "makes the blocks of this store", args)
	}
	_, _, stop = serve(t, append([]string{chain, "--plaintext", "--adopt"}, listen...)...)
	require.Equal(t, cli.ExitOK, stop())
	_, _, code = varve(t, "import", arkiv+"blocks.tar", chain)
	require.Equal(t, cli.ExitError, code, "it is the service's now")
	http.DefaultClient.CloseIdleConnections()
}

// TestSecretFiles: a file that others may read or write is no secret.
func TestSecretFiles(t *testing.T) {
	for _, name := range []string{"VARVE_KEYS", "VARVE_TOKEN", "CREDENTIALS_DIRECTORY"} {
		t.Setenv(name, "")
	}
	const nobody = 65534
	root := os.Geteuid() == 0
	for _, c := range []struct {
		mode    os.FileMode
		owner   int
		refused bool
	}{
		{0o600, 0, false}, {0o640, 0, false}, {0o440, 0, false}, {0o400, 0, false}, // as Postgres has it
		{0o600, nobody, false}, {0o400, nobody, false},
		{0o644, 0, true}, {0o660, 0, true}, {0o650, 0, true}, {0o604, 0, true}, {0o602, 0, true},
		{0o640, nobody, true}, {0o440, nobody, true}, {0o604, nobody, true}, {0o620, nobody, true},
	} {
		if c.owner == 0 && !root {
			continue // only root makes files of root
		}
		file := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("ab", 32)), 0o600))
		require.NoError(t, os.Chmod(file, c.mode))
		if root {
			require.NoError(t, os.Chown(file, c.owner, c.owner))
		}
		says := func(args ...string) {
			t.Helper()
			_, errs, code := varve(t, append([]string{"serve", url(t, "s.db"), "--owner=me"}, args...)...)
			require.Equal(t, cli.ExitUsage, code)
			require.Equal(t, c.refused, strings.Contains(errs, "chmod 600 "+file), "%o of %d, %v: %s", c.mode, c.owner, args, errs)
		}
		says("--key-file", file)
		t.Setenv("VARVE_KEYS", strings.Repeat("ab", 32))
		_, errs, _ := varve(t, "serve", url(t, "s.db"), "--tls-cert", file, "--tls-key", file)
		require.Equal(t, c.refused, strings.Contains(errs, "chmod 600 "+file), errs)
		t.Setenv("VARVE_KEYS", "")
		t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(file))
		_, errs, _ = varve(t, "serve", url(t, "s.db"), "--key-file", file, "--owner=me")
		require.NotContains(t, errs, "chmod", "systemd's own show rights of the group")
		t.Setenv("CREDENTIALS_DIRECTORY", "")
	}
}

func TestServeRefuses(t *testing.T) {
	for _, name := range []string{"VARVE_KEYS", "VARVE_TOKEN"} {
		t.Setenv(name, "")
	}
	bad := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(bad, []byte("no key"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no key":              {nil, "--key-file", cli.ExitUsage},
		"not a key":           {[]string{"--key-file", bad}, "not a key", cli.ExitUsage},
		"both":                {[]string{"--key-file", bad, "--plaintext"}, "one of them", cli.ExitUsage},
		"others can reach":    {[]string{"--plaintext", "--listen=0.0.0.0:0"}, "needs a token", cli.ExitUsage},
		"certificate, no key": {[]string{"--plaintext", "--tls-cert", bad}, "give both", cli.ExitUsage},
		"bad owner":           {[]string{"--plaintext", "--owner=me"}, "--owner", cli.ExitUsage},
		"bad cache":           {[]string{"--plaintext", "--cache=much"}, "--cache", cli.ExitUsage},
	} {
		_, errs, code := varve(t, append([]string{"serve", url(t, "s.db")}, c.args...)...)
		require.Equal(t, c.code, code, "%s: %s", name, errs)
		require.Contains(t, errs, c.want, name)
		require.NotContains(t, errs, "no key\n", name)
	}
}
