package delivery

import (
	"context"
	"time"

	"purser/jobs"
	"purser/notify"
	"purser/store"
	"purser/tenancy"
)

const (
	// Lane is the lane of notifications.
	Lane jobs.Lane = "notifications"

	// sweepInterval is how long a notification of a node that died waits for its number.
	// The pass costs one index read for each application.
	sweepInterval = time.Minute
	// maxPasses bounds how much of one application's backlog is numbered at once.
	maxPasses = 20
)

// Register has the queue number notifications: those of this node after their commit,
// all others at an interval.
func Register(queue *jobs.Queue, db *store.Store) {
	number := func(ctx context.Context, scope tenancy.Scope) error { return numberAll(ctx, db, scope) }
	queue.Before(Lane, number)
	db.OnNotifications(func(scope tenancy.Scope) { queue.Notify(scope, Lane) })
	queue.Every(jobs.Task{Name: "number notifications", Interval: sweepInterval, Run: func(ctx context.Context) error {
		scopes, err := db.Directory().Scopes(ctx)
		if err != nil {
			return err
		}
		for _, scope := range scopes {
			if err := number(ctx, scope); err != nil {
				return err
			}
		}
		return nil
	}})
}

// numberAll numbers the notifications that an application has committed.
func numberAll(ctx context.Context, db *store.Store, scope tenancy.Scope) error {
	for range maxPasses {
		numbered, err := db.Notifications(scope).Number(ctx)
		if err != nil || numbered < notify.MaxBatch {
			return err
		}
	}
	return nil
}
