package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"purser/ids"
	"purser/store"
	"purser/store/verify"
	"purser/tenancy"
)

const (
	// verifyTick is how often a node checks for due verifications.
	verifyTick = time.Minute
	// verifyAtOnce is how many verifications run at once on a node. Each uses a
	// connection briefly and pauses most of the time.
	verifyAtOnce = 4
	// verifyPause follows each batch of entries, so that a verification leaves most of a
	// busy database's time to requests.
	verifyPause = 50 * time.Millisecond
)

// verifier runs verifications on a schedule: a few at a time on a node, and each on one
// node at a time.
type verifier struct {
	store    *store.Store
	new, all time.Duration // intervals of each kind; zero for never
	limit    time.Duration // of one verification
	pause    time.Duration
	now      func() time.Time
	slots    map[verify.Kind][]chan struct{} // that a verification takes, see verifySlots
	meters   verifyMetrics
	log      *slog.Logger
}

// verifySlots are slots for this many verifications on a node. Full ones leave one to those
// of new entries, which are short and due often.
func verifySlots(atOnce int) map[verify.Kind][]chan struct{} {
	every, full := make(chan struct{}, atOnce), make(chan struct{}, atOnce-1)
	return map[verify.Kind][]chan struct{}{verify.NewEntries: {every}, verify.AllEntries: {full, every}}
}

// runPeriodically starts due verifications until the context ends. Each kind waits for
// slots on its own. The first check is one tick after the start, so that short-lived
// servers do not verify each time.
func (v verifier) runPeriodically(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, kind := range []verify.Kind{verify.NewEntries, verify.AllEntries} {
		running.Go(func() {
			ticks := time.NewTicker(verifyTick)
			defer ticks.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticks.C:
				}
				v.start(ctx, &running, kind)
			}
		})
	}
	return nil
}

// start starts every due verification of a kind. A large application takes one slot and
// does not delay the others.
func (v verifier) start(ctx context.Context, running *sync.WaitGroup, kind verify.Kind) {
	if v.every(kind) <= 0 {
		return
	}
	due, err := v.store.Installation().DueVerifications(ctx, kind, v.now().UnixMilli(), v.every(kind))
	if err != nil {
		v.failed(ctx, err)
		return
	}
	if kind == verify.AllEntries {
		v.begin(ctx, running, kind, v.verifyInstallation)
	}
	for _, scope := range due {
		v.begin(ctx, running, kind, func(ctx context.Context) error { return v.verifyDue(ctx, scope, kind) })
	}
}

// begin runs work as soon as a slot is free.
func (v verifier) begin(ctx context.Context, running *sync.WaitGroup, kind verify.Kind, work func(context.Context) error) {
	for _, slots := range v.slots[kind] {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	running.Go(func() {
		defer func() {
			for _, slots := range v.slots[kind] {
				<-slots
			}
		}()
		if err := work(ctx); err != nil {
			v.failed(ctx, err)
		}
	})
}

func (v verifier) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		v.log.Error("verification failed, will retry", "cause", err)
	}
}

// every is the interval of a kind.
func (v verifier) every(kind verify.Kind) time.Duration {
	if kind == verify.AllEntries {
		return v.all
	}
	return v.new
}

// verifyDue claims a verification and runs it, unless another node claimed it.
func (v verifier) verifyDue(ctx context.Context, scope tenancy.Scope, kind verify.Kind) error {
	claimedAt := v.now().UnixMilli()
	claimed, err := v.store.Verification(scope).Claim(ctx, kind, claimedAt, v.every(kind), v.limit)
	if err != nil || !claimed {
		return err
	}
	return v.verify(ctx, scope, kind, claimedAt)
}

// verifyInstallation verifies what belongs to no application, at the interval of full
// verifications.
func (v verifier) verifyInstallation(ctx context.Context) error {
	claimedAt := v.now().UnixMilli()
	claimed, err := v.store.Installation().ClaimInstallation(ctx, claimedAt, v.all, v.limit)
	if err != nil || !claimed {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, v.limit)
	defer cancel()
	started := time.Now()
	found, err := verifyInstallation(limited, v.store)
	run := verify.Run{Kind: verify.WholeInstallation, Differences: int64(len(found.differences))}
	if err != nil {
		run.Failure = err.Error()
		if limited.Err() == nil || ctx.Err() != nil {
			run.RetryAt = v.retryAt()
		}
	}
	v.meters.observe(run, time.Since(started))
	for _, difference := range found.differences {
		v.log.Error("verification found a difference", "kind", string(run.Kind), "difference", difference)
	}
	v.log.Info("verification finished", "kind", string(run.Kind), "organizations", len(found.ends), "differences", run.Differences,
		"strays_checked", found.straysChecked, "seconds", time.Since(started).Seconds(), "failure", run.Failure)
	keep, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	return errors.Join(err, v.store.Installation().FinishInstallation(keep, claimedAt, run.RetryAt))
}

// retryAt is when an interrupted verification is retried: before its interval is over,
// but not at once.
func (v verifier) retryAt() int64 { return v.now().Add(10 * time.Minute).UnixMilli() }

// verify runs one verification and stores its result, even of a failed one.
func (v verifier) verify(ctx context.Context, scope tenancy.Scope, kind verify.Kind, claimedAt int64) error {
	app := v.store.Verification(scope)
	limited, cancel := context.WithTimeout(ctx, v.limit)
	defer cancel()
	started := time.Now()
	found, err := app.Verify(limited, verify.Options{New: kind == verify.NewEntries, Record: true, Now: claimedAt, Pause: v.pause})
	took := time.Since(started)
	run := verify.Run{
		Kind: kind, StartedAt: claimedAt, FinishedAt: v.now().UnixMilli(),
		Wallets: found.Wallets, Entries: found.Entries, Differences: int64(len(found.Differences)),
	}
	switch {
	case err == nil && len(found.Unfinished) > 0:
		run.Failure = "not finished, because the database took too long: " + strings.Join(found.Unfinished, "; ")
	case err == nil:
	case ctx.Err() != nil:
		run.Failure, run.RetryAt = "the server was stopped", v.retryAt()
	case limited.Err() != nil:
		run.Failure = "it took longer than " + v.limit.String()
	default:
		run.Failure, run.RetryAt = "the database did not answer as expected; the server's log has the cause", v.retryAt()
	}
	v.meters.observe(run, took)
	at := []any{"application", scope.AppID.Format(ids.Application), "kind", string(kind)}
	for _, d := range found.Differences {
		d.Identity = "" // identities are not logged
		v.log.Error("verification found a difference", append(at, "difference", d.String())...)
	}
	v.log.Info("verification finished", append(at, "wallets", run.Wallets, "entries", run.Entries, "differences", run.Differences,
		"seconds", took.Seconds(), "failure", run.Failure)...)
	// Store the result even while the server stops.
	keep, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if failure := app.Finish(keep, run, found.Differences); failure != nil {
		return errors.Join(err, failure)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// verifyMetrics are the Prometheus metrics of verifications.
type verifyMetrics struct {
	runs        *prometheus.CounterVec
	differences prometheus.Counter
	entries     prometheus.Counter
	seconds     prometheus.Counter
}

func newVerifyMetrics(registry *prometheus.Registry) verifyMetrics {
	m := verifyMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "purser_verify_runs_total", Help: "Verification runs by kind and result: sound, differs or failed.",
		}, []string{"kind", "result"}),
		differences: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "purser_verify_differences_total", Help: "Differences found by verification. Alert on any increase.",
		}),
		entries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "purser_verify_entries_total", Help: "Entries read by verification.",
		}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "purser_verify_seconds_total", Help: "Time spent in verification, including pauses.",
		}),
	}
	for _, kind := range []verify.Kind{verify.NewEntries, verify.AllEntries, verify.WholeInstallation} {
		for _, result := range []string{"sound", "differs", "failed"} {
			m.runs.WithLabelValues(string(kind), result) // from 0 on, so that the first increase is seen
		}
	}
	registry.MustRegister(m.runs, m.differences, m.entries, m.seconds)
	return m
}

func (m verifyMetrics) observe(r verify.Run, took time.Duration) {
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
