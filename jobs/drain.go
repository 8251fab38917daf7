package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/store/queue"
	"purser/tenancy"
)

const (
	// batchSize is how many due jobs a node claims at once, and maxWorkers how many of
	// them run concurrently.
	batchSize  = 25
	maxWorkers = 4
	// maxBatches bounds one drain, so that a long queue does not delay other
	// applications. maxDrains bounds DrainAll: a queue that is not empty by then never
	// is.
	maxBatches = 8
	maxDrains  = 100
	// pollInterval is the time between two claims while other nodes hold all due jobs.
	pollInterval = 50 * time.Millisecond
	// cleanupTimeout bounds writes that happen after the end of a context.
	cleanupTimeout = 5 * time.Second
)

// drainResult is what a drain leaves in the queue.
type drainResult int

const (
	queueEmpty drainResult = iota
	queueHasMore
	queueHeldElsewhere // other claims hold all due jobs
)

// errStopped is returned by a drain that left due jobs because the server stops.
var errStopped = errors.New("jobs: the server is stopping")

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// DrainAll runs all due jobs of the application's main lane, by its clock, and those
// that they enqueue. It waits for jobs that other nodes run.
func (q *Queue) DrainAll(ctx context.Context, app ids.ID) error {
	return q.DrainLane(ctx, app, MainLane)
}

// DrainLane is DrainAll for one lane.
func (q *Queue) DrainLane(ctx context.Context, app ids.ID, lane Lane) error {
	scope, err := q.options.Store.Directory().ScopeOf(ctx, app)
	if err != nil {
		return err
	}
	for drains := 0; drains < maxDrains; {
		result, err := q.drain(ctx, ctx.Done(), target{scope, lane})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || result == queueEmpty {
			return err
		}
		if result == queueHasMore {
			drains++
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
	return errors.New("jobs: the application's queue does not drain")
}

// drain runs up to maxBatches batches of due jobs. It starts no job after stop is
// closed.
func (q *Queue) drain(ctx context.Context, stop <-chan struct{}, t target) (drainResult, error) {
	q.prepare(ctx, t)
	for claimed := range maxBatches {
		if isClosed(stop) {
			return queueHasMore, errStopped
		}
		if claimed > 0 { // most queues are empty then, and to ask costs less than a claim
			due, err := q.options.Store.Queue(t.scope).HasJobsDue(ctx, q.realNow())
			if err != nil || !due {
				return queueEmpty, err
			}
		}
		batch, err := q.claim(ctx, t, batchSize)
		if err != nil {
			return queueEmpty, err
		}
		if len(batch.Jobs) == 0 && batch.HeldElsewhere {
			return queueHeldElsewhere, nil
		}
		if len(batch.Jobs) == 0 {
			return queueEmpty, nil
		}
		if err := q.runBatch(ctx, stop, t.scope, batch); err != nil {
			return queueHasMore, err
		}
	}
	return queueHasMore, nil
}

// prepare runs what comes before the jobs of the lane.
func (q *Queue) prepare(ctx context.Context, t target) {
	before := q.before[t.lane]
	if before == nil {
		return
	}
	if err := before(ctx, t.scope); err != nil && ctx.Err() == nil {
		q.options.Log.Warn("preparation of jobs failed", "app", t.scope.AppID.Format(ids.Application), "lane", string(t.lane), "cause", err)
	}
}

func (q *Queue) claim(ctx context.Context, t target, most int) (queue.JobBatch, error) {
	if len(q.lanes[t.lane]) == 0 {
		return queue.JobBatch{}, nil
	}
	if err := q.options.Store.Clock().Trust(ctx); err != nil {
		return queue.JobBatch{}, err
	}
	return q.options.Store.Queue(t.scope).ClaimJobs(ctx, queue.ClaimInput{
		Kinds: q.lanes[t.lane], Now: q.realNow(), Most: most, Lease: q.options.Lease,
	})
}

// runBatch runs claimed jobs and renews their leases meanwhile. Jobs that did not end
// are released: the server stops, or the database fails.
func (q *Queue) runBatch(ctx context.Context, stop <-chan struct{}, scope tenancy.Scope, batch queue.JobBatch) error {
	var ended atomic.Int64
	defer func() {
		if ended.Load() < int64(len(batch.Jobs)) {
			q.release(ctx, scope, batch)
		}
	}()
	renewed, stopRenewing := q.renew(ctx, scope, batch)
	defer stopRenewing()
	group, running := errgroup.WithContext(renewed)
	group.SetLimit(maxWorkers)
	for _, job := range batch.Jobs {
		group.Go(func() error {
			if isClosed(stop) {
				return nil // released below
			}
			err := q.runJob(running, Job{Job: job, Scope: scope, ClockOffset: batch.ClockOffset})
			if err == nil {
				ended.Add(1)
			}
			return err
		})
	}
	return group.Wait()
}

// renew keeps the leases of a batch until stop is called. When it could not renew them
// before they ran out, the returned context ends: other nodes may run the jobs.
func (q *Queue) renew(ctx context.Context, scope tenancy.Scope, batch queue.JobBatch) (renewed context.Context, stop func()) {
	renewed, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(q.options.Lease / 3)
		defer ticker.Stop()
		for held := time.Now(); ; {
			select {
			case <-renewed.Done():
				return
			case <-ticker.C:
			}
			asked := time.Now()
			err := q.options.Store.Queue(scope).RenewJobs(renewed, batch, q.options.Lease)
			switch {
			case renewed.Err() != nil:
				return
			case err == nil:
				held = asked
			case time.Since(held) >= q.options.Lease:
				cancel(queue.ErrFenced)
				return
			default: // the next tick tries again, while the lease lasts
				q.options.Log.Warn("job lease renewal failed", "app", scope.AppID.Format(ids.Application), "cause", err)
			}
		}
	}()
	return renewed, func() { cancel(nil) }
}

// release frees the jobs that did not end, so that another node runs them at once.
func (q *Queue) release(ctx context.Context, scope tenancy.Scope, batch queue.JobBatch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := q.options.Store.Queue(scope).ReleaseJobs(ctx, batch); err != nil {
		// The leases expire by themselves.
		q.options.Log.Warn("job release failed", "app", scope.AppID.Format(ids.Application), "cause", err)
	}
}

// runJob runs one job and reschedules it when it fails. Its own error is a database
// error or the end of ctx.
func (q *Queue) runJob(ctx context.Context, job Job) error {
	run, begun := Run{Kind: job.Kind, Result: Done, Lag: q.lag(job)}, time.Now()
	next, err := q.call(ctx, job)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	run.Took = time.Since(begun)
	defer func() { q.options.Observe(run) }()
	now := q.realNow() + job.ClockOffset
	app := q.options.Store.Queue(job.Scope)
	if err == nil {
		defer q.wakeIn(job, next-now)
		return app.FinishJob(ctx, job.Job, next, now)
	}
	failure := failureOf(err, job.Tries)
	run.Result = Retried
	level, message, until := slog.LevelWarn, "job failed, will retry", now+failure.RetryAfter.Milliseconds()
	switch {
	case failure.Stop:
		run.Result = Stopped
		level, message, until = slog.LevelError, "job stopped: it fails for good", queue.StoppedJob
	case job.Tries+1 >= queue.ManyTries:
		level, message = slog.LevelError, "job keeps failing, will retry"
	}
	q.options.Log.Log(ctx, level, message, "kind", string(job.Kind), "object", job.Object, "tries", job.Tries+1,
		"app", job.Scope.AppID.Format(ids.Application), "cause", err)
	defer q.wakeIn(job, until-now)
	return app.RetryJob(ctx, job.Job, failure.Message, until)
}

// wakeIn wakes the job's lane when the job is due again, in some milliseconds. A sweep
// would find it some seconds later, which matters only if that is soon.
func (q *Queue) wakeIn(job Job, milliseconds int64) {
	if milliseconds > 0 && milliseconds <= maxWakeAhead.Milliseconds() {
		time.AfterFunc(time.Duration(milliseconds)*time.Millisecond, func() { q.Wake(job.Scope, q.handlers[job.Kind].Lane) })
	}
}

// call runs the handler. A panic is a failure of the job.
func (q *Queue) call(ctx context.Context, job Job) (next int64, err error) {
	handler := q.handlers[job.Kind]
	ctx, cancel := context.WithTimeout(ctx, handler.Timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			q.options.Log.Error("job panicked", "kind", string(job.Kind), "object", job.Object, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("jobs: panic: %v", cause)
		}
	}()
	return handler.Run(ctx, job)
}
