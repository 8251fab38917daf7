package httpd

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"purser/ids"
)

// startSpan starts the span of a request, in the trace of its W3C traceparent header if
// it has one. It returns nil when tracing is off. Like the log, spans have the route and
// never the path, headers or body.
func (s *Server) startSpan(ec echo.Context, request *Request) trace.Span {
	if s.options.Tracer == nil {
		return nil
	}
	r := ec.Request()
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.options.Tracer.Start(ctx, knownMethod(r.Method), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", knownMethod(r.Method)), attribute.String("purser.request.id", request.ID.Format(ids.Request))))
	ec.SetRequest(r.WithContext(ctx))
	return span
}

// knownMethod is the method, or OpenTelemetry's name for one that the client invented.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// endSpan ends the span of a request, whose route is known by now.
func endSpan(span trace.Span, ec echo.Context, r *Request) {
	span.SetAttributes(attribute.Int("http.response.status_code", r.Status))
	if route := ec.Path(); route != "" {
		span.SetName(knownMethod(ec.Request().Method) + " " + route)
		span.SetAttributes(attribute.String("http.route", route))
	}
	if !r.Key.IsZero() {
		span.SetAttributes(attribute.String("purser.application.id", r.App.Format(ids.Application)))
	}
	if r.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// traceOf is the id of the request's trace, from its own span or the traceparent header;
// empty for none.
func traceOf(ec echo.Context) string {
	if span := trace.SpanContextFromContext(ec.Request().Context()); span.HasTraceID() {
		return span.TraceID().String()
	}
	return traceID(ec.Request().Header)
}
