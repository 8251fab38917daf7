package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"purser/store/verify"
)

// watch repeats the pass until the context ends, and exports each result at the address.
// A pass that finds differences or fails is printed, counted and repeated: the command is
// for a machine that alerts on the metrics.
func (v verification) watch(ctx context.Context, pause time.Duration, addr string, log *slog.Logger) error {
	registry := prometheus.NewRegistry()
	result := newWatchMetrics(registry, pause)
	stop, err := serveRegistry(registry, addr, log)
	if err != nil {
		return err
	}
	defer stop()
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		begun := time.Now()
		books, err := v.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			log.Error("verification failed, will repeat", "cause", err)
		}
		result.observe(v.kind(), books, err, time.Now(), time.Since(begun))
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// watchMetrics are the metrics of the server's own verifications, and the last result.
type watchMetrics struct {
	verifyMetrics
	last, differences prometheus.Gauge
}

func newWatchMetrics(registry *prometheus.Registry, pause time.Duration) watchMetrics {
	m := watchMetrics{
		verifyMetrics: newVerifyMetrics(registry),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "purser_verify_watch_timestamp_seconds", Help: "When the last pass of verify --watch that came to its end did so, as Unix time; 0 before the first.",
		}),
		differences: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "purser_verify_watch_differences", Help: "Differences that the last pass of verify --watch found.",
		}),
	}
	every := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "purser_verify_watch_interval_seconds", Help: "How often verify --watch begins a pass.",
	})
	every.Set(pause.Seconds())
	registry.MustRegister(m.last, m.differences, every)
	return m
}

func (m watchMetrics) observe(kind verify.Kind, books totals, err error, now time.Time, took time.Duration) {
	run := verify.Run{Kind: kind, Entries: books.entries, Differences: books.differences}
	if err != nil {
		run.Failure = err.Error()
	}
	m.verifyMetrics.observe(run, took)
	m.differences.Set(float64(books.differences))
	if err == nil || books.differences > 0 {
		m.last.Set(float64(now.UnixMilli()) / 1000)
	}
}
