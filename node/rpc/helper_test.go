package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

var (
	alice = entity.Address{0: 0xa1, 19: 1}
	bob   = entity.Address{0: 0xb0, 19: 2}
)

func keyOf(n int) entity.Key {
	return entity.Key{0: 0xe0, 29: byte(n >> 16), 30: byte(n >> 8), 31: byte(n)}
}

// node is a store that is served.
type node struct {
	db      *store.DB
	ents    *store.Entities
	handler *Handler
	url     string
}

func newStore(t testing.TB, layout string) *node {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite://"+t.TempDir()+"/varve.db?durability=unsafe", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: layout})
	require.NoError(t, err)
	return &node{db: db, ents: ents}
}

// serve begins to serve a store, until the test ends.
func (n *node) serve(t testing.TB, o Options) *node {
	t.Helper()
	if o.Poll == 0 {
		o.Poll = 5 * time.Millisecond
	}
	var err error
	n.handler, err = New(t.Context(), n.ents, o)
	require.NoError(t, err)
	server := httptest.NewServer(n.handler)
	n.url = server.URL
	t.Cleanup(func() {
		require.NoError(t, n.handler.Close())
		server.Close()
	})
	return n
}

func newNode(t testing.TB, layout string, o Options) *node { return newStore(t, layout).serve(t, o) }

func (n *node) apply(t testing.TB, number uint64, ops ...entity.Op) {
	t.Helper()
	for i := range ops {
		ops[i].OpIndex = uint32(i)
	}
	_, err := n.ents.Apply(context.Background(), entity.Block{Number: number, Ops: ops})
	require.NoError(t, err)
}

// create is an operation that makes entity number n, with attributes to ask for.
func create(n int) entity.Op {
	return entity.Op{
		Kind: entity.Create, Key: keyOf(n), BTL: 1000, Owner: alice, ContentType: "text/plain", Content: fmt.Appendf(nil, "payload %d", n),
		StringAttributes:  map[string]string{"type": "node", "name": fmt.Sprintf("n%04d", n)},
		NumericAttributes: map[string]uint64{"rank": uint64(n % 7), "n": uint64(n)},
	}
}

// answered is an answer of JSON-RPC.
type answered struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// post sends a body and returns status and answer.
func (n *node) post(t testing.TB, body string) (int, string) {
	t.Helper()
	r, err := http.Post(n.url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

func (n *node) call(t testing.TB, method string, params ...any) answered {
	t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(t, err)
	_, text := n.post(t, string(body))
	var a answered
	require.NoError(t, json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&a), "%s", text)
	require.Equal(t, "2.0", a.Version)
	require.Equal(t, "1", string(a.ID))
	return a
}

// result calls a method that must succeed.
func (n *node) result(t testing.TB, dst any, method string, params ...any) {
	t.Helper()
	a := n.call(t, method, params...)
	require.Nil(t, a.Error, "%s %v: %+v", method, params, a.Error)
	require.NoError(t, json.Unmarshal(a.Result, dst), "%s", a.Result)
}

// fails calls a method that must not.
func (n *node) fails(t testing.TB, code int, method string, params ...any) string {
	t.Helper()
	a := n.call(t, method, params...)
	require.NotNil(t, a.Error, "%s %v: %s", method, params, a.Result)
	require.Equal(t, code, a.Error.Code, a.Error.Message)
	require.NotEmpty(t, a.Error.Message)
	return a.Error.Message
}

// gotPage is what arkiv_query answers.
type gotPage struct {
	Data []struct {
		Key     string                        `json:"key"`
		Value   string                        `json:"value"`
		Owner   string                        `json:"owner"`
		Expires uint64                        `json:"expiresAt"`
		Strings []struct{ Key, Value string } `json:"stringAttributes"`
		Numbers []struct {
			Key   string
			Value uint64
		} `json:"numericAttributes"`
	} `json:"data"`
	Block  string  `json:"blockNumber"`
	Cursor *string `json:"cursor"`
}

type m = map[string]any
