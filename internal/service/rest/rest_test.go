package rest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/rest"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"

	_ "github.com/varvedb/varve/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "a token for the tests"

// world is a service over a new store, and its interface.
type world struct {
	t       testing.TB
	url     string
	db      *store.DB
	service *service.Service
	handler *rest.Handler
}

func newWorld(t testing.TB, so service.Options, ro service.Serving) *world {
	t.Helper()
	return newWorldAt(t, "sqlite:"+filepath.Join(t.TempDir(), "varve.db")+"?durability=relaxed", so, ro)
}

// readOnly is a service that only reads the same store.
func (w *world) readOnly() *world {
	w.t.Helper()
	return newWorldAt(w.t, w.url+"&read_only=true", service.Options{}, service.Serving{})
}

func newWorldAt(t testing.TB, url string, so service.Options, ro service.Serving) *world {
	t.Helper()
	db, err := store.Open(context.Background(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	if so.Keys == nil {
		so.Keys, err = seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
		require.NoError(t, err)
	}
	s, err := service.New(context.Background(), db, so)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	if ro.Gate == nil {
		ro.Gate = newGate(t, service.GateOptions{})
	}
	return &world{t, url, db, s, rest.New(s, ro, false)}
}

func newGate(t testing.TB, o service.GateOptions) *service.Gate {
	t.Helper()
	gate, err := service.NewGate(o)
	require.NoError(t, err)
	return gate
}

// in returns the same world for another test.
func (w *world) in(t testing.TB) *world { return &world{t, w.url, w.db, w.service, w.handler} }

// do makes a request; header is "Name: value".
func (w *world) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

func entityPath(n int) string { return fmt.Sprintf("/v1/entities/0x%064x", n) }

func payloadPath(n int) string { return entityPath(n) + "/payload" }

const asJSON = "Content-Type: application/json"

type problem struct {
	Type, Title, Detail  string
	Status, Line, Column int
	Position             uint64
}

// problem checks that an answer is a problem with a status and a name.
func (w *world) problem(rec *httptest.ResponseRecorder, status int, name string) problem {
	w.t.Helper()
	require.Equal(w.t, status, rec.Code, rec.Body)
	require.Equal(w.t, "application/problem+json", rec.Header().Get("Content-Type"))
	var p problem
	require.NoError(w.t, json.Unmarshal(rec.Body.Bytes(), &p))
	require.Equal(w.t, "urn:varve:problem:"+name, p.Type, p.Detail)
	require.Equal(w.t, status, p.Status)
	require.NotEmpty(w.t, p.Title)
	return p
}

func TestEntities(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	path := entityPath(1)
	w.problem(w.do("GET", path, ""), 404, "not-found")
	payload := base64.StdEncoding.EncodeToString([]byte("pay\x00load"))
	rec := w.do("PUT", path, `{"content_type":"text/plain; x=\"u\"","payload":"`+payload+`","lifetime":10,
		"string_attributes":{"a":"ü\"\u0000\n"},"numeric_attributes":{"n":18446744073709551615},
		"owner":"0x00000000000000000000000000000000000000ff"}`, asJSON)
	require.Equal(t, 201, rec.Code, rec.Body)
	require.JSONEq(t, `{"key":"`+path[len("/v1/entities/"):]+`","block":1,"created":true,"expiration":11}`, rec.Body.String())
	rec = w.do("GET", path, "")
	require.Equal(t, 200, rec.Code)
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
	require.JSONEq(t, `{"key":"`+path[len("/v1/entities/"):]+`","owner":"0x00000000000000000000000000000000000000ff",
		"creator":"0x00000000000000000000000000000000000000ff","content_type":"text/plain; x=\"u\"","payload":"`+payload+`",
		"string_attributes":{"a":"ü\"\u0000\n"},"numeric_attributes":{"n":"18446744073709551615"},
		"sequence":4294967296,"created_at_block":1,"last_modified_at_block":1,"expiration":11}`, rec.Body.String())
	require.Contains(t, rec.Body.String(), "18446744073709551615", "all digits")

	rec = w.do("GET", path+"/payload", "")
	require.Equal(t, "pay\x00load", rec.Body.String())
	require.Equal(t, `text/plain; x="u"`, rec.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", rec.Header().Get("X-Content-Type-Options"))
	require.Contains(t, rec.Header().Get("Content-Security-Policy"), "sandbox")

	require.Equal(t, 200, w.do("PUT", path, "{}", asJSON).Code)
	require.Equal(t, 200, w.do("DELETE", path, "").Code)
	w.problem(w.do("DELETE", path, ""), 404, "not-found")
	w.problem(w.do("GET", path, ""), 404, "not-found")
}

// TestIntegers: what JavaScript cannot hold comes back with all digits when it
// reads an entity and writes it again.
func TestIntegers(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	path := entityPath(3)
	rec := w.do("PUT", path, `{"numeric_attributes":{"a":9007199254740991,"b":9007199254740993,"c":"18446744073709551615","d":"7"}}`, asJSON)
	require.Equal(t, 201, rec.Code, rec.Body)
	var done map[string]any
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &done))
	require.Contains(t, done, "expiration")
	require.Nil(t, done["expiration"], "it stays for ever")
	for range 2 {
		var e map[string]any // numbers are floating point, as in JavaScript
		require.NoError(t, json.Unmarshal(w.do("GET", path, "").Body.Bytes(), &e))
		require.Equal(t, map[string]any{"a": float64(1<<53 - 1), "b": "9007199254740993", "c": "18446744073709551615", "d": 7.0}, e["numeric_attributes"])
		require.Contains(t, e, "expiration")
		require.Nil(t, e["expiration"])
		again, err := json.Marshal(map[string]any{"numeric_attributes": e["numeric_attributes"]})
		require.NoError(t, err)
		require.Equal(t, 200, w.do("PUT", path, string(again), asJSON).Code)
	}
	require.Equal(t, 200, w.do("PUT", path, `{"lifetime":"5"}`, asJSON).Code)
	require.Contains(t, w.do("GET", path, "").Body.String(), `"expiration":9`)
	require.Equal(t, 200, w.do("POST", "/v1/query", `{"query":"*","block":"4"}`, asJSON).Code)
	require.Equal(t, 200, w.do("POST", "/v1/events", `{"events":[{"type":"A"}],"condition":{"fail_if_events_match":{"items":[{"types":["B"]}]},"after":"0"}}`, asJSON).Code)
}

// TestReadOnly: writes are refused for the kind of the service, with no hint
// that they could succeed later.
func TestReadOnly(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	path := entityPath(1)
	require.Equal(t, 201, w.do("PUT", path, "{}", asJSON).Code)
	w = w.readOnly()
	require.Equal(t, 200, w.do("GET", path, "").Code)
	require.Equal(t, 200, w.do("POST", "/v1/query", `{"query":"*"}`, asJSON).Code)
	require.Equal(t, 200, w.do("GET", "/readyz", "").Code)
	for _, rec := range []*httptest.ResponseRecorder{
		w.do("PUT", path, "{}", asJSON), w.do("DELETE", path, ""), w.do("POST", "/v1/events", `{"events":[{"type":"A"}]}`, asJSON),
	} {
		w.problem(rec, 403, "read-only")
		require.Empty(t, rec.Header().Get("Retry-After"))
	}
	metrics := w.do("GET", "/metrics", "").Body.String()
	require.Contains(t, metrics, "varve_head_block 1\n")
	require.Contains(t, metrics, "varve_head_age_seconds ")
}

func TestRawPut(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	path := entityPath(2)
	rec := w.do("PUT", path+"/payload?s.type=node&n.cpu=8&lifetime=5&owner=0x00000000000000000000000000000000000000ff", "\x00raw\xff", "Content-Type: image/png")
	require.Equal(t, 201, rec.Code, rec.Body)
	var e struct {
		ContentType string            `json:"content_type"`
		Payload     []byte            `json:"payload"`
		Strings     map[string]string `json:"string_attributes"`
		Numbers     map[string]uint64 `json:"numeric_attributes"`
		Expiration  uint64            `json:"expiration"`
	}
	require.NoError(t, json.Unmarshal(w.do("GET", path, "").Body.Bytes(), &e))
	require.Equal(t, "image/png", e.ContentType)
	require.Equal(t, "\x00raw\xff", string(e.Payload))
	require.Equal(t, map[string]string{"type": "node"}, e.Strings)
	require.Equal(t, map[string]uint64{"cpu": 8}, e.Numbers)
	require.Equal(t, uint64(6), e.Expiration)

	require.Equal(t, 200, w.do("PUT", path+"/payload", `{"any":"json"}`, asJSON).Code)
	rec = w.do("GET", path+"/payload", "")
	require.Equal(t, `{"any":"json"}`, rec.Body.String())
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
}

// TestConditions: ETags of REST are versions, and a write whose condition fails
// changes nothing.
func TestConditions(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	path := entityPath(5)
	w.problem(w.do("PUT", path, "{}", asJSON, "If-Match: *"), 412, "changed")
	w.problem(w.do("DELETE", path, "", `If-Match: "1"`), 412, "changed")
	rec := w.do("PUT", path, "{}", asJSON, "If-None-Match: *")
	require.Equal(t, 201, rec.Code, rec.Body)
	require.Equal(t, `"1"`, rec.Header().Get("ETag"))
	p := w.problem(w.do("PUT", path, "{}", asJSON, "If-None-Match: *"), 412, "changed")
	require.Contains(t, p.Detail, "version 1")
	rec = w.do("PUT", payloadPath(5), "text", "Content-Type: text/plain", `If-Match: "other", "1"`)
	require.Equal(t, 200, rec.Code, rec.Body)
	require.Equal(t, `"2"`, rec.Header().Get("ETag"))
	for _, stale := range []string{`"1"`, `W/"2"`, `"02"`, `"x"`, `"1", "3"`} {
		w.problem(w.do("PUT", path, "{}", asJSON, "If-Match: "+stale), 412, "changed")
		w.problem(w.do("DELETE", path, "", "If-Match: "+stale), 412, "changed")
	}
	for _, path := range []string{path, payloadPath(5)} {
		rec = w.do("GET", path, "")
		require.Equal(t, 200, rec.Code)
		require.Equal(t, `"2"`, rec.Header().Get("ETag"))
		for _, known := range []string{`"2"`, `W/"2"`, `"1" , "2"`, "*"} {
			rec = w.do("GET", path, "", "If-None-Match: "+known)
			require.Equal(t, 304, rec.Code)
			require.Empty(t, rec.Body.String())
			require.Equal(t, `"2"`, rec.Header().Get("ETag"))
		}
		require.Equal(t, 200, w.do("GET", path, "", `If-None-Match: "1"`).Code)
	}
	reads := w.readOnly()
	rec = reads.do("GET", path, "", `If-None-Match: "2"`)
	require.Equal(t, 200, rec.Code, "where others write a number may come to be another block's")
	require.Empty(t, rec.Header().Get("ETag"))
	require.Equal(t, 200, w.do("DELETE", path, "", `If-Match: "2"`).Code)
}

// list is a document with a list of so many items.
func list(name, item string, n int) string {
	return `{"` + name + `":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]}"
}

// members is a document with so many attributes.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%d":""`, i)
	}
	return `{"string_attributes":{` + b.String()[1:] + "}}"
}

func TestProblems(t *testing.T) {
	w := newWorld(t, service.Options{MaxPayload: 100}, service.Serving{})
	path, raw, large := entityPath(1), payloadPath(1), strings.Repeat("x", 101)
	huge := strings.Repeat("x", 2<<20)
	for name, c := range map[string]struct {
		method, path, body, header string
		status                     int
		slug                       string
		line, column               int
	}{
		"bad JSON":              {"PUT", path, "{\n  \"payload\": x}", asJSON, 400, "malformed", 2, 14},
		"cut JSON":              {"PUT", path, "{\n\"payload\":", asJSON, 400, "malformed", 2, 11},
		"wrong kind":            {"PUT", path, "{\"numeric_attributes\":{\"n\":-1}}", asJSON, 400, "malformed", 1, 29},
		"number too large":      {"PUT", path, "{\"numeric_attributes\":{\"n\":18446744073709551616}}", asJSON, 400, "malformed", 1, 47},
		"unknown member":        {"PUT", path, "{\"paylod\":\"\"}", asJSON, 400, "malformed", 1, 0},
		"not UTF-8":             {"PUT", path, "{\"content_type\":\"\xff\"}", asJSON, 400, "malformed", 1, 18},
		"not base 64":           {"PUT", path, "{\"payload\":\"?\"}", asJSON, 400, "malformed", 1, 0},
		"not a key":             {"GET", "/v1/entities/0x12", "", "", 400, "malformed", 0, 0},
		"unknown parameter":     {"PUT", raw + "?x=1", "x", "Content-Type: text/plain", 400, "malformed", 0, 0},
		"parameter twice":       {"PUT", raw + "?s.a=1&s.a=2", "x", "Content-Type: text/plain", 400, "malformed", 0, 0},
		"parameter not UTF-8":   {"PUT", raw + "?s.a=%FF", "x", "Content-Type: text/plain", 400, "malformed", 0, 0},
		"parameter and JSON":    {"PUT", path + "?lifetime=1", "{}", asJSON, 400, "malformed", 0, 0},
		"no number":             {"PUT", raw + "?n.a=b", "x", "Content-Type: text/plain", 400, "malformed", 0, 0},
		"parameter of a get":    {"GET", path + "?raw=true", "", "", 400, "malformed", 0, 0},
		"parameter of a delete": {"DELETE", path + "?x=1", "", "", 400, "malformed", 0, 0},
		"halves of a character": {"GET", "/v1/events?type=%C3&type=%A9", "", "", 400, "malformed", 0, 0},
		"time of an event":      {"POST", "/v1/events", "{\"events\":[{\"type\":\"A\",\"time\":\"2020-01-01T00:00:00Z\"}]}", asJSON, 400, "malformed", 1, 0},
		"position of an event":  {"POST", "/v1/events/checkpoints/c", "{\"to\":1,\"events\":[{\"type\":\"A\",\"position\":1}]}", asJSON, 400, "malformed", 1, 0},
		"name in upper case":    {"POST", "/v1/query", "{\"Query\":\"*\"}", asJSON, 400, "malformed", 1, 2},
		"many events":           {"POST", "/v1/events", list("events", "{}", 100_001), asJSON, 413, "too-large", 0, 0},
		"many tags":             {"POST", "/v1/events", "{\"events\":[" + list("tags", "[]", 80_000) + "," + list("tags", "[]", 80_000) + "," + list("tags", "[]", 80_000) + "," + list("tags", "[]", 80_000) + "]}", asJSON, 413, "too-large", 0, 0},
		"many items":            {"POST", "/v1/events/read", "{\"query\":" + list("items", "{}", 100_001) + "}", asJSON, 413, "too-large", 0, 0},
		"many columns":          {"POST", "/v1/query", list("order", "{}", 100_001), asJSON, 413, "too-large", 0, 0},
		"many attributes":       {"PUT", path, members(5000), asJSON, 413, "too-large", 0, 0},
		"control in a type":     {"PUT", path, "{\"content_type\":\"a/b\\u0001\"}", asJSON, 422, "invalid", 0, 0},
		"type not of ASCII":     {"PUT", path, "{\"content_type\":\"\u00e4/b\"}", asJSON, 422, "invalid", 0, 0},
		"long type":             {"PUT", path, "{\"content_type\":\"" + strings.Repeat("t", 257) + "\"}", asJSON, 422, "invalid", 0, 0},
		"no document":           {"PUT", path, "x", "Content-Type: text/plain", 415, "media-type", 0, 0},
		"ETag without quotes":   {"PUT", path, "{}", "If-Match: 7", 400, "malformed", 0, 0},
		"no content type":       {"PUT", raw, "x", "", 415, "media-type", 0, 0},
		"bad content type":      {"PUT", raw, "x", "Content-Type: /", 415, "media-type", 0, 0},
		"query not in JSON":     {"POST", "/v1/query", "*", "Content-Type: text/plain", 415, "media-type", 0, 0},
		"no lifetime":           {"PUT", path, "{\"lifetime\":0}", asJSON, 422, "invalid", 0, 0},
		"bad owner":             {"PUT", path, "{\"owner\":\"me\"}", asJSON, 422, "invalid", 0, 0},
		"reserved name":         {"PUT", path, "{\"string_attributes\":{\"$key\":\"\"}}", asJSON, 422, "invalid", 0, 0},
		"payload too large":     {"PUT", raw, large, "Content-Type: text/plain", 413, "too-large", 0, 0},
		"body too large":        {"PUT", raw, huge, "Content-Type: text/plain", 413, "too-large", 0, 0},
		"JSON too large":        {"POST", "/v1/query", "{\"query\":\"" + huge + "\"}", asJSON, 413, "too-large", 0, 0},
		"query syntax":          {"POST", "/v1/query", "{\"query\":\"a =\\n= 1\"}", asJSON, 422, "query", 2, 1},
		"not a cursor":          {"POST", "/v1/query", "{\"query\":\"*\",\"cursor\":\"x\"}", asJSON, 422, "invalid", 0, 0},
		"cursor and block":      {"POST", "/v1/query", "{\"query\":\"*\",\"cursor\":\"x\",\"block\":0}", asJSON, 422, "invalid", 0, 0},
		"negative limit":        {"POST", "/v1/query", "{\"query\":\"*\",\"limit\":-1}", asJSON, 400, "malformed", 1, 0},
		"block above the head":  {"POST", "/v1/query", "{\"query\":\"*\",\"block\":99}", asJSON, 422, "block-range", 0, 0},
		"order of unknown kind": {"POST", "/v1/query", "{\"query\":\"*\",\"order\":{\"name\":\"a\",\"kind\":\"date\"}}", asJSON, 422, "invalid", 0, 0},
		"order of a list":       {"POST", "/v1/query", "{\"query\":\"*\",\"order\":[{\"name\":\"$key\"},{\"name\":\"a\"}]}", asJSON, 422, "invalid", 0, 0},
		"order of a text":       {"POST", "/v1/query", "{\"query\":\"*\",\"order\":\"a\"}", asJSON, 400, "malformed", 1, 0},
		"order, other field":    {"POST", "/v1/query", "{\"query\":\"*\",\"order\":[{\"name\":\"$key\",\"desc\":true}]}", asJSON, 400, "malformed", 1, 0},
		"order without kind":    {"POST", "/v1/query", "{\"query\":\"*\",\"order\":{\"name\":\"a\"}}", asJSON, 422, "invalid", 0, 0},
		"no events":             {"POST", "/v1/events", "{}", asJSON, 422, "invalid", 0, 0},
		"event without type":    {"POST", "/v1/events", "{\"events\":[{}]}", asJSON, 422, "invalid", 0, 0},
		"tag of one text":       {"POST", "/v1/events", "{\"events\":[{\"type\":\"A\",\"tags\":[[\"a\"]]}]}", asJSON, 422, "invalid", 0, 0},
		"bad event ID":          {"POST", "/v1/events", "{\"events\":[{\"type\":\"A\",\"id\":\"1\"}]}", asJSON, 422, "invalid", 0, 0},
		"data twice":            {"POST", "/v1/events", "{\"events\":[{\"type\":\"A\",\"data\":1,\"data_base64\":\"\"}]}", asJSON, 422, "invalid", 0, 0},
		"wrong method":          {"PATCH", path, "", "", 405, "method", 0, 0},
		"wrong path":            {"GET", "/v2", "", "", 404, "no-route", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			var header []string
			if c.header != "" {
				header = append(header, c.header)
			}
			p := w.problem(w.do(c.method, c.path, c.body, header...), c.status, c.slug)
			require.NotEmpty(t, p.Detail)
			require.Equal(t, c.line, p.Line, p.Detail)
			if c.column > 0 {
				require.Equal(t, c.column, p.Column, p.Detail)
			}
		})
	}
	require.Zero(t, w.service.Head(), "nothing was written")
}

// TestBodies: a body must have its declared type, and all but the payload is
// short, however long a payload may be.
func TestBodies(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	for _, coding := range []string{"gzip", "br", "gzip, identity"} {
		rec := w.do("PUT", payloadPath(1), "x", "Content-Type: text/plain", "Content-Encoding: "+coding)
		w.problem(rec, 415, "media-type")
		require.Equal(t, "identity", rec.Header().Get("Accept-Encoding"))
		w.problem(w.do("POST", "/v1/events", `{"events":[{"type":"A"}]}`, asJSON, "Content-Encoding: "+coding), 415, "media-type")
	}
	name := func(n int) string { return `{"string_attributes":{"` + strings.Repeat("n", n) + `":""}}` }
	w.problem(w.do("PUT", entityPath(1), name(64<<10), asJSON), 413, "too-large")
	require.Equal(t, 201, w.do("PUT", entityPath(1), name(60_000), asJSON).Code)
	require.Equal(t, 200, w.do("PUT", payloadPath(1), "x", "Content-Type: text/plain", "Content-Encoding: identity").Code)
	rec := w.do("GET", payloadPath(1), "")
	require.Equal(t, "same-origin", rec.Header().Get("Cross-Origin-Resource-Policy"))
}

// lines reads a stream.
func lines(t testing.TB, rec *httptest.ResponseRecorder) (list []map[string]json.RawMessage) {
	t.Helper()
	require.Equal(t, 200, rec.Code, rec.Body)
	require.Equal(t, "application/x-ndjson", rec.Header().Get("Content-Type"))
	for line := range strings.Lines(rec.Body.String()) {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		require.Len(t, m, 1)
		list = append(list, m)
	}
	return list
}

func TestQuery(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	const n = 600 // more than the service reads at a time
	for i := range n {
		require.Equal(t, 201, w.do("PUT", fmt.Sprintf("%s?n.i=%d", payloadPath(i), i), "payload", "Content-Type: text/plain").Code)
	}
	all := lines(t, w.do("POST", "/v1/query", `{"query":"*","order":{"name":"i","kind":"numeric"}}`, asJSON))
	require.Len(t, all, n+1)
	for i, line := range all[:n] {
		require.Contains(t, string(line["entity"]), fmt.Sprintf(`"0x%064x"`, i))
		require.Contains(t, string(line["entity"]), base64.StdEncoding.EncodeToString([]byte("payload")))
	}
	require.JSONEq(t, fmt.Sprintf(`{"count":%d,"block":%d}`, n, n), string(all[n]["end"]))
	list := lines(t, w.do("POST", "/v1/query", `{"query":"*","order":[{"name":"$owner"},{"name":"i","kind":"numeric"}]}`, asJSON))
	require.Equal(t, all, list)
	require.JSONEq(t, `{"count":0,"block":600}`, string(lines(t, w.do("POST", "/v1/query", `{"query":"i > 1000"}`, asJSON))[0]["end"]))
	require.JSONEq(t, `{"count":1,"block":1}`, string(lines(t, w.do("POST", "/v1/query", `{"query":"*","block":1}`, asJSON))[1]["end"]))

	seen, cursor := 0, ""
	for page := 0; page == 0 || cursor != ""; page++ {
		list := lines(t, w.do("POST", "/v1/query", fmt.Sprintf(`{"query":"i >= 300","limit":90,"cursor":%q}`, cursor), asJSON))
		var end struct {
			Count  int
			Cursor string
		}
		require.NoError(t, json.Unmarshal(list[len(list)-1]["end"], &end))
		require.Len(t, list, end.Count+1)
		seen, cursor = seen+end.Count, end.Cursor
		require.LessOrEqual(t, page, 4)
	}
	require.Equal(t, 300, seen)

	// Large payloads are read in several parts, and each result comes once.
	large := strings.Repeat("x", 600<<10)
	for i := range 4 {
		require.Equal(t, 201, w.do("PUT", fmt.Sprintf("%s?n.large=%d", payloadPath(n+i), i), large, "Content-Type: text/plain").Code)
	}
	list = lines(t, w.do("POST", "/v1/query", `{"query":"large >= 0","order":{"name":"large","kind":"numeric"},"limit":4}`, asJSON))
	require.Len(t, list, 5)
	for i, line := range list[:4] {
		require.Contains(t, string(line["entity"]), fmt.Sprintf(`"0x%064x"`, n+i))
	}
}

// An error in the middle of a stream is its last line.
func TestBrokenStream(t *testing.T) {
	w := newWorldAt(t, "sqlite:"+filepath.Join(t.TempDir(), "varve.db")+"?layout=arkiv", service.Options{}, service.Serving{})
	large := strings.Repeat("x", 64<<10)
	for i := range 8 {
		require.Equal(t, 201, w.do("PUT", payloadPath(i), large, "Content-Type: text/plain").Code)
	}
	tamper(t, w.db, "UPDATE payloads SET payload = substr(payload, 2) WHERE from_block = 1")
	list := lines(t, w.do("POST", "/v1/query", `{"query":"*"}`, asJSON))
	require.Len(t, list, 8, "newest first; the last is broken")
	require.Contains(t, string(list[7]["error"]), "urn:varve:problem:not-sealed")
	require.NotContains(t, string(list[7]["error"]), "xxx")
}

func TestAppend(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	body := `{"events":[{"type":"Registered","tags":[["name","ann"]],"data":{"age":3},"id":"01234567-89ab-cdef-0123-456789abcdef"}],
		"condition":{"fail_if_events_match":{"items":[{"types":["Registered"],"tags":[["name","%s"]]}]},"after":0}}`
	ann := fmt.Sprintf(body, "ann")
	rec := w.do("POST", "/v1/events", ann, asJSON)
	require.Equal(t, 200, rec.Code, rec.Body)
	require.JSONEq(t, `{"positions":[1]}`, rec.Body.String())
	require.JSONEq(t, `{"positions":[1]}`, w.do("POST", "/v1/events", ann, asJSON).Body.String(), "repeated with its ID")
	p := w.problem(w.do("POST", "/v1/events", strings.Replace(ann, "cdef\"", "cdee\"", 1), asJSON), 409, "conflict")
	require.Equal(t, uint64(1), p.Position)
	w.problem(w.do("POST", "/v1/events", strings.Replace(fmt.Sprintf(body, "bob"), "age", "old", 1), asJSON), 409, "duplicate")
}

func TestGate(t *testing.T) {
	gate := newGate(t, service.GateOptions{Token: token, Concurrent: 1})
	w := newWorld(t, service.Options{}, service.Serving{Gate: gate})
	for _, header := range []string{"X-Nothing: 1", "Authorization: Bearer ", "Authorization: Bearer " + token + "x", "Authorization: Basic " + token, "Authorization: " + token} {
		rec := w.do("GET", entityPath(1), "", header)
		p := w.problem(rec, 401, "unauthenticated")
		require.NotContains(t, p.Detail, token)
		require.Contains(t, rec.Header().Get("WWW-Authenticate"), "Bearer")
		w.problem(w.do("GET", "/metrics", "", header), 401, "unauthenticated")
	}
	bearer := "Authorization: Bearer " + token
	w.problem(w.do("GET", entityPath(1), "", bearer), 404, "not-found")
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		require.Equal(t, 200, w.do("GET", path, "").Code, path)
	}
	leave, err := gate.Enter(false)
	require.NoError(t, err)
	rec := w.do("GET", entityPath(1), "", bearer)
	w.problem(rec, 503, "busy")
	require.Equal(t, "1", rec.Header().Get("Retry-After"))
	leave()
	w.problem(w.do("GET", entityPath(1), "", bearer), 404, "not-found")
	rec = w.do("GET", "/metrics", "", bearer)
	require.Contains(t, rec.Body.String(), `varve_requests_total{code="401",operation="get",protocol="rest"} 5`)
	require.Contains(t, rec.Body.String(), "varve_requests_in_flight 1")

	_, err = service.NewGate(service.GateOptions{Token: "short"})
	require.Error(t, err)
	w = newWorld(t, service.Options{}, service.Serving{Gate: newGate(t, service.GateOptions{PerSecond: 0.001})})
	w.problem(w.do("GET", entityPath(1), ""), 404, "not-found")
	w.problem(w.do("GET", entityPath(1), ""), 429, "rate")
}

func TestReadiness(t *testing.T) {
	ending, end := context.WithCancel(t.Context())
	w := newWorld(t, service.Options{}, service.Serving{Ending: ending})
	require.Equal(t, 200, w.do("GET", "/readyz", "").Code)
	end()
	w.problem(w.do("GET", "/readyz", ""), 503, "closing")
	w = newWorld(t, service.Options{}, service.Serving{})
	w.service.Close()
	w.problem(w.do("GET", "/readyz", ""), 503, "closing")
	w.problem(w.do("PUT", entityPath(1), "{}", asJSON), 503, "closing")
	require.Equal(t, 200, w.do("GET", "/healthz", "").Code)
}
