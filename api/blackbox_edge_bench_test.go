package api_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"purser/api"
)

// discarded is the cheapest writer of an answer that there is.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) Write(text []byte) (int, error) { return len(text), nil }
func (d *discarded) WriteHeader(status int)         { d.status = status }
func (d *discarded) Flush()                         {}

var usageBody = []byte(`{"id":"019b76da-a800-7c3e-8f5a-2d9b1e4c7a60","identity":"holder-4821@example.com","feature":"chat-completion","occurredAt":1767225600000,"entityId":"conversation-99","quantity":1200}`)

// BenchmarkEdge is POST /v1/events without the use: route, key, permission, rate,
// body and answer. Beside the time of a request it reports how much of it goes
// into decoding the body and checking it against the document.
func BenchmarkEdge(b *testing.B) {
	tn := newTenant(b)
	server, err := api.New(api.Options{Store: tn.node.store, RateLimit: 1e9, CursorKey: cursorKey})
	if err != nil {
		b.Fatal(err)
	}
	gates := server.Gates()
	body := bytes.NewReader(nil)
	r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/events", io.NopCloser(body))
	if err != nil {
		b.Fatal(err)
	}
	r.ContentLength = int64(len(usageBody))
	r.Header.Set("Authorization", "Bearer "+tn.key)
	r.Header.Set("Content-Type", "application/json")
	send := func() {
		body.Reset(usageBody)
		r.Body = io.NopCloser(body)
		w := discarded{header: make(http.Header)}
		if gates.ServeHTTP(&w, r); w.status != http.StatusCreated {
			b.Fatalf("the gates answer %d", w.status)
		}
	}
	send() // reads the key
	send() // reads that its use is noted, and remembers it from here on

	b.ReportAllocs()
	for b.Loop() {
		send()
	}
	whole := b.Elapsed()
	started := time.Now()
	for range b.N {
		if err := server.ReadUsage(usageBody); err != nil {
			b.Fatal(err)
		}
	}
	reading := time.Since(started)
	perRequest := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(perRequest(whole), "µs/request")
	b.ReportMetric(perRequest(reading), "µs/body")
	b.ReportMetric(100*float64(reading)/float64(whole), "%body")
}
