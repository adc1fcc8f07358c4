package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"github.com/varvedb/varve/internal/build"
)

// flushTimeout bounds the export of the last spans when the server ends.
const flushTimeout = 5 * time.Second

// newTraces returns the span exporter that the environment configures; nil when
// no endpoint is set. The libraries read most of the variables.
func newTraces(ctx context.Context, log *slog.Logger) (*sdk.TracerProvider, error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	exporter := cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp")
	if endpoint == "" || exporter == "none" || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if exporter != "otlp" || protocol == "grpc" {
		return nil, fmt.Errorf("traces: only OTLP over HTTP is spoken: OTEL_TRACES_EXPORTER=%s, OTEL_EXPORTER_OTLP_PROTOCOL=%s", exporter, protocol)
	}
	out, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	of, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "varve"), attribute.String("service.version", build.Read().Version)), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("traces: %w", err), out.Shutdown(ctx))
	}
	return sdk.NewTracerProvider(sdk.WithResource(of), sdk.WithBatcher(&quiet{SpanExporter: out, log: log})), nil
}

// quiet logs only once that exporting fails, instead of for every batch.
// Requests do not wait for exports: spans that do not fit the buffer are
// dropped.
type quiet struct {
	sdk.SpanExporter
	log  *slog.Logger
	down bool // the last export failed; needs no lock, because one batch is exported at a time
}

// ExportSpans implements SpanExporter.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !q.down:
		q.log.Warn("traces cannot be exported and are dropped", "error", err)
	case err == nil && q.down:
		q.log.Info("traces are exported again")
	}
	q.down = err != nil
	return nil
}

// traced gives each request of a handler a span, except health and metrics
// requests.
func (s *Server) traced(next http.Handler) http.Handler {
	if s.traces == nil {
		return next
	}
	handler := otelhttp.NewHandler(next, "", otelhttp.WithTracerProvider(s.traces), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}), otelhttp.WithFilter(func(r *http.Request) bool {
			return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && r.URL.Path != "/metrics"
		}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.spans.TryAcquire(1) {
			defer s.spans.Release(1)
		}
		handler.ServeHTTP(w, r)
	})
}

// tracedGRPC does the same over gRPC.
func (s *Server) tracedGRPC() grpc.ServerOption {
	return grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(s.traces), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}), otelgrpc.WithFilter(filters.Not(filters.HealthCheck()))))
}

// flush exports the remaining spans, after the spans of hijacked connections
// such as WebSockets have ended. A collector's failure is not an error of the
// server.
func (s *Server) flush() {
	if s.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	wait, stop := context.WithTimeout(ctx, flushTimeout/2)
	defer stop()
	if err := errors.Join(s.spans.Acquire(wait, math.MaxInt64), s.traces.Shutdown(ctx)); err != nil {
		s.opts.Log.Warn("the last traces were not exported", "error", err)
	}
}
