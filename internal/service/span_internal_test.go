package service

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/store/entity"
)

// TestUntraced: when a request is not traced, making its spans allocates
// nothing; nor when its client is part of a trace, and this process exports
// none.
func TestUntraced(t *testing.T) {
	remote := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
	}))
	for name, ctx := range map[string]context.Context{"none": t.Context(), "elsewhere": remote} {
		w := newWrite(ctx)
		p := &plan{writes: []*write{w}, block: entity.Block{Number: 1}}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			w.waitSpan = span(w.ctx, "wait")
			endSpan(spanCommit(p), nil, "n", 1)
			w.waitSpan.End()
			accesslog.Add(ctx, slog.Bool("cached", true), slog.Uint64("block", 1), slog.Int("entities", 1))
		}), name)
	}
}
