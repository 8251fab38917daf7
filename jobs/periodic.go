package jobs

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"purser/ids"
	"purser/tenancy"
)

const (
	// auditInterval is the time between two checks of every application's queue.
	auditInterval = 10 * time.Minute
	// taskTimeout bounds one run of a periodic task, unless it sets another.
	taskTimeout = time.Minute
	// maxTaskPoll is the longest time between two attempts of a node to claim a task:
	// so long a task waits after the node that ran it has died.
	maxTaskPoll = 30 * time.Second
)

// Task is work of the installation that repeats: on one node at a time, however many
// there are.
type Task struct {
	Name     string // stored
	Interval time.Duration
	Timeout  time.Duration // of one run; a minute when zero
	Run      func(context.Context) error
}

// Every registers a periodic task. Its first run is at the first start of a node that
// knows it.
func (q *Queue) Every(task Task) {
	task.Timeout = cmp.Or(task.Timeout, taskTimeout)
	q.tasks = append(q.tasks, task)
}

// runPeriodically runs a task each time this node can claim it.
func (q *Queue) runPeriodically(ctx context.Context, task Task) error {
	for {
		if err := q.tryTask(ctx, task); err != nil && ctx.Err() == nil {
			q.options.Log.Warn("periodic task not run", "task", task.Name, "cause", err)
		}
		if err := pause(ctx, min(task.Interval/2, maxTaskPoll)); err != nil {
			return err
		}
	}
}

// tryTask runs a task if it is due and no other node runs it. The lease outlasts the
// run. A failed task is retried before its interval is over.
func (q *Queue) tryTask(ctx context.Context, task Task) error {
	queues := q.options.Store.Queues()
	claim, claimed, err := queues.ClaimTask(ctx, task.Name, task.Timeout+cleanupTimeout)
	if err != nil || !claimed {
		return err
	}
	err = q.runTask(ctx, task)
	next, failure := task.Interval, ""
	if err != nil {
		next, failure = min(RetryDelay(claim.Tries), task.Interval), err.Error()
	}
	if err != nil && ctx.Err() == nil {
		q.options.Log.Warn("periodic task failed, will retry", "task", task.Name, "tries", claim.Tries+1, "cause", err)
	}
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return queues.FinishTask(storing, claim, next, failure)
}

func (q *Queue) runTask(ctx context.Context, task Task) (err error) {
	ctx, cancel := context.WithTimeout(ctx, task.Timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			q.options.Log.Error("periodic task panicked", "task", task.Name, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("jobs: panic: %v", cause)
		}
	}()
	return task.Run(ctx)
}

// audit drains every application with overdue jobs, without trusting the times that
// sweeps go by. One that fails does not keep the others waiting.
func (q *Queue) audit(ctx context.Context) error {
	var overdue []tenancy.Scope
	err := q.options.Store.Directory().Each(ctx, "audit", func(ctx context.Context, scope tenancy.Scope) error {
		found, err := q.options.Store.Queue(scope).HasJobsDue(ctx, q.realNow()-auditSlack.Milliseconds())
		if found {
			overdue = append(overdue, scope)
		}
		return err
	})
	if len(overdue) > 0 {
		q.options.Log.Info("applications with overdue jobs found", "number", len(overdue), "first", overdue[0].AppID.Format(ids.Application))
	}
	q.wakeAll(overdue)
	return err
}

// auditSlack is how long a job may be due before an audit finds it: sweeps come first.
const auditSlack = 6 * sweepInterval
