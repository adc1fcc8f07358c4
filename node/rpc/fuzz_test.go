package rpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/query"
)

// FuzzHandle: whatever comes, it is answered by JSON of the right shape, or not at all
// where nothing is due, and never by an internal error.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		"", "[", "[]", "[1]", "{}", "null", `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`,
		`[{"jsonrpc":"2.0","id":"a","method":"arkiv_query","params":["type = \"node\"",{"atBlock":"0xa","resultsPerPage":"0x1","orderBy":[{"name":"n","type":"numeric","desc":true}]}]}]`,
		`{"jsonrpc":"2.0","id":1,"method":"arkiv_query","params":["!type || name ~ \"n*\"",{"includeData":{"key":true,"attributes":true,"syntheticAttributes":true}}]}`,
		`{"jsonrpc":"2.0","id":null,"method":"eth_getLogs","params":[{"fromBlock":"earliest","toBlock":"0xa","address":["0x00000000000000000000000000000061726b6976"],"topics":[null,[null]]}]}`,
		`{"jsonrpc":"2.0","method":"eth_newFilter","params":[{}]}`, `{"jsonrpc":"2.0","id":-1.5e3,"method":"eth_getFilterChanges","params":["0x1"]}`,
	} {
		f.Add([]byte(seed))
	}
	n := newNode(f, "compact", Options{Wait: -1})
	n.apply(f, 10, create(1), create(2), create(3))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, _, _ := n.handler.handle(t.Context(), nil, body, nil, held{}, nil)
		if len(out) == 0 {
			return
		}
		var list []answered
		if out[0] == '[' {
			require.NoError(t, json.Unmarshal(out, &list), "%s", out)
		} else {
			list = make([]answered, 1)
			require.NoError(t, json.Unmarshal(out, &list[0]), "%s", out)
		}
		for _, a := range list {
			require.Equal(t, "2.0", a.Version)
			require.NotEmpty(t, a.ID)
			require.NotEqual(t, a.Error == nil, a.Result == nil, "%s", out)
			if a.Error != nil {
				require.NotEqual(t, CodeInternal, a.Error.Code, "%s", out)
			}
		}
	})
}

// FuzzParse: a query that the language takes means what the language says, and of the rest
// some are mended.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "1 = 1", `a = "b" && c = "d"`, `a = "say "hi""`, "`a`=\"\\\"", `a in ("x "y" z" "w")`, `(((a = """)))`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		expr, err := parse(text)
		if strict, strictErr := query.Parse(strings.TrimSpace(text)); strictErr == nil {
			require.NoError(t, err)
			require.Equal(t, strict, expr)
		}
		if err == nil && expr != nil {
			require.NoError(t, query.Check(expr))
		}
	})
}

// FuzzQuick: what is read quickly is what is read carefully.
func FuzzQuick(f *testing.F) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"arkiv_query","params":["a = \"b\"",{"atBlock":"0x1","orderBy":[{"name":"]}"}]}]}`,
		` { "jsonrpc" : "2.0" , "method" : "eth_chainId" , "params" : [ ] , "id" : "x" } `, `{"jsonrpc":"2.0","id":null,"method":"m"}`,
		`{"jsonrpc":"2.0","method":"m","params":[1, true ,null,-2.5e3,"\\",[[]],{}]}`, `{}`, `{ }`, `[]`, `"x"`, `1`, ``, `{"jsonrpc":"2.0","id":{},"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}`, `{"id":1,"id":2,"jsonrpc":"2.0","method":"a","method":"b"}`,
		`{"ID":1,"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","id":1,"method":"\u0061"}`, `{"jsonrpc":"2.0","id":1,"method":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := quick(text)
		if !ok {
			return
		}
		want, fault := careful(text)
		require.Nil(t, fault)
		require.Nil(t, want.err)
		require.Equal(t, want.method, got.method)
		require.Equal(t, string(want.id), string(got.id))
		require.Equal(t, want.id == nil, got.id == nil)
		require.Equal(t, len(want.params), len(got.params))
		for i := range want.params {
			require.Equal(t, string(want.params[i]), string(got.params[i]))
		}
	})
}

// TestQuickIsUsual: requests of clients are read quickly.
func TestQuickIsUsual(t *testing.T) {
	r, ok := quick([]byte(`{"jsonrpc":"2.0","id":7,"method":"arkiv_query","params":["*",{"resultsPerPage":"0x5"}]}`))
	require.True(t, ok)
	require.Equal(t, "arkiv_query", r.method)
	require.Len(t, r.params, 2)
}
