package cashier

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// Tasks of the scheduler. Jobs that a notified node did not finish are found by these,
// on any node.
const (
	sweepJob = "sweep" // find the applications with due jobs
	drainJob = "drain" // process one application's due jobs
	auditJob = "audit" // like sweep, but reads every application's queue

	sweepEvery = 5 * time.Second
	auditEvery = 10 * time.Minute

	jobWorkers = 4
	// maxScopes is how many applications a sweep finds at most.
	maxScopes = 500
)

// Run processes the jobs of every application until the context ends. Any number of
// nodes may run it.
func (c *Cashier) Run(ctx context.Context) error {
	var jobs *store.Scheduler
	jobs, err := c.options.Store.OpenScheduler(store.SchedulerOptions{
		Do:      func(ctx context.Context, job store.Task) error { return c.runTask(ctx, jobs, job) },
		Every:   map[string]time.Duration{sweepJob: sweepEvery, auditJob: auditEvery},
		Workers: jobWorkers,
		Log:     c.options.Log,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return jobs.Run(ctx) })
	group.Go(func() error { return c.runNotified(ctx) })
	return group.Wait()
}

func (c *Cashier) runTask(ctx context.Context, jobs *store.Scheduler, job store.Task) error {
	switch job.Name {
	case drainJob:
		more, err := c.tryDrain(ctx, job.Scope)
		if more {
			c.Notify(job.Scope) // the next sweep finds it if this node stops
		}
		return err
	case sweepJob:
		found, err := c.options.Store.Directory().ScopesWithJobs(ctx, c.realNow(), maxScopes)
		if err != nil {
			return err
		}
		return jobs.Add(ctx, drains(found)...)
	case auditJob:
		return c.audit(ctx, jobs)
	}
	return nil
}

// audit enqueues drains from each application's own queue, without trusting
// work_hints.
func (c *Cashier) audit(ctx context.Context, jobs *store.Scheduler) error {
	scopes, err := c.options.Store.Directory().Scopes(ctx)
	if err != nil {
		return err
	}
	var overdue []tenancy.Scope
	for _, scope := range scopes {
		due, found, err := c.options.Store.App(scope).NextJobDue(ctx)
		if err != nil {
			return err
		}
		now, err := c.Now(ctx, scope)
		if err != nil {
			return err
		}
		if found && due <= now {
			overdue = append(overdue, scope)
		}
	}
	if len(overdue) > 0 {
		c.options.Log.Info("applications with overdue jobs found", "number", len(overdue), "first", overdue[0].AppID.Format(ids.Application))
	}
	return jobs.Add(ctx, drains(overdue)...)
}

func drains(scopes []tenancy.Scope) []store.Task {
	jobs := make([]store.Task, len(scopes))
	for i, scope := range scopes {
		jobs[i] = store.Task{Name: drainJob, Scope: scope}
	}
	return jobs
}
