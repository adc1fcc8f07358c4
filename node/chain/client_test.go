package chain_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/node/chain/chaintest"
)

// TestFollowFaults: whatever goes wrong now and then, the store is that of the chain.
func TestFollowFaults(t *testing.T) {
	c := &spoiled{Chain: chaintest.New(1337, 3)}
	c.Grow(120)
	ents := open(t, newURL(t, "compact"))
	client := serve(t, c)
	passing := faults[:len(faults)-1]
	c.spoil(func(n int) fault {
		if n < 4 || n%2 == 0 { // the first four bind the store; a missing genesis block is no fault that passes
			return nil
		}
		return passing[n/2%len(passing)].spoil
	})
	told := 0
	client.Retried = func(error) { told++ }
	for until := uint64(10); until <= 120; until += 10 { // so that there are many requests
		f := &chain.Follower{Client: client, Store: ents, Until: until}
		require.NoError(t, f.Run(t.Context()))
	}
	require.Greater(t, told, len(passing))
	requireFollowed(t, c.Chain, ents)
}

// TestFollowGivesUp: a lasting error ends following: after the given number of
// attempts, or at once where no repetition helps. Before that each attempt asks
// for fewer blocks, down to one call.
func TestFollowGivesUp(t *testing.T) {
	const less = 5 // 20 blocks, 12, 6, 3, 1
	c := &spoiled{Chain: chaintest.New(1337, 3)}
	c.Grow(20)
	for _, want := range faults {
		client := serve(t, c)
		client.Attempts = 3
		c.spoil(func(int) fault { return want.spoil })
		_, _, err := client.Blocks(t.Context(), 1, 20)
		require.Error(t, err)
		require.Equal(t, less+want.attempts*want.calls, c.asked(), "%v", err)
		require.ErrorContains(t, err, want.text)
		require.NotContains(t, err.Error(), client.URL, "services put keys into it")
		if want.cause != nil {
			require.ErrorIs(t, err, want.cause)
		}
	}
}

// TestFollowTooMuch: whatever an execution client takes for too much, and however it says
// so, it is asked for less, and later for more.
func TestFollowTooMuch(t *testing.T) {
	for name, limit := range map[string]limit{
		"part of a batch":       {bytes: 30_000, code: -32003, message: "response too large", partly: true},
		"calls of a batch":      {calls: 10, code: -32600, message: "batch too large"},
		"some calls":            {calls: 5, code: -32005, message: "rate limit", partly: true},
		"wrong parameters":      {bytes: 30_000, code: -32602, message: "query returned more than 10000 results"},
		"an internal error":     {bytes: 30_000, code: -32603, message: "internal error"},
		"HTTP 413":              {bytes: 30_000, status: 413},
		"HTTP 429":              {calls: 20, status: 429},
		"HTTP 400":              {calls: 20, status: 400},
		"HTTP 500":              {bytes: 30_000, status: 500},
		"a batch of any size":   {calls: 1, code: -32600, message: "batches are not supported"},
		"in words of their own": {calls: 7, code: 42, message: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &spoiled{Chain: chaintest.New(1337, 4)}
			c.Grow(60)
			ents := open(t, newURL(t, "compact"))
			client := serve(t, c)
			c.spoil(func(int) fault { return limit.answer })
			f := &chain.Follower{Client: client, Store: ents, Once: true}
			require.NoError(t, f.Run(t.Context()))
			require.Less(t, c.asked(), 60*3+20)
			requireFollowed(t, c.Chain, ents)

			c.spoil(nil)
			c.Grow(300)
			require.NoError(t, f.Run(t.Context()))
			require.Less(t, c.asked(), 130, "after a while as much is asked for as before")
			requireFollowed(t, c.Chain, ents)
		})
	}
}

// TestFollowTooMuchAlone: a single call that is too large ends following, with
// a clear error.
func TestFollowTooMuchAlone(t *testing.T) {
	c := &spoiled{Chain: chaintest.New(1337, 4)}
	c.Grow(60)
	client := serve(t, c)
	c.spoil(func(int) fault { return limit{bytes: 400, code: -32003, message: "response too large"}.answer })
	f := &chain.Follower{Client: client, Store: open(t, newURL(t, "compact")), Once: true}
	require.ErrorIs(t, f.Run(t.Context()), chain.ErrTooLarge)
}

func TestClientPauses(t *testing.T) {
	var asked int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 4 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte(`[{"id":0,"result":"0x539"}]`))
	}))
	defer server.Close()
	var pauses []time.Duration
	client := &chain.Client{URL: server.URL, Pause: func(_ context.Context, n int, least time.Duration) error {
		pauses = append(pauses, time.Duration(n), least)
		return nil
	}}
	id, err := client.ChainID(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(1337), id)
	require.Equal(t, []time.Duration{1, 7 * time.Second, 2, 7 * time.Second, 3, 7 * time.Second}, pauses)

	asked = 0
	ctx, cancel := context.WithCancel(t.Context())
	client.Pause, client.Retried = nil, func(error) { cancel() }
	_, err = client.ChainID(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, asked)
}

// TestClientAnswers: answers that are none.
func TestClientAnswers(t *testing.T) {
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	defer server.Close()
	client := &chain.Client{URL: server.URL, Attempts: 1, MaxAnswer: 200}
	for text, cause := range map[string]error{
		`[]`:                      chain.ErrAnswer,
		`{}`:                      chain.ErrAnswer,
		`null`:                    chain.ErrAnswer,
		`[{"id":1,"result":1}]`:   chain.ErrAnswer,
		`[{"id":-1}]`:             chain.ErrAnswer,
		`[{"result":"0x1"}]`:      chain.ErrAnswer,
		`[{"id":0}]`:              chain.ErrAnswer,
		`[{"id":0,"result":1}]`:   chain.ErrAnswer,
		`[{"id":0,"result":"1"}]`: chain.ErrAnswer,
		`[{"id":0,"result":"0x10000000000000000"}]`:                           chain.ErrAnswer,
		`[{"id":0,"result":"0x1"},{"id":0,"result":"0x1"}]`:                   chain.ErrAnswer,
		`[{"id":0,"error":{"code":-32601,"message":"no such method"}}]`:       chain.ErrRefused,
		`{"error":{"code":-32600,"message":"batches are not supported"}}`:     chain.ErrRefused,
		`[{"id":0,"result":"0x1","more":"` + strings.Repeat("x", 200) + `"}]`: chain.ErrTooLarge,
	} {
		body = text
		_, err := client.ChainID(t.Context())
		require.ErrorIs(t, err, cause, text)
	}
	body = `[{"id":0,"error":{"code":-32005,"message":"limit exceeded"}}]`
	_, err := client.ChainID(t.Context())
	require.ErrorContains(t, err, "limit exceeded")
	require.NotErrorIs(t, err, chain.ErrRefused)
}
