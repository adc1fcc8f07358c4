package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
	"github.com/varvedb/varve/node/chain/chaintest"
	"github.com/varvedb/varve/store"
)

var followKills = flag.Int("varve.kills", 2, "how often TestFollowKilled kills varve follow")

// execution serves a chain and returns the URL.
func execution(t *testing.T, c *chaintest.Chain) string {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}

// requireChain compares a store with one that was fed with the chain.
func requireChain(t *testing.T, c *chaintest.Chain, rawURL string) {
	t.Helper()
	fed, err := store.Open(t.Context(), url(t, "fed.db")+"?durability=unsafe", nil)
	require.NoError(t, err)
	defer fed.Close()
	want, err := fed.Entities(t.Context(), nil)
	require.NoError(t, err)
	db, err := store.Open(t.Context(), rawURL, nil)
	require.NoError(t, err)
	defer db.Close()
	got, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	for _, b := range c.Blocks() {
		_, err := want.Apply(t.Context(), b)
		require.NoError(t, err)
		has, err := got.HeaderAt(t.Context(), b.Number)
		require.NoError(t, err)
		head, err := want.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, head, has, "block %d", b.Number)
	}
	_, err = got.Verify(t.Context())
	require.NoError(t, err)
}

func TestFollow(t *testing.T) {
	c := chaintest.New(1337, 5)
	c.Grow(60)
	dst, rpc := url(t, "a.db"), execution(t, c)
	var res struct {
		Block  uint64 `json:"block"`
		Chain  uint64 `json:"chain_head"`
		Blocks uint64 `json:"blocks"`
		Reorgs uint64 `json:"reorganisations"`
		Digest string `json:"digest"`
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, "follow", rpc, dst, "--layout=compact", "--until=40", "--json")), &res))
	require.Equal(t, []uint64{40, 60, 41, 0}, []uint64{res.Block, res.Chain, res.Blocks, res.Reorgs})
	require.Len(t, res.Digest, 64)
	c.Reorganise(30, 35)
	require.Contains(t, must(t, "follow", rpc, dst, "--once"), "1 reorganisations; block 65 of 65")
	requireChain(t, c, dst)

	other := chaintest.New(1338, 5)
	_, stderr, code := varve(t, "follow", execution(t, other), dst, "--once")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "chain 1337")
	_, stderr, code = varve(t, "follow", "sqlite:x.db", url(t, "b.db"))
	require.Equal(t, cli.ExitUsage, code, stderr)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer down.Close()
	_, stderr, code = varve(t, "follow", down.URL, dst, "--once", "--attempts=2")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "503")
}

// TestFollowInterrupted: a follower without an end serves its metrics, and being told to
// end is none of its errors.
func TestFollowInterrupted(t *testing.T) {
	c := chaintest.New(1337, 6)
	c.Grow(30)
	dst, rpc := url(t, "a.db"), execution(t, c)
	address := freeAddress(t)
	r := begin(t, "follow", rpc, dst, "--metrics="+address, "--interval=10ms")
	require.Eventually(t, func() bool {
		text := get(t, address, "/metrics")
		return strings.Contains(text, "varve_follow_block 30\n") && strings.Contains(text, "varve_follow_lag_blocks 0\n")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, cli.ExitOK, r.stop(), &r.errs)
	require.Contains(t, r.out.String(), "block 30 of 30")
	requireChain(t, c, dst)
}

// get returns a server's answer, "" while it does not listen yet.
func get(t *testing.T, address, path string) string {
	t.Helper()
	res, err := http.Get("http://" + address + path)
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(res.Body)
	require.NoError(t, errors.Join(err, res.Body.Close()))
	return string(text)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	return server.Listener.Addr().String()
}

// TestFollowKilled kills the command at random moments while the chain grows and
// reorganises. It goes on without a gap or repeat: in the end every block is there, with
// the digest of a store that was fed with the final chain.
func TestFollowKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	c := chaintest.New(1337, seed)
	c.Grow(100)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.ServeHTTP(w, r) }))
	defer server.Close()
	dst, rpc := url(t, "a.db"), server.URL
	killed := 0
	for killed < *followKills {
		child := exec.Command(os.Args[0], "follow", rpc, dst, "--interval=5ms", "--layout=compact")
		child.Env = append(os.Environ(), clitest.AsCommand+"=1")
		var errs bytes.Buffer
		child.Stderr = &errs
		before := asked.Load()
		require.NoError(t, child.Start())
		// From its first question on it is at work.
		require.Eventually(t, func() bool { return asked.Load() > before }, time.Minute, time.Millisecond, errs.String())
		for until := time.Now().Add(time.Duration(rng.Int64N(int64(300 * time.Millisecond)))); time.Now().Before(until); time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond)))) {
			if depth := 1 + rng.IntN(64); rng.IntN(4) == 0 {
				c.Reorganise(depth, depth+rng.IntN(3))
			} else {
				c.Grow(1 + rng.IntN(5))
			}
		}
		require.NoError(t, child.Process.Kill(), errs.String())
		require.Error(t, child.Wait())
		killed++
	}
	must(t, "follow", rpc, dst, "--once")
	requireChain(t, c, dst)
}

// TestNode: one process follows a chain and answers its clients, over a reorganisation.
func TestNode(t *testing.T) {
	c := chaintest.New(99, 7)
	c.Grow(40)
	dst, rpc := url(t, "a.db"), execution(t, c)
	var traced atomic.Int64 // bytes
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { traced.Add(r.ContentLength) }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	r := begin(t, "node", rpc, dst, "--listen=127.0.0.1:0", "--interval=10ms", "--layout=compact")
	address := r.says(t, `^Arkiv on (\S+), chain 99\n`)[0]
	ask := func(method string, params string) (result json.RawMessage) {
		res, err := http.Post("http://"+address, "application/json", bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		require.NoError(t, err)
		defer res.Body.Close()
		var answer struct{ Result json.RawMessage }
		require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
		return answer.Result
	}
	for range 2 {
		blocks := c.Blocks()
		last := blocks[len(blocks)-1]
		live := c.Live()
		require.Eventually(t, func() bool {
			var timing struct {
				Block uint64 `json:"current_block"`
				Time  uint64 `json:"current_block_time"`
			}
			return json.Unmarshal(ask("arkiv_getBlockTiming", "[]"), &timing) == nil && timing.Block == last.Number && timing.Time == last.Time
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, strconv.Itoa(live), string(ask("arkiv_getEntityCount", "[]")))
		require.Equal(t, `"0x63"`, string(ask("eth_chainId", "[]")))
		var page struct {
			Data []json.RawMessage `json:"data"`
		}
		require.NoError(t, json.Unmarshal(ask("arkiv_query", `["$all"]`), &page))
		require.Len(t, page.Data, min(live, 200))
		c.Reorganise(20, 25)
	}
	require.Equal(t, cli.ExitOK, r.stop(), &r.errs)
	require.NotZero(t, traced.Load())
	must(t, "follow", rpc, dst, "--once")
	requireChain(t, c, dst)
	_, said, code := varve(t, "node", rpc, url(t, "b.db"), "--listen=0.0.0.0:0")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, said, "needs a token")
}
