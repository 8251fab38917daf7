package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"purser/store"
)

// metrics are the Prometheus metrics of a node. Labels are routes and statuses, never an
// application, key or identity.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "purser_request_seconds",
			Help:    "Request duration by method, route and status.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 15},
		}, []string{"method", "route", "status"}),
	}
	m.registry.MustRegister(m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
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

// registerUsage adds the counters of the usage engine.
func (m *metrics) registerUsage(u *store.Engine) {
	counter := func(name, help string, read func(store.EngineStats) int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(read(u.Stats())) }))
	}
	counter("purser_usage_conflicts_total", "Batches retried with locks after a version conflict.",
		func(s store.EngineStats) int64 { return s.Conflicts })
	counter("purser_usage_read_ahead_total", "Events whose wallet was not cached and was read while the previous batch was written.",
		func(s store.EngineStats) int64 { return s.Prefetched })
	counter("purser_usage_splits_total", "Batches split after a database error. Each one is a bug: see the log.",
		func(s store.EngineStats) int64 { return s.Splits })
	counter("purser_usage_differing_repeats_total", "Repeated event ids with different content.",
		func(s store.EngineStats) int64 { return s.Differing })
	counter("purser_usage_borrowed_connections_total", "Event and check transactions that borrowed a connection from the general pool.",
		func(s store.EngineStats) int64 { return s.Borrowed })
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "purser_clock_offset_seconds", Help: "How far this node's clock is ahead of the database clock, which Purser uses."},
		func() float64 { return u.Clock().Offset().Seconds() }))
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "purser_usage_waiting", Help: "Events and checks waiting in the queues."},
		func() float64 { return float64(u.Stats().Waiting) }))
}

// jobsTimeout bounds the query behind the job metrics.
const jobsTimeout = 5 * time.Second

// registerJobs adds the failing billing jobs of all applications, so every node reports
// the same. They are absent while the database is down.
func (m *metrics) registerJobs(db *store.Store) {
	m.registry.MustRegister(jobsCollector{
		db: db,
		number: prometheus.NewDesc("purser_jobs_failing",
			"Failing billing jobs of all applications.", nil, nil),
		since: prometheus.NewDesc("purser_jobs_failing_since_seconds",
			"When the oldest failing billing job started failing, as Unix time; 0 for none.", nil, nil),
	})
}

// jobsCollector reads both metrics with one query.
type jobsCollector struct {
	db            *store.Store
	number, since *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c jobsCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.number
	to <- c.since
}

// Collect implements prometheus.Collector.
func (c jobsCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), jobsTimeout)
	defer cancel()
	number, since, err := c.db.Directory().FailingJobs(ctx)
	if err != nil {
		return
	}
	to <- prometheus.MustNewConstMetric(c.number, prometheus.GaugeValue, float64(number))
	to <- prometheus.MustNewConstMetric(c.since, prometheus.GaugeValue, float64(since)/1000)
}

// serve serves /metrics on its own address until stop is called.
func (m *metrics) serve(addr string, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError("PURSER_METRICS_ADDR", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics stopped", "cause", err)
		}
	}()
	return func() { _ = server.Shutdown(context.Background()) }, nil
}
