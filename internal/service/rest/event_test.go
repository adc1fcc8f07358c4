package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/event"
)

// append appends events through the service.
func (w *world) append(events ...event.Event) {
	w.t.Helper()
	_, err := w.service.Events().Append(context.Background(), events, nil)
	require.NoError(w.t, err)
}

// data returns the data of the events in some lines.
func data(t testing.TB, list []map[string]json.RawMessage) string {
	t.Helper()
	var all []string
	for _, line := range list {
		if line["event"] == nil {
			continue
		}
		var e struct {
			Data json.RawMessage `json:"data"`
		}
		require.NoError(t, json.Unmarshal(line["event"], &e))
		all = append(all, string(e.Data))
	}
	return strings.Join(all, " ")
}

func number(n int, tags ...event.Tag) event.Event {
	return event.Event{Type: "N", Data: []byte(fmt.Sprint(n)), Tags: tags}
}

func TestReadEvents(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	require.JSONEq(t, `{"head":0}`, w.do("GET", "/v1/events/head", "").Body.String())
	require.Equal(t, "{\"end\":{\"count\":0,\"head\":0}}\n", w.do("GET", "/v1/events", "").Body.String())
	x, y := event.NewTag("x", "1"), event.NewTag("y", "a:b")
	w.append(number(1, x), number(2, x, y), event.Event{Type: "Other", Data: []byte{0xff}, Metadata: []byte(`{"by":"<ann>"}`), ID: event.ID{1}}, number(4, y))
	require.JSONEq(t, `{"head":4}`, w.do("GET", "/v1/events/head", "").Body.String())

	list := lines(t, w.do("GET", "/v1/events?type=Other", ""))
	require.Len(t, list, 2)
	var e map[string]any
	require.NoError(t, json.Unmarshal(list[0]["event"], &e))
	require.NotEmpty(t, e["time"])
	delete(e, "time")
	require.Equal(t, map[string]any{
		"position": 3.0, "id": "01000000-0000-0000-0000-000000000000", "type": "Other", "data_base64": "/w==", "metadata": map[string]any{"by": "<ann>"},
	}, e)
	for _, c := range []struct{ get, post, want, end string }{
		{"", `{}`, `1 2  4`, `{"count":4,"head":4}`},
		{"type=N", `{"query":{"items":[{"types":["N"]}]}}`, "1 2 4", `{"count":3,"head":4}`},
		{"type=N&tag=x:1", `{"query":{"items":[{"types":["N"],"tags":[["x","1"]]}]}}`, "1 2", `{"count":2,"head":4}`},
		{"tag=x:1&tag=y:a:b", `{"query":{"items":[{"tags":[["x","1"],["y","a:b"]]}]}}`, "2", `{"count":1,"head":4}`},
		{"type=N&from=2&limit=1", `{"query":{"items":[{"types":["N"]}]},"from":"2","limit":1}`, "2", `{"count":1}`},
		{"type=N&backwards=true", `{"query":{"items":[{"types":["N"]}]},"backwards":true}`, "4 2 1", `{"count":3}`},
		{"until=1970-01-01T00:00:00Z", `{"until":"1970-01-01T00:00:00Z"}`, "", `{"count":0,"head":0}`},
		{"until=0001-01-01T00:00:00Z", `{"until":"0001-01-01T00:00:00Z"}`, "", `{"count":0,"head":0}`},
		{"since=0001-01-01T00:00:00Z&limit=2", `{"since":"0001-01-01T00:00:00Z","limit":2}`, "1 2", `{"count":2}`},
		{"type=None", `{"query":{"items":[{"types":["None"]}]}}`, "", `{"count":0,"head":4}`},
	} {
		for _, rec := range []*httptest.ResponseRecorder{
			w.do("GET", "/v1/events?"+c.get, ""), w.do("POST", "/v1/events/read", c.post, asJSON),
		} {
			require.Equal(t, 200, rec.Code, rec.Body)
			require.Equal(t, "application/x-ndjson", rec.Header().Get("Content-Type"))
			list := lines(t, rec)
			require.Equal(t, c.want, data(t, list))
			require.JSONEq(t, c.end, string(list[len(list)-1]["end"]))
		}
	}
	for _, path := range []string{
		"/v1/events?tag=x", "/v1/events?from=-1", "/v1/events?from=1&from=2", "/v1/events?since=today", "/v1/events?backwards=maybe",
		"/v1/events?unknown=1", "/v1/events/subscribe?limit=1", "/v1/events/subscribe?from=x",
	} {
		w.problem(w.do("GET", path, ""), 400, "malformed")
	}
	w.problem(w.do("POST", "/v1/events/read", `{"query":{"items":[{}]}}`, asJSON), 422, "invalid")
	w.problem(w.do("POST", "/v1/events/subscribe", `{"query":{"items":[{}]}}`, asJSON), 422, "invalid")
	w.problem(w.do("GET", "/v1/events/subscribe", "", "Accept: text/event-stream", "Last-Event-ID: x"), 400, "malformed")
	w.problem(w.do("POST", "/v1/events/head", "{}", asJSON), 405, "method")
}

func TestConflict(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	w.append(number(1), number(2), event.Event{Type: "A"})
	rec := w.do("POST", "/v1/events", `{"events":[{"type":"A"}],"condition":{"fail_if_events_match":{"items":[{"types":["B"]},{"types":["A"]}]},"after":2}}`, asJSON)
	w.problem(rec, 409, "conflict")
	var p map[string]any
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &p))
	require.Equal(t, []any{3.0, 1.0, 2.0}, []any{p["position"], p["item"], p["after"]})
	p = nil
	require.NoError(t, json.Unmarshal(w.do("POST", "/v1/events", `{"events":[]}`, asJSON).Body.Bytes(), &p))
	require.NotContains(t, p, "position")
}

// TestCheckpoints: a consumer moves together with the events that it appends.
func TestCheckpoints(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	const path = "/v1/events/checkpoints/mail%2Fout"
	require.JSONEq(t, `{"position":0}`, w.do("GET", path, "").Body.String())
	rec := w.do("POST", path, `{"to":0,"events":[{"type":"A"},{"type":"B"}],"condition":{"fail_if_events_match":{}}}`, asJSON)
	require.Equal(t, 200, rec.Code, rec.Body)
	require.JSONEq(t, `{"positions":[1,2]}`, rec.Body.String())
	require.JSONEq(t, `{"positions":[3]}`, w.do("POST", path, `{"to":1,"events":[{"type":"A"}]}`, asJSON).Body.String())
	w.problem(w.do("POST", path, `{"to":2,"events":[{"type":"A"}]}`, asJSON), 409, "checkpoint")
	w.problem(w.do("POST", path, `{"from":1,"to":2,"events":[{"type":"A"}],"condition":{"fail_if_events_match":{}}}`, asJSON), 409, "conflict")
	p := w.problem(w.do("POST", path, `{"from":1,"to":4,"events":[{"type":"A"}]}`, asJSON), 422, "invalid")
	require.Contains(t, p.Detail, "the last event is 3")
	require.JSONEq(t, `{"positions":[]}`, w.do("POST", path, `{"from":1,"to":"3"}`, asJSON).Body.String())
	require.JSONEq(t, `{"position":3}`, w.do("GET", path, "").Body.String())
	require.JSONEq(t, `{"head":3}`, w.do("GET", "/v1/events/head", "").Body.String())
	w.problem(w.do("GET", "/v1/events/checkpoints/"+strings.Repeat("n", 257), ""), 422, "invalid")
}

// TestReadBeforeError: the lines of what can be read come before that of an error.
func TestReadBeforeError(t *testing.T) {
	w := newWorld(t, service.Options{}, service.Serving{})
	require.Equal(t, 200, w.do("POST", "/v1/events", `{"events":[{"type":"A"},{"type":"B"},{"type":"C"}]}`, asJSON).Code)
	events, err := w.db.Events(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, events.Truncate(t.Context(), 2, nil))
	got := lines(t, w.do("GET", "/v1/events?backwards=true", ""))
	require.Len(t, got, 3)
	require.Contains(t, string(got[0]["event"]), `"position":3`)
	require.Contains(t, string(got[1]["event"]), `"position":2`)
	require.Contains(t, string(got[2]["error"]), `urn:varve:problem:truncated`)
	w.problem(w.do("GET", "/v1/events", ""), 410, "truncated")
}

// subscriber is a client of a subscription.
type subscriber struct {
	t      testing.TB
	body   *bufio.Reader
	header http.Header
	cancel context.CancelFunc
}

func subscribe(t testing.TB, url, body string, header ...string) *subscriber {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url+"/v1/events/subscribe", strings.NewReader(body))
	require.NoError(t, err)
	if body == "" {
		req.URL.RawQuery = "type=N"
	}
	for _, line := range append(header, asJSON) {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, 200, resp.StatusCode)
	return &subscriber{t, bufio.NewReader(resp.Body), resp.Header, cancel}
}

func (s *subscriber) line() string {
	s.t.Helper()
	line, err := s.body.ReadString('\n')
	require.NoError(s.t, err)
	return strings.TrimSuffix(line, "\n")
}

// TestSubscribe: events come as they are appended, in either form, until the server goes
// down, which is told.
func TestSubscribe(t *testing.T) {
	ending, end := context.WithCancel(t.Context())
	w := newWorld(t, service.Options{}, service.Serving{Ending: ending})
	server := httptest.NewServer(w.handler)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	w.append(number(1), number(2), event.Event{Type: "Other"})

	lines := subscribe(t, server.URL, `{"query":{"items":[{"types":["N"]}]},"from":2}`)
	require.Equal(t, "application/x-ndjson", lines.header.Get("Content-Type"))
	sse := subscribe(t, server.URL, "", "Accept: text/html, text/event-stream; q=0.5", "Last-Event-ID: 1")
	require.Equal(t, "text/event-stream", sse.header.Get("Content-Type"))
	empty := subscribe(t, server.URL, `{"query":{"items":[{"types":["None"]}]}}`)
	for n := 2; n < 6; n++ {
		if n > 2 {
			w.append(number(n))
		}
		require.Contains(t, lines.line(), fmt.Sprintf(`"data":%d`, n))
		position := n
		if n > 2 {
			position++
		}
		require.Equal(t, fmt.Sprintf("id: %d", position), sse.line())
		require.Contains(t, sse.line(), fmt.Sprintf(`"data":%d`, n))
		require.Empty(t, sse.line())
	}
	end()
	require.Contains(t, lines.line(), `{"error":{"type":"urn:varve:problem:closing"`)
	require.Contains(t, empty.line(), "urn:varve:problem:closing")
	require.Equal(t, "event: problem", sse.line())
	require.Contains(t, sse.line(), `data: {"type":"urn:varve:problem:closing"`)
	left, err := lines.body.Peek(1)
	require.Error(t, err)
	require.Empty(t, left)
}
