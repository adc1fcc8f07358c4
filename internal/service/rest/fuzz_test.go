package rest_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/event"
)

// FuzzRequests: no request makes the interface panic, or answer with anything
// but the requested resource or a client error.
func FuzzRequests(f *testing.F) {
	w := newWorld(f, service.Options{MaxPayload: 1000}, service.Serving{})
	for i := range 3 {
		require.Equal(f, 201, w.do("PUT", payloadPath(i), "x", "Content-Type: text/plain").Code)
	}
	w.append(number(1, event.NewTag("x", "1")))
	_, cursor, _ := strings.Cut(w.do("POST", "/v1/query", `{"query":"*","limit":1}`, asJSON).Body.String(), `"cursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	require.NotEmpty(f, cursor)
	routes := []string{"PUT " + entityPath(1), "PUT " + payloadPath(1), "POST /v1/query", "POST /v1/events", "POST /v1/events/read", "GET /v1/events"}
	for _, seed := range []struct {
		route                  uint8
		kind, parameters, body string
	}{
		{0, "application/json", "", `{"content_type":"a","payload":"AA==","string_attributes":{"a":"b"},"numeric_attributes":{"n":1},"lifetime":1}`},
		{0, "application/json", "", `{"payload":null,"string_attributes":{"a":null}}`},
		{1, "text/plain", "s.a=b&n.c=1&lifetime=5", "payload"}, {1, "", "%", "\xff"},
		{2, "application/json", "", `{"query":"i >= 1","cursor":"` + cursor + `","limit":2}`},
		{2, "application/json", "", `{"query":"(","cursor":"eyJiIjoxfQ","limit":-1}`},
		{3, "application/json", "", `{"events":[{"type":"A","tags":[["a","b"]],"data":{},"metadata_base64":"AA=="}],"condition":{"fail_if_events_match":{"items":[{"types":["B"]}]},"after":1}}`},
		{3, "application/json", "", `{"events":[{"type":"A","tags":[[]]}]}`}, {3, "application/json", "", "["},
		{4, "application/json", "", `{"query":{"items":[{"types":["N"],"tags":[["x","1"]]}]},"from":1,"limit":"1","since":"2026-01-02T03:04:05Z"}`},
		{5, "", "type=N&tag=x:1&from=1&until=2026-01-02T03:04:05Z", ""},
	} {
		f.Add(seed.route, seed.kind, seed.parameters, seed.body)
	}
	f.Fuzz(func(t *testing.T, route uint8, kind, parameters, body string) {
		method, path, _ := strings.Cut(routes[int(route)%len(routes)], " ")
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.URL.RawQuery = parameters
		r.Header.Set("Content-Type", kind)
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		got := w.in(t).do("GET", entityPath(1), "")
		require.Less(t, max(rec.Code, got.Code), 500, rec.Body)
		for line := range strings.Lines(rec.Body.String() + got.Body.String()) {
			require.True(t, json.Valid([]byte(line)), line)
			require.False(t, strings.HasPrefix(line, `{"error":`), line)
		}
	})
}
