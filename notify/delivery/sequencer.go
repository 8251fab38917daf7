package delivery

import (
	"context"
	"slices"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/notify"
	"purser/store/queue"
	"purser/tenancy"
)

const (
	// Lane is the lane of notifications.
	Lane jobs.Lane = "notifications"

	// sweepInterval is how long a notification of a node that died waits for its number.
	// The pass costs two index reads for each application.
	sweepInterval = time.Minute
	// DefaultKeep is how long notifications are kept.
	DefaultKeep = 90 * 24 * time.Hour
	// pruneInterval is the time between two passes of the retention, and pruneTimeout
	// bounds one.
	pruneInterval = time.Hour
	pruneTimeout  = 10 * time.Minute
	// keysInterval is the time between two searches for keys that expire soon.
	keysInterval = time.Hour
	// maxPasses bounds how much of one application's backlog is numbered at once.
	maxPasses = 20
)

// each runs work for every application.
func (d *Dispatcher) each(ctx context.Context, work func(context.Context, tenancy.Scope) error) error {
	return d.options.Store.Directory().Each(ctx, "delivery", work)
}

// prepareAll numbers what nodes that died have left, and finds due deliveries without a
// job. Jobs that fail run again, too: what their endpoints lacked may be there by now.
func (d *Dispatcher) prepareAll(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, scope tenancy.Scope) error { return d.enqueueDue(ctx, scope, true) })
}

// announceKeys announces the API keys that expire soon.
func (d *Dispatcher) announceKeys(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, scope tenancy.Scope) error {
		_, err := d.options.Store.App(scope).AnnounceExpiringKeys(ctx, d.options.Now().UnixMilli())
		return err
	})
}

// prepare enqueues what is due before each pass of the lane. A job that fails, as for a
// secret that can't be read, waits for the queue or for prepareAll.
func (d *Dispatcher) prepare(ctx context.Context, scope tenancy.Scope) error {
	return d.enqueueDue(ctx, scope, false)
}

// enqueueDue numbers the notifications that an application has committed, and enqueues a
// job for each endpoint that has something to send. The deliveries are the durable part:
// a job that is lost is enqueued again.
func (d *Dispatcher) enqueueDue(ctx context.Context, scope tenancy.Scope, alsoFailing bool) error {
	app := d.options.Store.Notifications(scope)
	now, err := d.clock(ctx, scope)
	if err != nil {
		return err
	}
	for range maxPasses {
		numbered, err := app.Number(ctx, now)
		if err != nil {
			return err
		}
		if numbered > 0 {
			d.hub.wake(scope.AppID)
		}
		if numbered < notify.MaxBatch {
			break
		}
	}
	due, err := app.DueEndpoints(ctx, now)
	if err != nil || len(due) == 0 {
		return err
	}
	failing, err := d.options.Store.Queue(scope).FailingObjects(ctx, queue.JobDelivery)
	if err != nil {
		return err
	}
	var list []queue.Job
	for _, id := range due {
		if object := id.Format(ids.WebhookEndpoint); alsoFailing || !slices.Contains(failing, object) {
			list = append(list, queue.Job{Kind: queue.JobDelivery, Object: object, DueAt: now})
		}
	}
	return d.options.Store.Queue(scope).Enqueue(ctx, list...)
}

// pruneAll deletes what is older than the retention.
func (d *Dispatcher) pruneAll(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, scope tenancy.Scope) error {
		now, err := d.clock(ctx, scope)
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = d.options.Store.Notifications(scope).Prune(ctx, now-d.options.Keep.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
}

// clock is the application's time.
func (d *Dispatcher) clock(ctx context.Context, scope tenancy.Scope) (int64, error) {
	offset, err := d.options.Store.App(scope).ClockOffset(ctx)
	return d.options.Now().UnixMilli() + offset, err
}
