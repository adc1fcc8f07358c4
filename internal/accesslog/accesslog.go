// Package accesslog gives requests ids, logs each in one line, and adds
// attributes to their trace spans.
package accesslog

import (
	"bufio"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Header carries the id of a request: the client's, or a generated one. The
// answer has the same header.
const Header = "X-Request-Id"

// TraceHeader carries the trace that a request belongs to, as in W3C Trace
// Context.
const TraceHeader = "Traceparent"

// maxID bounds a client's id, in bytes, so that it cannot fill the log.
const maxID = 64

// Request is a request that is being answered. If it is not logged, it has only
// its id.
type Request struct {
	ID string // the client's, else the trace's, else a new one

	log   *slog.Logger
	trace string
	begun time.Time
	mu    sync.Mutex
	attrs []slog.Attr
}

type contextKey struct{}

// Begin begins a request with the client's id and trace, "" for none. If ctx
// has a span, its trace takes precedence. The handler gets the returned
// context.
func Begin(ctx context.Context, log *slog.Logger, id, traceparent string) (context.Context, *Request) {
	r := &Request{ID: id, log: log, trace: traceID(ctx, traceparent)}
	if !isSafeID(id) {
		if r.ID = r.trace; r.trace == "" {
			r.ID = rand.Text()
		}
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String("varve.request.id", r.ID))
	}
	if log == nil {
		return ctx, r
	}
	r.begun = time.Now()
	return context.WithValue(ctx, contextKey{}, r), r
}

// End logs an answered request.
func (r *Request) End(ctx context.Context, attrs ...slog.Attr) {
	if r.log == nil {
		return
	}
	list := []slog.Attr{slog.String("id", r.ID)}
	if r.trace != "" {
		list = append(list, slog.String("trace_id", r.trace))
	}
	list = append(append(list, attrs...), slog.Duration("took", time.Since(r.begun)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.LogAttrs(ctx, slog.LevelInfo, "request", append(list, r.attrs...)...)
}

// Add adds attributes to the log line and the span of a context's request, if
// there are any.
func Add(ctx context.Context, attrs ...slog.Attr) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		for _, a := range attrs {
			span.SetAttributes(attributeOf(a))
		}
	}
	if r, ok := ctx.Value(contextKey{}).(*Request); ok {
		r.mu.Lock()
		r.attrs = append(r.attrs, attrs...)
		r.mu.Unlock()
	}
}

// Handler wraps a handler: each request gets an id and, unless log is nil, is
// logged after it was answered. A hijacked connection is logged when it ends.
func Handler(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, line := Begin(r.Context(), log, r.Header.Get(Header), r.Header.Get(TraceHeader))
		w.Header()[Header] = []string{line.ID}
		if log == nil {
			next.ServeHTTP(w, r)
			return
		}
		answer := &answer{ResponseWriter: w}
		defer func() {
			line.End(ctx, slog.String("from", r.RemoteAddr), slog.String("method", r.Method), slog.String("path", r.URL.Path),
				slog.Int("status", answer.status), slog.Int("bytes", answer.bytes))
		}()
		inner := r.WithContext(ctx)
		next.ServeHTTP(answer, inner)
		r.Pattern = inner.Pattern // names the span
	})
}

// traceID returns the id of a context's trace, otherwise of the trace in a
// header; "" if there is no valid one.
func traceID(ctx context.Context, parent string) string {
	within := trace.SpanContextFromContext(ctx)
	if !within.IsValid() && parent != "" {
		carrier := propagation.MapCarrier{"traceparent": parent}
		within = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, carrier))
	}
	if !within.HasTraceID() {
		return ""
	}
	return within.TraceID().String()
}

// attributeOf converts a log attribute into a span attribute.
func attributeOf(a slog.Attr) attribute.KeyValue {
	name := "varve." + a.Key
	switch a.Value.Kind() {
	case slog.KindBool:
		return attribute.Bool(name, a.Value.Bool())
	case slog.KindInt64:
		return attribute.Int64(name, a.Value.Int64())
	case slog.KindUint64:
		return attribute.Int64(name, int64(a.Value.Uint64()))
	}
	return attribute.String(name, a.Value.String())
}

// isSafeID reports whether a client's id is safe in headers and logs.
func isSafeID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// answer records the status and size of an answer.
type answer struct {
	http.ResponseWriter
	status, bytes int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += n
	return n, err
}

// Hijack implements http.Hijacker, which the WebSocket library expects on the
// outermost writer.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController find the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
