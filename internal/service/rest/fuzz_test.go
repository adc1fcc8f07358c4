package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
)

// FuzzPut: no body and no parameter makes the interface panic or answer with
// anything but a write or a problem of the client's.
func FuzzPut(f *testing.F) {
	w := newWorld(f, service.Options{MaxPayload: 1000}, service.Serving{})
	f.Add("application/json", "", `{"content_type":"a","payload":"AA==","string_attributes":{"a":"b"},"numeric_attributes":{"n":1},"lifetime":1}`)
	f.Add("text/plain", "s.a=b&n.c=1&lifetime=5", "payload")
	f.Add("application/json", "", `{"payload":null,"string_attributes":{"a":null}}`)
	f.Add("", "%", "\xff")
	f.Fuzz(func(t *testing.T, kind, parameters, body string) {
		path := entityPath(1)
		if kind != "application/json" {
			path = payloadPath(1)
		}
		r := httptest.NewRequest(http.MethodPut, path, strings.NewReader(body))
		r.URL.RawQuery = parameters
		r.Header.Set("Content-Type", kind)
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		require.Less(t, rec.Code, 500, rec.Body)
		require.True(t, json.Valid(rec.Body.Bytes()))
		if rec.Code < 300 {
			got := w.in(t).do("GET", entityPath(1), "")
			require.Equal(t, 200, got.Code)
			require.True(t, json.Valid(got.Body.Bytes()), got.Body)
		}
	})
}

// FuzzQuery: no query and no cursor does.
func FuzzQuery(f *testing.F) {
	w := newWorld(f, service.Options{}, service.Serving{})
	for i := range 3 {
		require.Equal(f, 201, w.do("PUT", fmt.Sprintf("%s?n.i=%d", payloadPath(i), i), "x", "Content-Type: text/plain").Code)
	}
	first := w.do("POST", "/v1/query", `{"query":"*","limit":1}`, asJSON).Body.String()
	_, cursor, _ := strings.Cut(first, `"cursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	require.NotEmpty(f, cursor)
	f.Add("*", cursor, 1)
	f.Add("i >= 1", cursor, 2)
	f.Add("(", "", -1)
	f.Add("*", base64.RawURLEncoding.EncodeToString([]byte(`{"b":1}`)), 0)
	f.Fuzz(func(t *testing.T, query, cursor string, limit int) {
		body, err := json.Marshal(map[string]any{"query": query, "cursor": cursor, "limit": limit})
		require.NoError(t, err)
		rec := w.in(t).do("POST", "/v1/query", string(body), asJSON)
		require.Less(t, rec.Code, 500, rec.Body)
		require.NotContains(t, rec.Body.String(), `{"error":`)
	})
}

// FuzzAppend: no body of events does.
func FuzzAppend(f *testing.F) {
	w := newWorld(f, service.Options{}, service.Serving{})
	f.Add(`{"events":[{"type":"A","tags":[["a","b"]],"data":{},"metadata_base64":"AA=="}],"condition":{"fail_if_events_match":{"items":[{"types":["B"]}]},"after":1}}`)
	f.Add(`{"events":[{"type":"A","tags":[[]]}]}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, body string) {
		rec := w.in(t).do("POST", "/v1/events", body, asJSON)
		require.Less(t, rec.Code, 500, rec.Body)
		require.True(t, json.Valid(rec.Body.Bytes()))
	})
}
