package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

const (
	// verifyTick is how often a node looks whether a verification is due.
	verifyTick = time.Minute
	// verifyPause is waited after each batch of entries, so that a verification leaves
	// most of a busy database's time to requests.
	verifyPause = 50 * time.Millisecond
)

// verifier verifies applications on a schedule, one at a time on a node, and each on
// one node at a time.
type verifier struct {
	store    *store.Store
	new, all time.Duration // between two verifications of each kind; zero for never
	limit    time.Duration // of one verification
	pause    time.Duration
	now      func() time.Time
	meters   verifyMetrics
	log      *slog.Logger
}

// keep verifies what is due until the context ends. The first look is one tick after
// the start: a server that comes and goes does not verify each time.
func (v verifier) keep(ctx context.Context) error {
	ticks := time.NewTicker(verifyTick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := v.run(ctx); err != nil && ctx.Err() == nil {
			v.log.Error("verification failed, will retry", "cause", err)
		}
	}
}

// run verifies every application for which it is due.
func (v verifier) run(ctx context.Context) error {
	scopes, err := v.store.Directory().Scopes(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, scope := range scopes {
		for _, due := range []struct {
			kind  store.VerifyKind
			every time.Duration
		}{{store.VerifyAll, v.all}, {store.VerifyNew, v.new}} {
			if due.every <= 0 {
				continue
			}
			claimedAt := v.now().UnixMilli()
			claimed, err := v.store.App(scope).ClaimVerification(ctx, due.kind, claimedAt, due.every, v.limit)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if claimed {
				failed = append(failed, v.verify(ctx, scope, due.kind, claimedAt))
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// verify runs one verification and keeps its result, however it ends.
func (v verifier) verify(ctx context.Context, scope tenancy.Scope, kind store.VerifyKind, claimedAt int64) error {
	app := v.store.App(scope)
	limited, cancel := context.WithTimeout(ctx, v.limit)
	defer cancel()
	started := time.Now()
	found, err := app.VerifyWith(limited, store.VerifyOptions{New: kind == store.VerifyNew, Record: true, Now: claimedAt, Pause: v.pause})
	took := time.Since(started)
	run := store.VerifyRun{
		Kind: kind, StartedAt: claimedAt, FinishedAt: v.now().UnixMilli(),
		Wallets: found.Wallets, Entries: found.Entries, Differences: int64(len(found.Differences)),
	}
	for _, d := range found.Differences {
		run.Lines = append(run.Lines, d.String())
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		run.Failure = "the server was stopped"
	case limited.Err() != nil:
		run.Failure = "it took longer than " + v.limit.String()
	default:
		run.Failure = "the database did not answer as expected; the server's log has the cause"
	}
	v.meters.observe(run, took)
	at := []any{"application", scope.AppID.Format(ids.Application), "kind", string(kind)}
	for _, d := range found.Differences {
		d.Identity = "" // it is for the page; logs hold none
		v.log.Error("verification found a difference", append(at, "difference", d.String())...)
	}
	v.log.Info("verification finished", append(at, "wallets", run.Wallets, "entries", run.Entries, "differences", run.Differences,
		"seconds", took.Seconds(), "failure", run.Failure)...)
	// Also when the server stops: the result is worth a moment.
	keep, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if failure := app.FinishVerification(keep, run); failure != nil {
		return errors.Join(err, failure)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// verifyMetrics is what verifications tell Prometheus.
type verifyMetrics struct {
	runs        *prometheus.CounterVec
	differences prometheus.Counter
	entries     prometheus.Counter
	seconds     prometheus.Counter
}

func newVerifyMetrics(registry *prometheus.Registry) verifyMetrics {
	m := verifyMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "purser_verify_runs_total", Help: "Verifications of an application, by kind and result: sound, differs or failed.",
		}, []string{"kind", "result"}),
		differences: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "purser_verify_differences_total", Help: "Differences that verifications have found. Each step is worth an alarm.",
		}),
		entries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "purser_verify_entries_total", Help: "Entries that verifications have read.",
		}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "purser_verify_seconds_total", Help: "How long verifications took, pauses included.",
		}),
	}
	registry.MustRegister(m.runs, m.differences, m.entries, m.seconds)
	return m
}

func (m verifyMetrics) observe(r store.VerifyRun, took time.Duration) {
	result := "sound"
	switch {
	case r.Differences > 0:
		result = "differs"
	case r.Failure != "":
		result = "failed"
	}
	m.runs.WithLabelValues(string(r.Kind), result).Inc()
	m.differences.Add(float64(r.Differences))
	m.entries.Add(float64(r.Entries))
	m.seconds.Add(took.Seconds())
}
