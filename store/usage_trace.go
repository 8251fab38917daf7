package store

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// maxBatchLinks bounds the links of a batch's span: it may have 256 requests, and most
// collectors keep 128 links.
const maxBatchLinks = 128

// startSpan starts the span of a batch, linked with the spans of its requests in both
// directions. It returns nil when tracing is off or no request is recorded. A request
// that is deferred has a link to each of its batches.
func (b *batcher) startSpan(batch []*request) trace.Span {
	if b.engine.tracer == nil {
		return nil
	}
	var links []trace.Link
	for _, r := range batch {
		if r.Span != nil && r.Span.IsRecording() && len(links) < maxBatchLinks {
			links = append(links, trace.Link{SpanContext: r.Span.SpanContext()})
		}
	}
	if len(links) == 0 {
		return nil
	}
	_, span := b.engine.tracer.Start(context.Background(), "usage batch", trace.WithNewRoot(), trace.WithLinks(links...), trace.WithAttributes(
		attribute.String("purser.batch.kind", b.kind), attribute.Int("purser.batch.size", len(batch))))
	for _, r := range batch {
		if r.Span != nil {
			r.Span.AddLink(trace.Link{SpanContext: span.SpanContext()})
		}
	}
	return span
}

// endSpan ends the span of a batch that has run.
func endSpan(span trace.Span, batch []*request) {
	failed, deferred := 0, 0
	for _, r := range batch {
		switch {
		case r.deferred:
			deferred++
		case r.err != nil:
			failed++
		}
	}
	span.SetAttributes(attribute.Int("purser.batch.failed", failed), attribute.Int("purser.batch.deferred", deferred))
	span.End()
}
