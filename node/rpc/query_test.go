package rpc

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// layouts are the layouts that nodes use.
var layouts = []string{"compact", "arkiv"}

func TestQuery(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			n := newNode(t, layout, Options{})
			n.apply(t, 10, create(1), create(2), create(3))
			n.apply(t, 12, entity.Op{Kind: entity.Update, Key: keyOf(2), BTL: 50, Owner: alice, ContentType: "a/b", Content: []byte{0, 0xff}, StringAttributes: map[string]string{"say": `a "b" \c`}})
			for text, want := range map[string][]int{
				"": {3, 2, 1}, "*": {3, 2, 1}, "$all": {3, 2, 1}, "1 = 1": {3, 2, 1},
				`type = "node"`: {3, 1}, "!type": {2}, `!say && n > 0`: {3, 1}, `n = 1 OR n = 3`: {3, 1}, `NOT (type = "node")`: {2},
				`name GLOB "n000[12]" and type Not Glob "x*"`: {1}, `n = 1 Or in = 2`: {1}, `!in && !glob && n = 3`: {3},
				`say = "a "b" \c"`: {2}, `(say = "a "b" \c" || n = 1)`: {2, 1}, `say in ("a "b" \c" "x")`: {2},
				"$key = " + keyOf(1).String(): {1}, "$key = " + keyOf(9).String(): {}, "$owner=" + alice.String(): {3, 2, 1},
			} {
				var page gotPage
				n.result(t, &page, "arkiv_query", text, nil)
				require.Equal(t, want, numbers(page), text)
				require.Equal(t, "0xc", page.Block)
				require.Nil(t, page.Cursor)
			}
			var page gotPage
			n.result(t, &page, "arkiv_query", "*", m{"atBlock": "0xb"})
			require.Equal(t, "0xb", page.Block)
			require.Len(t, page.Data[1].Strings, 2)
		})
	}
}

// numbers returns which entities of create a page has.
func numbers(page gotPage) []int {
	list := []int{}
	for _, e := range page.Data {
		var n int
		_, _ = fmt.Sscanf(e.Key[60:], "%x", &n)
		list = append(list, n)
	}
	return list
}

// TestFields: an answer has the fields that were asked for, and no others.
func TestFields(t *testing.T) {
	n := newNode(t, "compact", Options{})
	op := create(1)
	op.TxIndex = 4
	n.apply(t, 10, op)
	fields := map[string]string{
		"key": `"` + keyOf(1).String() + `"`, "value": `"0x7061796c6f61642031"`, "contentType": `"text/plain"`,
		"owner": `"` + alice.String() + `"`, "creator": `"` + alice.String() + `"`, "expiresAt": "1010", "createdAtBlock": "10",
		"lastModifiedAtBlock": "10", "transactionIndexInBlock": "4", "operationIndexInTransaction": "0",
		"stringAttributes":  `[{"key":"name","value":"n0001"},{"key":"type","value":"node"}]`,
		"numericAttributes": `[{"key":"n","value":1},{"key":"rank","value":1}]`,
	}
	names := map[string]string{"payload": "value", "expiration": "expiresAt"}
	for field := range fields {
		name := field
		for option, of := range names {
			if of == field {
				name = option
			}
		}
		if field == "stringAttributes" || field == "numericAttributes" {
			continue
		}
		require.JSONEq(t, fmt.Sprintf(`{%q:%s}`, field, fields[field]), n.fields(t, m{name: true}))
	}
	require.JSONEq(t, "{}", n.fields(t, m{}))
	require.JSONEq(t, fmt.Sprintf(`{"stringAttributes":%s,"numericAttributes":%s}`, fields["stringAttributes"], fields["numericAttributes"]), n.fields(t, m{"attributes": true}))
	require.JSONEq(t, fmt.Sprintf(`{"stringAttributes":[{"key":"$key","value":%s},{"key":"$owner","value":%s},{"key":"$creator","value":%s}],
		"numericAttributes":[{"key":"$expiration","value":1010},{"key":"$createdAtBlock","value":10},{"key":"$lastModifiedAtBlock","value":10},
		{"key":"$sequence","value":42949935104},{"key":"$txIndex","value":4},{"key":"$opIndex","value":0}]}`, fields["key"], fields["owner"], fields["creator"]),
		n.fields(t, m{"syntheticAttributes": true}))
	var usual map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(n.fields(t, nil)), &usual))
	for _, field := range []string{"key", "contentType", "value", "owner", "stringAttributes", "numericAttributes", "expiresAt"} {
		require.JSONEq(t, fields[field], string(usual[field]))
		delete(usual, field)
	}
	require.Empty(t, usual)
}

// fields returns the selected fields of a node's only entity.
func (n *node) fields(t *testing.T, include any) string {
	t.Helper()
	var page struct{ Data []json.RawMessage }
	options := m{}
	if include != nil {
		options["includeData"] = include
	}
	n.result(t, &page, "arkiv_query", "*", options)
	require.Len(t, page.Data, 1)
	return string(page.Data[0])
}

// pages reads a query to its end, as the SDKs do: with the block and the cursor.
func (n *node) pages(t testing.TB, text string, options m) (list []gotPage) {
	t.Helper()
	for options = clone(options); ; {
		var page gotPage
		n.result(t, &page, "arkiv_query", text, options)
		list = append(list, page)
		if page.Cursor == nil {
			return list
		}
		options["cursor"], options["atBlock"] = *page.Cursor, page.Block
	}
}

func clone(options m) m {
	c := m{}
	for name, value := range options {
		c[name] = value
	}
	return c
}

func joined(pages []gotPage) (list []int) {
	for _, p := range pages {
		list = append(list, numbers(p)...)
	}
	return list
}

// TestPageParts: a page of large payloads is whole, also where it is sent in parts and the
// head moves meanwhile, and a client that pages gets all.
func TestPageParts(t *testing.T) {
	for _, layout := range append(layouts, "simple") {
		t.Run(layout, func(t *testing.T) {
			n := newNode(t, layout, Options{Limits: Limits{Part: 2000}})
			var want []int
			for i := range 30 {
				op := create(i)
				op.Content = make([]byte, 500*(i%4)+1)
				n.apply(t, uint64(10+i), op)
				want = append([]int{i}, want...)
			}
			for _, order := range [][]m{nil, {{"name": "n", "type": "numeric", "desc": true}}} {
				pages := n.pages(t, `type = "node"`, m{"orderBy": order})
				require.Len(t, pages, 1)
				require.Equal(t, want, joined(pages))
				require.Equal(t, "0x27", pages[0].Block)
				pages = n.pages(t, `type = "node"`, m{"orderBy": order, "resultsPerPage": "0xa"})
				require.Len(t, pages, 4)
				require.Equal(t, want, joined(pages))
				require.Empty(t, pages[3].Data)
				pages = n.pages(t, `type = "node"`, m{"orderBy": order, "resultsPerPage": "0xa", "includeData": m{"key": true}})
				require.Equal(t, want, joined(pages), "a cursor has the attribute, which is not sent")
			}
			var page gotPage
			n.result(t, &page, "arkiv_query", `$key = `+keyOf(7).String())
			require.Equal(t, []int{7}, numbers(page))
			require.Nil(t, page.Cursor)
			require.Equal(t, []int{7}, joined(n.pages(t, `$key = `+keyOf(7).String(), m{"resultsPerPage": "0x1"})))
		})
	}
}

// TestPageLimits: a page has at most so many entities, and about so many bytes, however many
// are asked for. Where that is less there is a cursor, which leads to the rest.
func TestPageLimits(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Part: 2000, Answer: 6000, Page: 10_000, MaxResults: 12}})
	for i := range 13 {
		op := create(i)
		op.Content = make([]byte, 500)
		n.apply(t, uint64(10+i), op)
	}
	pages := n.pages(t, "*", m{"resultsPerPage": "0xc"})
	require.Len(t, pages, 2)
	require.Len(t, pages[0].Data, 8)
	require.Len(t, joined(pages), 13)
	pages = n.pages(t, "*", m{"resultsPerPage": "0x6"})
	require.Len(t, pages, 3)
	require.Len(t, joined(pages), 13)

	without := m{"includeData": m{"key": true}}
	for _, size := range []string{"0xc", "0xd", "0x3b9aca00"} {
		pages = n.pages(t, "*", with(without, "resultsPerPage", size))
		require.Len(t, pages, 2)
		require.Len(t, pages[0].Data, 12)
		require.Len(t, pages[1].Data, 1)
	}

	// An answer that is held until it is whole has its own limit.
	var list []answered
	query := body("arkiv_query", `["*",{"resultsPerPage":"0x6"}]`)
	_, text := n.post(t, "["+query+","+body("eth_chainId", "[]")+"]")
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Equal(t, CodeTooLarge, list[0].Error.Code)
	require.Nil(t, list[1].Error)
	_, text = n.post(t, "["+query+"]") // as viem sends any call when it may batch
	list = nil
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Nil(t, list[0].Error)
}

func with(options m, name string, value any) m {
	options = clone(options)
	options[name] = value
	return options
}

// TestPartsRewound: when the block of a page is rewound after a part of it was sent, the
// answer ends unfinished, because clients take data for an answer. A call whose client
// takes a part has no place.
func TestPartsRewound(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Part: 200, Concurrent: 1}})
	for i := range 6 {
		n.apply(t, uint64(10+i), create(i))
	}
	var sent []byte
	answer := message{part: func(part []byte) error {
		if sent == nil {
			require.Empty(t, n.handler.places)
			require.NoError(t, n.ents.Rewind(t.Context(), 13))
		}
		sent = append(sent, part...)
		return nil
	}}
	n.handler.handle(t.Context(), &answer, []byte(body("arkiv_query", `["*"]`)))
	require.NotEmpty(t, sent)
	require.True(t, answer.broken)
	require.Empty(t, answer.out)
	require.Empty(t, n.handler.places)
}

// rewinding is a connection at whose first part the store is rewound.
type rewinding struct {
	http.ResponseWriter
	rewind func()
}

// Write implements http.ResponseWriter.
func (r *rewinding) Write(part []byte) (int, error) {
	r.rewind()
	return r.ResponseWriter.Write(part)
}

// TestPartsBroken: a client of HTTP is told by the connection that an answer is unfinished.
func TestPartsBroken(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Part: 200}})
	for i := range 6 {
		op := create(i)
		op.Content = make([]byte, 10_000) // more than is held back until there is more to send
		n.apply(t, uint64(10+i), op)
	}
	rewind := sync.OnceFunc(func() { require.NoError(t, n.ents.Rewind(t.Context(), 13)) })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.handler.ServeHTTP(&rewinding{w, rewind}, r)
	}))
	defer web.Close()
	r, err := http.Post(web.URL, "application/json", strings.NewReader(body("arkiv_query", `["*"]`)))
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s", text)
	require.Contains(t, string(text), `"data":[`)
	require.NotContains(t, string(text), `"error"`)
}

// TestRewound: the next page of a block that is gone has a separate error, and
// a block that is still there has none.
func TestRewound(t *testing.T) {
	n := newNode(t, "compact", Options{})
	for i := range 6 {
		n.apply(t, uint64(10+i), create(i))
	}
	var kept, gone gotPage
	n.result(t, &kept, "arkiv_query", "*", m{"atBlock": "0xc", "resultsPerPage": "0x2"})
	n.result(t, &gone, "arkiv_query", "*", m{"resultsPerPage": "0x2"})
	require.NoError(t, n.ents.Rewind(t.Context(), 13))
	n.fails(t, CodeRewound, "arkiv_query", "*", m{"cursor": *gone.Cursor, "atBlock": gone.Block})
	n.apply(t, 14, create(100))
	n.apply(t, 15, create(101))
	n.apply(t, 16)
	n.fails(t, CodeRewound, "arkiv_query", "*", m{"cursor": *gone.Cursor, "atBlock": gone.Block})
	n.result(t, &kept, "arkiv_query", "*", m{"cursor": *kept.Cursor, "atBlock": kept.Block, "resultsPerPage": "0x2"})
	require.Equal(t, []int{0}, numbers(kept))
	require.NoError(t, n.ents.Prune(t.Context(), 14))
	n.fails(t, CodePruned, "arkiv_query", "*", m{"atBlock": "0xc"})
}

// TestAhead: a block ahead of the head is waited for, and then an error.
func TestAhead(t *testing.T) {
	n := newNode(t, "compact", Options{Wait: 20 * time.Millisecond})
	n.apply(t, 10, create(1))
	n.fails(t, CodeAhead, "arkiv_query", "*", m{"atBlock": "0xb"})

	n = newNode(t, "compact", Options{Wait: time.Minute, Limits: Limits{Time: time.Minute}})
	n.apply(t, 10, create(1))
	got := make(chan answered)
	go func() { got <- n.call(t, "arkiv_query", "*", m{"atBlock": "0xc"}) }()
	n.apply(t, 11, create(2))
	n.apply(t, 12, create(3))
	n.apply(t, 13, create(4))
	a := <-got
	require.Nil(t, a.Error)
	var page gotPage
	require.NoError(t, json.Unmarshal(a.Result, &page))
	require.Equal(t, "0xc", page.Block)
	require.Equal(t, []int{3, 2, 1}, numbers(page))
}

// TestArriving: a block that comes while it is asked for is there, and not pruned.
func TestArriving(t *testing.T) {
	n := newNode(t, "compact", Options{Wait: time.Minute, Limits: Limits{Time: time.Minute}})
	n.apply(t, 10, create(1))
	for block := uint64(11); block < 300; block++ {
		got := make(chan answered)
		go func() { got <- n.call(t, "arkiv_query", "*", m{"atBlock": fmt.Sprintf("%#x", block)}) }()
		n.apply(t, block)
		require.Nil(t, (<-got).Error)
	}
}

// TestHeadOnly: on a layout without history there are pages at the head, and nothing else.
func TestHeadOnly(t *testing.T) {
	n := newNode(t, "simple", Options{})
	n.apply(t, 10, create(1), create(2), create(3))
	pages := n.pages(t, "*", m{"resultsPerPage": "0x2"})
	require.Equal(t, []int{3, 2, 1}, joined(pages))
	n.apply(t, 11)
	n.fails(t, CodeNotSupported, "arkiv_query", "*", m{"atBlock": "0xa"})
	n.fails(t, CodeNotSupported, "eth_getLogs", m{"fromBlock": "0xa"})
	n.fails(t, CodeNotSupported, "eth_newFilter", m{})
}

func TestRequote(t *testing.T) {
	for text, want := range map[string]query.Expr{
		`a = "b"`:                 query.Compare{Name: "a", Op: query.Equal, Value: query.Text("b")},
		`a = "C:\dir"`:            query.Compare{Name: "a", Op: query.Equal, Value: query.Text(`C:\dir`)},
		`a = "say "hi""`:          query.Compare{Name: "a", Op: query.Equal, Value: query.Text(`say "hi"`)},
		`a = """`:                 query.Compare{Name: "a", Op: query.Equal, Value: query.Text(`"`)},
		`a = "x" or"`:             query.Compare{Name: "a", Op: query.Equal, Value: query.Text(`x" or`)},
		"`q\"n` = \"say \"hi\"\"": query.Compare{Name: `q"n`, Op: query.Equal, Value: query.Text(`say "hi"`)},
		`a GLOB "x "y"" Or in = "say "hi""`: query.Or{Terms: []query.Expr{
			query.Glob{Name: "a", Pattern: `x "y"`}, query.Compare{Name: "in", Op: query.Equal, Value: query.Text(`say "hi"`)},
		}},
		"a in (\"b\" c\"\u00a0\"d\")": query.In{Name: "a", Values: []query.Value{query.Text(`b" c`), query.Text("d")}},
		`a in ("b" c" "d")`:           query.In{Name: "a", Values: []query.Value{query.Text(`b" c`), query.Text("d")}},
	} {
		expr, err := parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, expr, text)
	}
	for _, text := range []string{`a = "b`, `a = b"c"`, `a == "b"`, "`a", `a = "\`} {
		_, err := parse(text)
		_, strict := query.Parse(text)
		require.Equal(t, strict, err, text)
	}
}
