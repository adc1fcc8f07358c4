package service

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// span begins a child span of the request in a context. If the request is not
// traced, the span does nothing and costs nothing.
func span(ctx context.Context, name string) trace.Span {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return above
	}
	_, below := above.TracerProvider().Tracer("github.com/varvedb/varve/internal/service").Start(ctx, name)
	return below
}

// spanCommit begins the span of a block's commit. It belongs to the trace of
// the first traced write. It is linked with the waiting spans of all writes, in
// both directions, so that every trace leads to it.
func spanCommit(p *plan) trace.Span {
	commit := trace.SpanFromContext(context.Background())
	for _, w := range p.writes {
		if !trace.SpanFromContext(w.ctx).IsRecording() {
			continue
		}
		if !commit.IsRecording() {
			commit = span(w.ctx, "varve.commit")
			commit.SetAttributes(attribute.Int64("varve.block", int64(p.block.Number)), attribute.Int("varve.ops", len(p.block.Ops)))
		}
		commit.AddLink(trace.Link{SpanContext: w.waitSpan.SpanContext()})
		w.waitSpan.AddLink(trace.Link{SpanContext: commit.SpanContext()})
		w.waitSpan.End()
	}
	return commit
}

// endSpan ends a span with its result: an error, or a number.
func endSpan(s trace.Span, err error, name string, n uint64) {
	if s.IsRecording() {
		s.SetAttributes(attribute.Int64(name, int64(n)))
		if err != nil {
			s.RecordError(err)
			s.SetStatus(codes.Error, Classify(err).Title)
		}
		s.End()
	}
}
