package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/queue"
	"purser/tenancy"
)

const (
	// usageInterval is the time between two updates of an application's usage
	// statistics while it has usage. An update that takes long is followed by a pause of
	// usagePause times as long, so that it never takes more than a few percent of the
	// database, but of usageSweep at most: then it is requested anyway.
	usageInterval = time.Minute
	usagePause    = 20
	// liabilityInterval and liabilityPause are the same for adding up every balance: one
	// statement, which keeps Postgres from pruning old versions of busy wallets meanwhile.
	liabilityInterval = 10 * time.Minute
	liabilityPause    = 100
	// usageRunTimeout bounds one update, which stops after half of it. What it has added
	// stays added, and the next update adds the rest.
	usageRunTimeout = 5 * time.Minute
	// usageSweep is the time between two requests for all applications: of usage that a
	// node recorded before it died, only this knows.
	usageSweep = 10 * time.Minute
	// usageLane separates these jobs from payments.
	usageLane jobs.Lane = "usage"
)

// usageStats keeps the usage statistics of applications up to date.
type usageStats struct {
	store    *store.Store
	jobs     *jobs.Queue
	observe  func(lag time.Duration)
	log      *slog.Logger
	realTime func() time.Time

	mu        sync.Mutex
	requested map[ids.ID]time.Time // when each application may be requested again
	liability map[ids.ID]time.Time // when its balances may be added up again on this node
}

// newUsageStats registers the job that adds up usage. It is requested for applications
// with usage on this node, and repeats until everything is added.
func newUsageStats(db *store.Store, q *jobs.Queue, meters *metrics, log *slog.Logger) *usageStats {
	u := &usageStats{
		store: db, jobs: q, log: log, realTime: db.Clock().Time, requested: map[ids.ID]time.Time{}, liability: map[ids.ID]time.Time{},
		observe: func(lag time.Duration) { meters.usageLag.Observe(lag.Seconds()) },
	}
	q.Register(queue.JobUsage, jobs.Handler{Run: u.rollUp, Timeout: usageRunTimeout, Lane: usageLane})
	q.Every(jobs.Task{Name: "add up usage", Interval: usageSweep, Timeout: usageRunTimeout, Run: u.requestAll})
	db.Stats().OnUsed(u.requestOnce)
	return u
}

// rollUp adds the settled events of an application to its sums, and at times records what
// its customers hold.
func (u *usageStats) rollUp(ctx context.Context, job jobs.Job) (next int64, err error) {
	begun := time.Now()
	result, err := u.store.Rollups(job.Scope).RollUp(ctx, rollup.Margin)
	took := time.Since(begun)
	if err == nil {
		err = u.recordLiability(ctx, job.Scope)
	}
	if err != nil || !result.Waiting {
		return 0, err
	}
	now := u.realTime()
	u.observe(now.Sub(time.UnixMilli(result.Added)))
	pause := pauseOfUsage(took)
	u.mu.Lock()
	u.requested[job.Scope.AppID] = time.Now().Add(pause)
	u.mu.Unlock()
	return now.Add(pause).UnixMilli() + job.ClockOffset, nil
}

func pauseOfUsage(took time.Duration) time.Duration {
	return min(usageSweep, max(usageInterval, usagePause*took))
}

// recordLiability records what customers hold, unless that was tried recently: a failure
// must not hold up the sums of usage.
func (u *usageStats) recordLiability(ctx context.Context, scope tenancy.Scope) error {
	begun := u.realTime()
	u.mu.Lock()
	recent := begun.Before(u.liability[scope.AppID])
	u.mu.Unlock()
	if recent {
		return nil
	}
	err := u.store.Rollups(scope).RecordLiability(ctx)
	ended := u.realTime()
	u.mu.Lock()
	u.liability[scope.AppID] = ended.Add(max(liabilityInterval, liabilityPause*ended.Sub(begun)))
	u.mu.Unlock()
	return err
}

// requestOnce requests the job of an application with usage, unless it was requested
// recently: it repeats by itself.
func (u *usageStats) requestOnce(scope tenancy.Scope) {
	u.mu.Lock()
	recent := time.Now().Before(u.requested[scope.AppID])
	if !recent {
		u.requested[scope.AppID] = time.Now().Add(usageInterval)
	}
	u.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := u.request(ctx, scope); err != nil {
		u.log.Warn("usage statistics not requested, will retry", "app", scope.AppID.Format(ids.Application), "cause", err)
	}
}

func (u *usageStats) request(ctx context.Context, scope tenancy.Scope) error {
	if err := u.store.Queue(scope).Enqueue(ctx, queue.Job{Kind: queue.JobUsage}); err != nil {
		return err
	}
	u.jobs.Wake(scope, usageLane)
	return nil
}

// requestAll requests the job of every application.
func (u *usageStats) requestAll(ctx context.Context) error {
	return u.store.Directory().Each(ctx, "usage", u.request)
}
