package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

func body(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

// TestMalformed: each fault of a request has its code, and the id where that
// can be read.
func TestMalformed(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Request: 200 << 10, Batch: 10}})
	n.apply(t, 10, create(1))
	deep := strings.Repeat("(", 300) + "a = 1" + strings.Repeat(")", 300)
	for _, c := range []struct {
		name, text string
		id         string
		code       int
	}{
		{"nothing", "", "null", CodeParse},
		{"spaces", " \n", "null", CodeParse},
		{"no JSON", "{", "null", CodeParse},
		{"two values", body("eth_chainId", "[]") + "{}", "null", CodeParse},
		{"not UTF-8 outside strings", "\xff", "null", CodeParse},
		{"a batch that is no JSON", `[{"jsonrpc":`, "null", CodeParse},
		{"deeper than JSON may be", strings.Repeat("[", 20_000), "null", CodeParse},
		{"deep parameters", body("eth_chainId", strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), "null", CodeParse},
		{"a number", "1", "null", CodeRequest},
		{"a text", `"eth_chainId"`, "null", CodeRequest},
		{"an empty batch", "[]", "null", CodeRequest},
		{"no version", `{"id":1,"method":"eth_chainId"}`, "1", CodeRequest},
		{"another version", `{"jsonrpc":"1.0","id":"a","method":"eth_chainId"}`, `"a"`, CodeRequest},
		{"no method", `{"jsonrpc":"2.0","id":1}`, "1", CodeRequest},
		{"a method that is no text", `{"jsonrpc":"2.0","id":1,"method":2}`, "1", CodeRequest},
		{"an id that is none", `{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}`, "null", CodeRequest},
		{"a long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 2000) + `","method":"eth_chainId"}`, "null", CodeRequest},
		{"an id that is not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"eth_chainId\"}", "null", CodeRequest},
		{"no id and no request", `{"jsonrpc":"2.0"}`, "null", CodeRequest},
		{"unknown method", body("eth_sendTransaction", "[]"), "1", CodeMethod},
		{"named parameters", body("arkiv_query", `{"query":"*"}`), "1", CodeParams},
		{"no parameter", body("arkiv_query", "[]"), "1", CodeParams},
		{"a query that is no text", body("arkiv_query", "[1]"), "1", CodeParams},
		{"too many parameters", body("arkiv_query", `["*",{},1]`), "1", CodeParams},
		{"options that are a text", body("arkiv_query", `["*","x"]`), "1", CodeParams},
		{"a block that is none", body("arkiv_query", `["*",{"atBlock":"0xzz"}]`), "1", CodeParams},
		{"a page that is none", body("arkiv_query", `["*",{"resultsPerPage":"-1"}]`), "1", CodeParams},
		{"an option that is not known", body("arkiv_query", `["*",{"at_block":"0xa"}]`), "1", CodeParams},
		{"a field that is not known", body("arkiv_query", `["*",{"includeData":{"keys":true}}]`), "1", CodeParams},
		{"an order of what is not known", body("arkiv_query", `["*",{"orderBy":[{"name":"a","type":"string","dsc":true}]}]`), "1", CodeParams},
		{"an order that is none", body("arkiv_query", `["*",{"orderBy":[{"name":"a","type":"float"}]}]`), "1", CodeParams},
		{"an order without a name", body("arkiv_query", `["*",{"orderBy":[{"type":"string"}]}]`), "1", CodeParams},
		{"an order by too much", body("arkiv_query", `["*",{"orderBy":[`+strings.TrimSuffix(strings.Repeat(`{"name":"a","type":"string"},`, 50), ",")+`]}]`), "1", CodeParams},
		{"an unknown $-name to sort by", body("arkiv_query", `["*",{"orderBy":[{"name":"$what","type":"string"}]}]`), "1", CodeParams},
		{"a cursor that is none", body("arkiv_query", `["*",{"cursor":"x"}]`), "1", CodeCursor},
		{"a query that is none", body("arkiv_query", `["a = "]`), "1", CodeQuery},
		{"a deep query", body("arkiv_query", `["`+deep+`"]`), "1", CodeQuery},
		{"a long query", body("arkiv_query", `["a = 1`+strings.Repeat(" || a = 1", 10_000)+`"]`), "1", CodeQuery},
		{"a query of many quotes", body("arkiv_query", `["`+strings.Repeat(`a = \"x\" \"`, 3000)+` b"]`), "1", CodeQuery},
		{"a filter that is none", body("eth_getFilterChanges", `["0x1"]`), "1", CodeNoFilter},
		{"logs of no range", body("eth_getLogs", `[{"fromBlock":"0xa","toBlock":"0x9"}]`), "1", CodeParams},
		{"logs of an address that is none", body("eth_getLogs", `[{"address":"0x12"}]`), "1", CodeParams},
		{"logs of a topic that is none", body("eth_getLogs", `[{"topics":["0x12"]}]`), "1", CodeParams},
		{"logs of five topics", body("eth_getLogs", `[{"topics":[null,null,null,null,null]}]`), "1", CodeParams},
		{"logs of an unknown block", body("eth_getLogs", `[{"blockHash":"0x`+zeroHash+`"}]`), "1", CodeUnknownBlock},
		{"logs of a block and a range", body("eth_getLogs", `[{"fromBlock":"0x1","blockHash":"0x`+zeroHash+`"}]`), "1", CodeParams},
		{"a subscription over HTTP", body("eth_subscribe", `["logs"]`), "1", CodeNotSupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, text := n.post(t, c.text)
			require.Equal(t, http.StatusOK, status)
			var a answered
			require.NoError(t, json.Unmarshal([]byte(text), &a), text)
			require.NotNil(t, a.Error, text)
			require.Equal(t, c.code, a.Error.Code, a.Error.Message)
			require.Equal(t, c.id, string(a.ID))
			require.Nil(t, a.Result)
			require.NotRegexp(t, `\bGo\b|json:|rpc\.|uint64|\[\]`, a.Error.Message)
		})
	}
	require.Contains(t, n.fails(t, CodeParams, "arkiv_query", "*", m{"at_block": "0xa"}), `"at_block"`)
	a := n.call(t, "arkiv_query", "a = 1 &&\n b ==")
	require.JSONEq(t, `{"line":2,"column":4}`, string(a.Error.Data))
	status, text := n.post(t, `["`+strings.Repeat("a", 200<<10)+`"]`)
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, text, fmt.Sprint(CodeTooLarge))
	_, text = n.post(t, "["+strings.Repeat("1,", 10)+"1]")
	require.Contains(t, text, fmt.Sprint(CodeTooLarge))
	// Clients look for a list with the id of a call of theirs.
	var list []answered
	_, text = n.post(t, "["+body("eth_chainId", "[]")+strings.Repeat(",1", 10)+"]")
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)
	require.Len(t, list, 1)
	require.Equal(t, "1", string(list[0].ID))
	require.Equal(t, CodeTooLarge, list[0].Error.Code)
}

// TestBatch: members are answered in their order, each for itself; notifications are not.
func TestBatch(t *testing.T) {
	n := newNode(t, "compact", Options{})
	n.apply(t, 10, create(1))
	_, text := n.post(t, `[{"jsonrpc":"2.0","id":"a","method":"eth_chainId"}, {"jsonrpc":"2.0","method":"eth_chainId","params":[]}, 7,
		{"jsonrpc":"2.0","id":null,"method":"nope"}, {"jsonrpc":"2.0","id":2,"method":"eth_blockNumber","params":null}]`)
	require.JSONEq(t, `[{"jsonrpc":"2.0","id":"a","result":"0x539"},
		{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not a request: number, want an object"}},
		{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"there is no method \"nope\" here"}},
		{"jsonrpc":"2.0","id":2,"result":"0xa"}]`, text)
	status, text := n.post(t, `[{"jsonrpc":"2.0","method":"eth_chainId"}]`)
	require.Equal(t, http.StatusNoContent, status)
	require.Empty(t, text)
	status, text = n.post(t, `{"jsonrpc":"2.0","method":"nope"}`)
	require.Equal(t, http.StatusNoContent, status)
	require.Empty(t, text)
}

// TestAnswerBytes: a batch whose answer would be too long is an error from there on, and the
// calls before it are answered. A page that is asked for alone has another bound.
func TestAnswerBytes(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Answer: 3000}})
	big := create(1)
	big.Content = make([]byte, 1000)
	n.apply(t, 10, big)
	query := body("arkiv_query", `["*"]`)
	var list []answered
	_, text := n.post(t, "["+query+","+query+","+body("eth_chainId", "[]")+"]")
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Nil(t, list[0].Error)
	require.Equal(t, CodeTooLarge, list[1].Error.Code)
	require.Nil(t, list[2].Error)
	big.Kind, big.Content = entity.Update, make([]byte, 4000)
	n.apply(t, 11, big)
	_, text = n.post(t, "["+query+","+query+"]")
	require.Contains(t, text, fmt.Sprint(CodeTooLarge))
	n.result(t, new(gotPage), "arkiv_query", "*")
}

// codedError is an error like the errors of go-ethereum's package rpc.
type codedError struct{ error }

func (codedError) ErrorCode() int { return 3 }

// TestOwnMethods: a program's own methods come first, and their errors have
// their codes.
func TestOwnMethods(t *testing.T) {
	n := newNode(t, "compact", Options{Methods: map[string]Method{
		"eth_chainId": func(context.Context, []json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`"own"`), nil
		},
		"own_fails": func(context.Context, []json.RawMessage) (json.RawMessage, error) {
			return nil, codedError{errors.New("reverted")}
		},
		"own_last": func(_ context.Context, params []json.RawMessage) (json.RawMessage, error) {
			return params[len(params)-1], nil
		},
	}})
	var text string
	n.result(t, &text, "eth_chainId")
	require.Equal(t, "own", text)
	n.result(t, &text, "own_last", 1, "two")
	require.Equal(t, "two", text)
	require.Equal(t, "reverted", n.fails(t, 3, "own_fails"))
}

func TestSmallMethods(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	n := newNode(t, "compact", Options{ChainID: 99, BlockTime: 3 * time.Second, Now: func() time.Time { return now }})
	var text string
	n.result(t, &text, "eth_blockNumber")
	require.Equal(t, "0x0", text)
	n.apply(t, 300, create(1), create(2))
	n.result(t, &text, "eth_blockNumber")
	require.Equal(t, "0x12c", text)
	n.result(t, &text, "eth_chainId")
	require.Equal(t, "0x63", text)
	n.result(t, &text, "net_version")
	require.Equal(t, "99", text)
	var count int
	for range 2 {
		n.result(t, &count, "arkiv_getEntityCount")
		require.Equal(t, 2, count)
	}
	n.apply(t, 301, entity.Op{Kind: entity.Delete, Key: keyOf(1)})
	n.result(t, &count, "arkiv_getEntityCount")
	require.Equal(t, 1, count)
	a := n.call(t, "arkiv_getBlockTiming")
	require.JSONEq(t, `{"current_block":301,"current_block_time":1700000000,"duration":3}`, string(a.Result))
}

// TestLimits: time and calls at a time.
func TestLimits(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Concurrent: 1, Time: 200 * time.Millisecond}, Wait: time.Minute})
	n.apply(t, 10, create(1))
	waiting := make(chan answered)
	go func() { waiting <- n.call(t, "arkiv_query", "*", m{"atBlock": "0xff"}) }()
	require.Eventually(t, func() bool { return len(n.handler.places) == 1 }, 10*time.Second, time.Millisecond)
	n.fails(t, CodeBusy, "eth_chainId")
	a := <-waiting
	require.NotNil(t, a.Error)
	require.Contains(t, []int{CodeAhead, CodeTimeout}, a.Error.Code)
}

// TestPanic: a panic is an internal error whose text stays here, and counted as one.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	n := newNode(t, "compact", Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: registry})
	n.handler.methods["eth_chainId"] = func(*Handler, context.Context, *call) error { panic("secret") }
	require.Equal(t, "internal error", n.fails(t, CodeInternal, "eth_chainId"))
	require.Contains(t, log.String(), "secret")
	n.fails(t, CodeMethod, "nope")
	n.result(t, new(string), "eth_blockNumber")
	got := map[string]float64{}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := ""
			for _, label := range metric.GetLabel() {
				labels += " " + label.GetValue()
			}
			if value := metric.GetCounter().GetValue(); value > 0 {
				got[family.GetName()+labels] = value
			}
		}
	}
	require.Equal(t, map[string]float64{
		"varve_arkiv_calls_total -32601 unknown": 1, "varve_arkiv_calls_total -32603 eth_chainId": 1, "varve_arkiv_calls_total 0 eth_blockNumber": 1,
	}, got)
}

// TestHTTP: methods, types, origins, ids of requests, and the access log.
func TestHTTP(t *testing.T) {
	var log bytes.Buffer
	n := newNode(t, "compact", Options{Origins: []string{"https://app.example"}, Access: slog.New(slog.NewTextHandler(&log, nil))})
	send := func(method, text string, header ...string) (int, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), method, n.url, strings.NewReader(text))
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode, answer.Header
	}
	status, _ := send("GET", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = send("POST", body("eth_chainId", "[]"), "Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	for kind, want := range map[string]int{
		"application/json-rpc": 200, "application/json": 200, "Application/JSON;charset=UTF-8": 200, "application/jsonrequest": 200, "application/json;": 200,
		"multipart/form-data; boundary=application/json": 415, "application/x-www-form-urlencoded": 415, "text/plain;application/json": 415,
	} {
		status, _ = send("POST", body("eth_chainId", "[]"), "Content-Type", kind)
		require.Equal(t, want, status, kind)
	}
	// A page of any origin may send a body without a type.
	status, _ = send("POST", body("eth_chainId", "[]"))
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	for coding, want := range map[string]int{"gzip": 415, "br, gzip": 415, "identity": 200} {
		status, _ = send("POST", body("eth_chainId", "[]"), "Content-Type", "application/json", "Content-Encoding", coding)
		require.Equal(t, want, status, coding)
	}
	status, header := send("POST", body("eth_chainId", "[]"), "Content-Type", "application/json; charset=utf-8", "Origin", "https://app.example", accesslog.Header, "mine",
		accesslog.TraceHeader, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "https://app.example", header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "mine", header.Get(accesslog.Header))
	require.Contains(t, log.String(), "id=mine trace_id=0af7651916cd43dd8448eb211c80319c ")
	require.Contains(t, log.String(), "call=eth_chainId")
	_, header = send("POST", body("eth_chainId", "[]"), "Origin", "https://evil.example", accesslog.Header, "a b")
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	require.NotEqual(t, "a b", header.Get(accesslog.Header))
	require.NotEmpty(t, header.Get(accesslog.Header))
	status, header = send("OPTIONS", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusNoContent, status)
	require.Contains(t, header.Get("Access-Control-Allow-Headers"), "Content-Type")
}

// TestBatchTime: a batch has the time of a call, all together.
func TestBatchTime(t *testing.T) {
	n := newNode(t, "compact", Options{Wait: 100 * time.Millisecond, Limits: Limits{Time: 250 * time.Millisecond}})
	n.apply(t, 1, create(1))
	body := strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"arkiv_query","params":["*",{"atBlock":"0x99"}]},`, 50), ",")
	_, text := n.post(t, "["+body+"]")
	require.Positive(t, strings.Count(text, fmt.Sprint(CodeTimeout)))
	require.Equal(t, 50, strings.Count(text, fmt.Sprint(CodeTimeout))+strings.Count(text, fmt.Sprint(CodeAhead)), text)
}

// TestShared: parameters share the memory of their body, also where a method reads them itself.
func TestShared(t *testing.T) {
	text := []byte(body("eth_getLogs", `["0x1",{"topics":[]}]`))
	list, _, fault := decode(text, 1)
	require.Nil(t, fault)
	require.Len(t, list[0].params, 2)
	at := bytes.Index(text, []byte("0x1"))
	copy(text[at:], "0x2")
	require.Equal(t, `"0x2"`, string(list[0].params[0]))
}

// TestLists: a list is counted before it is decoded, wherever a parameter has one.
func TestLists(t *testing.T) {
	n := newNode(t, "compact", Options{})
	n.apply(t, 10, create(1))
	many := func(item string) []json.RawMessage {
		return slices.Repeat([]json.RawMessage{json.RawMessage(item)}, 1001)
	}
	for method, params := range map[string][]any{
		"eth_getLogs":    {m{"topics": many("1")}},
		"eth_newFilter":  {m{"address": many("1")}},
		"arkiv_query":    {"*", m{"orderBy": many("1")}},
		"eth_feeHistory": {"0x1", "latest", many(`"x"`)},
	} {
		// The items of too long a list are not checked.
		require.Contains(t, n.fails(t, CodeParams, method, params...), "a list of more than", method)
	}
}

// TestBodyMemory: a body that is large waits for the memory of its decoding before it is read, and
// has it until its call was answered.
func TestBodyMemory(t *testing.T) {
	const size = 100 << 10
	during := make(chan bool, 2)
	var n *node
	n = newNode(t, "compact", Options{Limits: Limits{Memory: 4 << 20}, Methods: map[string]Method{
		"own": func(context.Context, []json.RawMessage) (json.RawMessage, error) {
			other := n.handler.memory.Hold(nil)
			defer other.Release()
			during <- other.Try(4<<20 - decodeFactor*size)
			return null, nil
		},
	}})
	large := body("own", `["`+strings.Repeat("a", size)+`"]`)
	n.post(t, large)
	require.False(t, <-during, "the body is counted")
	n.post(t, body("own", "[]"))
	require.True(t, <-during, "it is given back, and a small one is not counted")
	n.handler.memory.Wait = time.Millisecond
	taken := n.handler.memory.Hold(nil)
	require.True(t, taken.Try(4<<20-size))
	status, text := n.post(t, large)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, fmt.Sprint(CodeBusy))
	require.Empty(t, during, "it was not called")
}

// TestMemory: answers that find no room are refused, and found again later.
func TestMemory(t *testing.T) {
	n := newNode(t, "compact", Options{Limits: Limits{Memory: 4 << 20}})
	op := create(1)
	op.Content = make([]byte, 1<<20)
	n.apply(t, 1, op)
	taken := n.handler.memory.Hold(nil)
	require.True(t, taken.Try(2<<20))
	require.Contains(t, n.fails(t, CodeBusy, "arkiv_query", "*"), "ask for less")
	var count int
	n.result(t, &count, "arkiv_getEntityCount")
	require.Equal(t, 1, count, "small answers need none")
	taken.Release()
	var page gotPage
	n.result(t, &page, "arkiv_query", "*")
	require.Len(t, page.Data, 1)
}

// TestLimitsBelowZero: no limit is below zero.
func TestLimitsBelowZero(t *testing.T) {
	for _, l := range []Limits{{Request: -1}, {Memory: -1}, {Batch: -1}, {Time: -1}, {FilterIdle: -1}} {
		_, err := New(t.Context(), newStore(t, "compact").ents, Options{Limits: l})
		require.ErrorIs(t, err, store.ErrInvalid, "%+v", l)
	}
}
