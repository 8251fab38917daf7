package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"purser/store"
)

// metrics are the Prometheus metrics of a node. Labels have a fixed set of values:
// routes, statuses, kinds; never an application, key or identity.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.HistogramVec
	batches      map[string]batchMetrics
	jobs         *prometheus.HistogramVec
	jobLag       *prometheus.HistogramVec
	webhooks     *prometheus.CounterVec
	webhookLag   prometheus.Histogram
	mails        *prometheus.CounterVec
	deliveries   *prometheus.HistogramVec
	usageLag     prometheus.Histogram
	providerCall *prometheus.HistogramVec
	traces       tracing // of provider calls
}

type batchMetrics struct{ size, seconds prometheus.Observer }

// lagBuckets reach from a second to a day.
var lagBuckets = []float64{1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: histogram("purser_request_seconds", "Request duration by method, route and status.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 15}, "method", "route", "status"),
		jobs: histogram("purser_job_seconds", "Duration of background jobs by kind and result: done, retried or stopped.",
			[]float64{.01, .05, .25, 1, 5, 20}, "kind", "result"),
		jobLag: histogram("purser_job_lag_seconds", "How long background jobs were overdue when they started, by kind. Test applications with a moved clock are left out.",
			lagBuckets, "kind"),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "purser_webhooks_total", Help: "Events received from payment providers by outcome: queued or ignored.",
		}, []string{"outcome"}),
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "purser_mails_total", Help: "Attempts to send a mail by kind and outcome: sent, retried, refused or dropped.",
		}, []string{"kind", "outcome"}),
		webhookLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "purser_webhook_lag_seconds", Help: "Time from the provider's event to its receipt. Test applications with a moved clock are left out.",
			Buckets: lagBuckets,
		}),
		usageLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "purser_usage_settle_lag_seconds", Help: "How far usage statistics were behind the events of an application after they were updated. About a minute is normal.",
			Buckets: lagBuckets,
		}),
		deliveries: histogram("purser_webhook_delivery_seconds", "Duration of attempts to deliver a notification by result: delivered, refused or unreachable.",
			[]float64{.01, .05, .25, 1, 5, 15}, "result"),
		providerCall: histogram("purser_provider_request_seconds", "Duration of calls to payment providers by provider, resource and status class, or error without a response.",
			[]float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 20}, "provider", "resource", "status"),
	}
	built := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "purser_build_info", Help: "Always 1; the label is the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	built.Set(1)
	m.registry.MustRegister(m.requests, m.jobs, m.jobLag, m.webhooks, m.webhookLag, m.mails, m.deliveries, m.usageLag, m.providerCall, built,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.newBatches()
	m.newRejections()
	return m
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// newBatches creates the metrics of batches. Their children are looked up once, so that a
// batch is observed without one.
func (m *metrics) newBatches() {
	size := histogram("purser_usage_batch_size", "Events or checks per batch.", []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}, "kind")
	seconds := histogram("purser_usage_batch_seconds", "Duration of batches of events or checks, with their retries.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 10}, "kind")
	m.registry.MustRegister(size, seconds)
	m.batches = map[string]batchMetrics{}
	for _, kind := range []string{store.EventBatch, store.CheckBatch, store.BulkBatch} {
		m.batches[kind] = batchMetrics{size.WithLabelValues(kind), seconds.WithLabelValues(kind)}
	}
}

// observe records a request. Unknown methods share a label, because clients choose them.
func (m *metrics) observe(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *metrics) observeBatch(b store.Batch) {
	of := m.batches[b.Kind]
	of.size.Observe(float64(b.Size))
	of.seconds.Observe(b.Took.Seconds())
}

// registerUsage adds the figures of the usage engine.
func (m *metrics) registerUsage(u *store.Engine) {
	counter := func(name, help string, read func(store.EngineStats) int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(read(u.Stats())) }))
	}
	gauge := func(o prometheus.GaugeOpts, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(o, read))
	}
	counter("purser_usage_conflicts_total", "Optimistic transactions that failed and were retried under locks.",
		func(s store.EngineStats) int64 { return s.Conflicts })
	counter("purser_usage_read_ahead_total", "Events whose wallet was not cached and was read while the previous batch was written.",
		func(s store.EngineStats) int64 { return s.Prefetched })
	counter("purser_usage_splits_total", "Batches split after a database error. Each one is a bug: see the log.",
		func(s store.EngineStats) int64 { return s.Splits })
	counter("purser_usage_retries_total", "Attempts of a batch that failed in the database and were repeated.",
		func(s store.EngineStats) int64 { return s.Retries })
	counter("purser_usage_differing_repeats_total", "Repeated event ids with different content.",
		func(s store.EngineStats) int64 { return s.Differing })
	counter("purser_usage_borrowed_connections_total", "Event and check transactions that borrowed a connection from the general pool.",
		func(s store.EngineStats) int64 { return s.Borrowed })
	counter("purser_denials_dropped_total", "Denials that were counted but not kept for the list of denials: too many per minute, or not storable.",
		func(s store.EngineStats) int64 { return s.Unlisted })
	gauge(prometheus.GaugeOpts{Name: "purser_clock_offset_seconds", Help: "How far this node's clock is ahead of the database clock, which Purser uses."},
		func() float64 { return u.Clock().Offset().Seconds() })
	const waiting = "Events or checks waiting in the queues."
	gauge(prometheus.GaugeOpts{Name: "purser_usage_waiting", Help: waiting, ConstLabels: prometheus.Labels{"kind": store.EventBatch}},
		func() float64 { return float64(u.Stats().QueuedEvents) })
	gauge(prometheus.GaugeOpts{Name: "purser_usage_waiting", Help: waiting, ConstLabels: prometheus.Labels{"kind": store.CheckBatch}},
		func() float64 { return float64(u.Stats().QueuedChecks) })
	gauge(prometheus.GaugeOpts{Name: "purser_usage_waiting", Help: waiting, ConstLabels: prometheus.Labels{"kind": store.BulkBatch}},
		func() float64 { return float64(u.Stats().QueuedBulk) })
	gauge(prometheus.GaugeOpts{Name: "purser_ready", Help: "1 while /readyz answers 200, apart from a drain; otherwise 0."}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
		defer cancel()
		if u.Ready(ctx) != nil {
			return 0
		}
		return 1
	})
}

// metricsStopTimeout is how long a scrape or profile may take to finish when the server
// stops.
const metricsStopTimeout = time.Second

// serve serves the node's metrics on their own address until stop is called.
func (m *metrics) serve(addr string, log *slog.Logger) (stop func(), err error) {
	return serveRegistry(m.registry, addr, log)
}

// serveRegistry serves /metrics and /debug/pprof until stop is called, and nothing without
// an address. The address must be private: both tell how the process works.
func serveRegistry(registry *prometheus.Registry, addr string, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError("PURSER_METRICS_ADDR", addr, err)
	}
	log.Info("metrics listening", "address", listener.Addr().String())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics stopped", "cause", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), metricsStopTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // a profile may run for minutes
		}
	}, nil
}
