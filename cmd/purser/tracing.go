package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// traceFlushTimeout is how long the last spans may take to be sent when the server stops.
const traceFlushTimeout = 5 * time.Second

// tracing makes OpenTelemetry spans. The zero value makes none: without the standard
// variables no SDK runs.
type tracing struct {
	requests trace.Tracer // samples as OTEL_TRACES_SAMPLER says
	batches  trace.Tracer // samples every batch with a recorded request
	stop     func()
}

// tracingOn reports whether the standard variables ask for traces: with an endpoint or
// an exporter.
func tracingOn(environ []string) (bool, error) {
	var set = map[string]string{}
	for _, pair := range environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			set[name] = value
		}
	}
	exporter := set["OTEL_TRACES_EXPORTER"]
	endpoint := set["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] + set["OTEL_EXPORTER_OTLP_ENDPOINT"]
	switch {
	case strings.EqualFold(set["OTEL_SDK_DISABLED"], "true"), exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, errors.New("OTEL_TRACES_EXPORTER must be otlp or none")
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := set[name]; protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("%s must be http/protobuf, the one protocol that Purser exports traces by", name)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if endpoint := set[name]; endpoint != "" && !isAbsoluteURL(endpoint) { // the SDK would use its default instead
			return false, fmt.Errorf("%s must be an address such as http://127.0.0.1:4318", name)
		}
	}
	return true, nil
}

// startTracing starts the exporter if the environment asks for it. The SDK reads the
// variables itself: endpoint, headers, certificates, sampler, limits and resource.
func startTracing(ctx context.Context, environ []string, log *slog.Logger) (tracing, error) {
	on, err := tracingOn(environ)
	if err != nil || !on {
		return tracing{stop: func() {}}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return tracing{}, fmt.Errorf("traces cannot be exported, see the OTEL_ variables: %w", err)
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "purser"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // last, so that OTEL_SERVICE_NAME wins
	if err != nil {
		return tracing{}, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES cannot be read: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces not exported", "cause", err) }))
	processor := sdktrace.NewBatchSpanProcessor(exporter)
	requests := sdktrace.NewTracerProvider(sdktrace.WithResource(described), sdktrace.WithSpanProcessor(processor))
	batches := sdktrace.NewTracerProvider(sdktrace.WithResource(described), sdktrace.WithSpanProcessor(processor), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	return tracing{
		requests: requests.Tracer("purser"), batches: batches.Tracer("purser"),
		stop: func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlushTimeout)
			defer cancel()
			if err := errors.Join(requests.Shutdown(ctx), batches.Shutdown(ctx)); err != nil {
				log.Warn("traces not exported", "cause", err)
			}
		},
	}, nil
}

// startCall starts the span of a call to a payment provider, within a recorded span
// only. The provider gets no traceparent header: it is another company.
func (t tracing) startCall(r *http.Request, provider, resource string) (*http.Request, func(*http.Response, error)) {
	if t.requests == nil || !trace.SpanFromContext(r.Context()).IsRecording() {
		return r, func(*http.Response, error) {}
	}
	ctx, span := t.requests.Start(r.Context(), provider+" "+r.Method+" "+resource, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname())))
	return r.WithContext(ctx), func(response *http.Response, err error) {
		if err != nil {
			span.SetStatus(codes.Error, "no response")
		} else {
			span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
		}
		span.End()
	}
}
