package server_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	arkivrpc "github.com/varvedb/varve/node/rpc"
)

// collector receives OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*tracepb.Span
	services []string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.services = append(c.services, a.GetValue().GetStringValue())
			}
		}
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// named returns the spans of a name, and requires their number.
func (c *collector) named(t *testing.T, name string, n int) (found []*tracepb.Span) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, s := range c.spans {
		all = append(all, s.GetName())
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, n, "%s in %q", name, all)
	return found
}

// attribute returns an attribute of a span as text.
func attribute(s *tracepb.Span, name string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == name {
			return strings.TrimSpace(strings.SplitN(a.GetValue().String(), ":", 2)[1])
		}
	}
	return ""
}

// slow ends a request a while after its connection.
type slow struct{ *arkivrpc.Handler }

func (s slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Handler.ServeHTTP(w, r)
	time.Sleep(50 * time.Millisecond)
}

const traceID, parentID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// TestTraces: a request's span is in the trace that its client names, has what waits for the
// block, and the block's commit, below it, and the id of the access log. Other protocols have
// the like; who only watches the server has none.
func TestTraces(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_SERVICE_NAME", "traced")
	var log bytes.Buffer
	db, s := newService(t, newURL(t)+"?durability=relaxed", service.Options{})
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	access := slog.New(slog.NewTextHandler(&log, nil))
	arkiv, err := arkivrpc.New(t.Context(), ents, arkivrpc.Options{Access: access})
	require.NoError(t, err)
	w := runOver(t, db, s, server.Options{Traces: true, Access: access, Site: &server.Site{Name: "Arkiv", Handler: slow{arkiv}}})

	ask := func(method, url, contentType, body string, status int) {
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Traceparent", "00-"+traceID+"-"+parentID+"-01")
		r.Header.Set("Content-Type", contentType)
		resp, err := w.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode)
	}
	rest := "http://" + w.server.REST()
	ask("PUT", w.url(1)+"/payload", "text/plain", "one", 201)
	ask("GET", w.url(1), "", "", 200)
	ask("DELETE", w.url(9), "", "", 404)
	ask("POST", rest+"/v1/query", "application/json", `{"query": "*"}`, 200)
	ask("GET", rest+"/healthz", "", "", 200)
	ask("POST", "http://"+w.server.Site(), "application/json", `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`, 200)
	socket, _, err := websocket.Dial(t.Context(), "ws://"+w.server.Site(), nil) //nolint:bodyclose // a connection has none
	require.NoError(t, err)
	require.NoError(t, socket.Close(websocket.StatusNormalClosure, ""))
	conn := dialPlain(t, w)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+traceID+"-"+parentID+"-01")
	_, err = varvev1.NewEventServiceClient(conn).Append(ctx, &varvev1.AppendRequest{Events: []*varvev1.Event{{Type: "A"}, {Type: "B"}}})
	require.NoError(t, err)
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	w.end(t)

	require.Contains(t, c.services, "traced")
	put := c.named(t, "PUT /v1/entities/{key}/payload", 1)[0]
	isBelow := func(s *tracepb.Span, parent string) {
		t.Helper()
		require.Equal(t, traceID, fmt.Sprintf("%x", s.GetTraceId()))
		require.Equal(t, parent, fmt.Sprintf("%x", s.GetParentSpanId()))
		require.GreaterOrEqual(t, s.GetEndTimeUnixNano(), s.GetStartTimeUnixNano())
	}
	isBelow(put, parentID)
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, put.GetKind())
	require.Equal(t, `"`+traceID+`"`, attribute(put, "varve.request.id"))
	require.Contains(t, log.String(), "id="+traceID+" trace_id="+traceID+" from=")
	commit := c.named(t, "varve.commit", 1)[0]
	isBelow(commit, fmt.Sprintf("%x", put.GetSpanId()))
	require.Equal(t, []string{"1", "1", "1"}, []string{attribute(commit, "varve.block"), attribute(commit, "varve.ops"), attribute(commit, "varve.changes")})
	waits := c.named(t, "varve.wait", 2) // of the delete too, which is refused
	isBelow(waits[0], fmt.Sprintf("%x", put.GetSpanId()))
	require.Equal(t, commit.GetSpanId(), waits[0].GetLinks()[0].GetSpanId())
	require.Empty(t, waits[1].GetLinks())
	get := c.named(t, "GET /v1/entities/{key}", 1)[0]
	require.Equal(t, "true", attribute(get, "varve.cached"))
	query := c.named(t, "POST /v1/query", 1)[0]
	require.Equal(t, "1", attribute(query, "varve.entities"))
	require.Equal(t, "1", attribute(query, "varve.block"))
	require.Equal(t, `"eth_chainId"`, attribute(c.named(t, "POST /", 1)[0], "varve.call"))
	require.Equal(t, "0", attribute(c.named(t, "GET /", 1)[0], "varve.calls"), "a connection")
	grpcAppend := c.named(t, "varve.v1.EventService/Append", 1)[0]
	isBelow(grpcAppend, parentID)
	below := c.named(t, "varve.append", 1)[0]
	isBelow(below, fmt.Sprintf("%x", grpcAppend.GetSpanId()))
	require.Equal(t, "2", attribute(below, "varve.events"))
	require.Len(t, c.spans, 11)
}

// TestTracesOfAGroup: the commit that requests share is in the trace of one of them, and
// every trace leads to it.
func TestTracesOfAGroup(t *testing.T) {
	c := newCollector(t)
	const writers = 5
	w := run(t, service.Options{Window: time.Hour, MaxGroup: writers}, server.Options{Traces: true})
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			status, err := w.put(n, "payload")
			if err != nil || status != http.StatusCreated {
				t.Error(status, err)
			}
		})
	}
	group.Wait()
	w.end(t)
	commit := c.named(t, "varve.commit", 1)[0]
	require.Equal(t, fmt.Sprint(writers), attribute(commit, "varve.ops"))
	var linked, waits [][]byte
	traces := map[string]bool{}
	for _, l := range commit.GetLinks() {
		linked = append(linked, l.GetSpanId())
	}
	for _, s := range c.named(t, "varve.wait", writers) {
		waits = append(waits, s.GetSpanId())
		traces[string(s.GetTraceId())] = true
		require.Len(t, s.GetLinks(), 1)
		require.Equal(t, commit.GetSpanId(), s.GetLinks()[0].GetSpanId())
		require.Equal(t, commit.GetTraceId(), s.GetLinks()[0].GetTraceId())
	}
	require.ElementsMatch(t, waits, linked)
	require.Len(t, traces, writers)
	require.True(t, traces[string(commit.GetTraceId())])
}

// TestTracesGoNowhere: a broken collector does not disturb requests, and is
// reported once.
func TestTracesGoNowhere(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	served := func(log io.Writer) *world {
		w := run(t, service.Options{}, server.Options{Traces: true, Log: slog.New(slog.NewTextHandler(log, nil))})
		for n := range 20 {
			status, err := w.put(n, "payload")
			require.NoError(t, err)
			require.Equal(t, http.StatusCreated, status)
		}
		return w
	}
	t.Run("unreachable", func(t *testing.T) {
		newCollector(t).Close()
		var log bytes.Buffer
		served(&log).end(t)
		require.Equal(t, 1, strings.Count(log.String(), "cannot be exported"), log.String())
	})
	t.Run("switched off", func(t *testing.T) {
		c := newCollector(t)
		t.Setenv("OTEL_SDK_DISABLED", "true")
		served(io.Discard).end(t)
		require.Empty(t, c.spans)
	})
	t.Run("not spoken", func(t *testing.T) {
		newCollector(t)
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
		_, s := newService(t, newURL(t), service.Options{})
		_, err := server.Listen(t.Context(), s, server.Options{Traces: true})
		require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	})
}
