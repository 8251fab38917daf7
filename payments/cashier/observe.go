package cashier

import (
	"context"
	"time"

	"purser/store"
	"purser/tenancy"
)

// Results of a job.
const (
	JobDone    = "done"
	JobRetried = "retried" // it failed and is retried later
	JobStopped = "stopped" // the provider refused it for good
)

// JobRun describes a job that has run.
type JobRun struct {
	Kind   store.JobKind
	Result string
	Took   time.Duration
	// Lag is how long the job was overdue when it started; negative for unknown: for a job
	// that was enqueued without a time, and for applications whose sandbox clock was moved,
	// because a jump makes jobs overdue by weeks.
	Lag time.Duration
}

// WebhookReceipt describes a received event.
type WebhookReceipt struct {
	Outcome string        // "queued" or "ignored"
	Lag     time.Duration // since the provider created the event; negative for unknown, as above
}

// lagSince is the time since a moment on the application's clock; negative for unknown.
func (c *Cashier) lagSince(ctx context.Context, scope tenancy.Scope, moment int64) time.Duration {
	now, err := c.Now(ctx, scope)
	// The offset is exact to the time between two readings of one clock.
	if offset := now - c.realNow(); err != nil || moment <= 0 || offset > 1000 || offset < -1000 {
		return -1
	}
	return time.Duration(max(0, now-moment)) * time.Millisecond
}
