package rpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/query"
)

// FuzzHandle: any input is answered by JSON of the right shape, or not at all
// where no answer is due, and never by an internal error.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		"", "[", "[]", "[1]", "{}", "null", `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`,
		`[{"jsonrpc":"2.0","id":"a","method":"arkiv_query","params":["type = \"node\"",{"atBlock":"0xa","resultsPerPage":"0x1","orderBy":[{"name":"n","type":"numeric","desc":true}]}]}]`,
		`{"jsonrpc":"2.0","id":1,"method":"arkiv_query","params":["!type || name ~ \"n*\"",{"includeData":{"key":true,"attributes":true,"syntheticAttributes":true}}]}`,
		`{"jsonrpc":"2.0","id":null,"method":"eth_getLogs","params":[{"fromBlock":"earliest","toBlock":"0xa","address":["0x00000000000000000000000000000061726b6976"],"topics":[null,[null]]}]}`,
		`{"jsonrpc":"2.0","method":"eth_newFilter","params":[{}]}`, `{"jsonrpc":"2.0","id":-1.5e3,"method":"eth_getFilterChanges","params":["0x1"]}`,
		` { "jsonrpc" : "2.0" , "method" : "eth_chainId" , "params" : [ ] , "id" : "x" } `, `{"id":1,"id":2,"jsonrpc":"2.0","method":"a","method":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	n := newNode(f, "compact", Options{Wait: -1})
	n.apply(f, 10, create(1), create(2), create(3))
	f.Fuzz(func(t *testing.T, body []byte) {
		var m message
		n.handler.handle(t.Context(), &m, body)
		out := m.out
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

// FuzzParse: a query in the language keeps its meaning, and some other texts
// are corrected.
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
