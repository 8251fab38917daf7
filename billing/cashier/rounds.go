package cashier

import (
	"context"
	"slices"
	"time"

	"purser/billing/stripe"
	"purser/store"
)

const (
	// eventsTime is between two readings of the provider's list of events, and
	// overlapTime how far each goes back behind the one before: events are listed
	// some seconds after they happen.
	eventsTime  = int64(5 * time.Minute / time.Millisecond)
	overlapTime = int64(10 * time.Minute / time.Millisecond)
	// sweepTime is between two comparisons of everything, and sweepBack how far back
	// those go for what is over: longer than events are kept.
	sweepTime = int64(24 * time.Hour / time.Millisecond)
	sweepBack = int64(35 * 24 * time.Hour / time.Millisecond)
	// enqueueSize is how many objects are put on the queue in one transaction.
	enqueueSize = 500
	// roundTime is how long one of these may read lists: some ten thousand objects.
	roundTime = 50 * time.Second
)

// rounds is the work that comes back by itself as long as there is an account.
func rounds(now int64) []store.Work {
	return []store.Work{
		{Kind: store.WorkEvents, DueAt: now + eventsTime},
		{Kind: store.WorkSweep, DueAt: now + sweepTime},
	}
}

// readEvents finds the events whose webhook never came.
func (c *Cashier) readEvents(ctx context.Context, with account) (next int64, err error) {
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return 0, err
	}
	var events []stripe.Event
	after := with.EventsAfter
	err = with.provider.Events(ctx, with.EventsAfter-overlapTime, eventTypes, func(event stripe.Event) error {
		after = max(after, event.CreatedAt)
		if event.Live == with.Live {
			events = append(events, event)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for portion := range slices.Chunk(events, enqueueSize) {
		if err := c.enqueueUnseen(ctx, with, portion, now); err != nil {
			return 0, err
		}
	}
	return now + eventsTime, c.options.Store.App(with.scope).SetEventsAfter(ctx, with.ID, after)
}

// enqueueUnseen has those looked at that no webhook has brought.
func (c *Cashier) enqueueUnseen(ctx context.Context, with account, events []stripe.Event, now int64) error {
	app := c.options.Store.App(with.scope)
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.ID
	}
	unseen, err := app.UnseenEvents(ctx, with.ID, names)
	if err != nil {
		return err
	}
	var work []store.Work
	for _, event := range events {
		if slices.Contains(unseen, event.ID) {
			work = append(work, workFor(event, now)...)
		}
	}
	return app.Enqueue(ctx, work...)
}

// sweep has everything compared. Events are kept for a month, and some are never
// made, so this lists the objects themselves.
func (c *Cashier) sweep(ctx context.Context, with account) (next int64, err error) {
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return 0, err
	}
	app := c.options.Store.App(with.scope)
	var work []store.Work
	err = with.provider.SubscriptionIDs(ctx, now-sweepBack, func(id string) error {
		work = append(work, store.Work{Kind: store.WorkSubscription, Object: id, DueAt: now})
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = with.provider.ReversedCharges(ctx, now-sweepBack, func(id string) error {
		work = append(work, store.Work{Kind: store.WorkCharge, Object: id, DueAt: now})
		return nil
	})
	if err != nil {
		return 0, err
	}
	for portion := range slices.Chunk(work, enqueueSize) {
		if err := app.Enqueue(ctx, portion...); err != nil {
			return 0, err
		}
	}
	return now + sweepTime, app.EnqueuePlans(ctx, now)
}
