package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is an OTLP collector over HTTP.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*spans.Span
	service string
	headers http.Header
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		body, err := io.ReadAll(got.Body)
		if err != nil || got.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", got.URL.Path, err)
		}
		var export collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &export); err != nil {
			t.Errorf("the collector cannot read an export: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers = got.Header
		for _, of := range export.ResourceSpans {
			for _, attribute := range of.Resource.Attributes {
				if attribute.Key == "service.name" {
					r.service = attribute.Value.GetStringValue()
				}
			}
			for _, scope := range of.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// find returns a received span, or nil.
func (r *receiver) find(matches func(*spans.Span) bool) *spans.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.IndexFunc(r.spans, matches); at >= 0 {
		return r.spans[at]
	}
	return nil
}

func hasID(id []byte) func(*spans.Span) bool {
	return func(s *spans.Span) bool { return bytes.Equal(s.SpanId, id) }
}

func isIn(trace string) func(*spans.Span) bool {
	return func(s *spans.Span) bool { return hex.EncodeToString(s.TraceId) == trace }
}

func TestTracesContinueThoseOfCallersAndLeadToTheBatch(t *testing.T) {
	r := newReceiver(t)
	otel := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20c2VjcmV0",
		"OTEL_SERVICE_NAME": "billing", "OTEL_BSP_SCHEDULE_DELAY": "20",
	}
	var settings []string
	for name, value := range otel {
		t.Setenv(name, value) // the SDK reads the process's own environment
		settings = append(settings, name+"="+value)
	}
	p := startProduct(t, append(settings, "PURSER_LOG_REQUESTS=all")...)
	secret := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup").Secret
	call := func(path, body, traceparent string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+secret)
		if traceparent != "" {
			request.Header.Set("Traceparent", traceparent)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode >= 300 {
			text, _ := io.ReadAll(response.Body)
			t.Fatalf("%s: %s %s", path, response.Status, text)
		}
	}
	call("/v1/credits", `{"key":"tokens","name":"Tokens","unit":"token"}`, "")
	call("/v1/features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"1"}`, "")
	call("/v1/deposits", `{"identity":"ann@example.com","creditKey":"tokens","amountNanocredits":"9","idempotencyKey":"one"}`, "")
	const unsampled, sampled = "11111111111111111111111111111111", "4bf92f3577b34da6a3ce929d0e0e4736"
	call("/v1/events", `{"id":"e1","identity":"ann@example.com","feature":"chat"}`, "00-"+unsampled+"-00f067aa0ba902b7-00")
	call("/v1/events", `{"id":"e2","identity":"ann@example.com","feature":"chat"}`, "00-"+sampled+"-00f067aa0ba902b7-01")
	call("/v1/check", `{"identity":"ann@example.com","feature":"chat"}`, "")

	eventually(t, "the caller's trace arrives", func() bool { return r.find(isIn(sampled)) != nil })
	event := r.find(isIn(sampled))
	if event.Name != "POST /v1/events" || event.Kind != spans.Span_SPAN_KIND_SERVER || hex.EncodeToString(event.ParentSpanId) != "00f067aa0ba902b7" {
		t.Errorf("the event's span is %v", event)
	}
	if len(event.Links) != 1 {
		t.Fatalf("the event's span has the links %v", event.Links)
	}
	eventually(t, "the batch arrives", func() bool { return r.find(hasID(event.Links[0].SpanId)) != nil })
	batch := r.find(hasID(event.Links[0].SpanId))
	if batch.Name != "usage batch" || !bytes.Equal(batch.TraceId, event.Links[0].TraceId) || bytes.Equal(batch.TraceId, event.TraceId) {
		t.Errorf("the batch's span is %v", batch)
	}
	if len(batch.Links) != 1 || !bytes.Equal(batch.Links[0].SpanId, event.SpanId) {
		t.Errorf("the batch's span has the links %v", batch.Links)
	}
	eventually(t, "a check without a caller's trace arrives", func() bool {
		return r.find(func(s *spans.Span) bool {
			return s.Name == "POST /v1/check" && len(s.ParentSpanId) == 0 && len(s.Links) == 1
		}) != nil
	})
	if s := r.find(isIn(unsampled)); s != nil {
		t.Errorf("a trace that its caller does not record is recorded: %v", s)
	}
	eventually(t, "the log names the trace", func() bool { return strings.Contains(p.log.String(), `"trace":"`+sampled+`"`) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.service != "billing" || r.headers.Get("Authorization") != "Basic c2VjcmV0" {
		t.Errorf("the service is %q, and the headers are not those of the environment", r.service)
	}
	for _, s := range r.spans {
		if text := s.String(); strings.Contains(text, "example.com") || strings.Contains(text, secret) {
			t.Errorf("a span tells too much: %s", text)
		}
	}
}

func TestTracingIsOffWithoutTheStandardVariables(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"":                    "off",
		"OTEL_SERVICE_NAME=x": "off",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1":                           "on",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1":                    "on",
		"OTEL_TRACES_EXPORTER=otlp":                                                "on",
		"OTEL_TRACES_EXPORTER=otlp OTEL_SDK_DISABLED=true":                         "off",
		"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1": "off",
		"OTEL_TRACES_EXPORTER=zipkin":                                              "OTEL_TRACES_EXPORTER",
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc":               "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":      "on",
	} {
		on, err := tracingOn(strings.Fields(environ))
		switch {
		case err != nil && !strings.Contains(err.Error(), want), err == nil && on != (want == "on"):
			t.Errorf("%q: %t, %v; want %s", environ, on, err, want)
		}
	}
	off, err := startTracing(t.Context(), nil, slog.New(slog.DiscardHandler))
	if err != nil || off.requests != nil || off.batches != nil {
		t.Errorf("without variables there is %+v, %v", off, err)
	}
	off.stop()
}
