package cashier

import (
	"context"
	"errors"
	"time"

	"purser/billing"
	"purser/billing/stripe"
	"purser/ids"
	"purser/store"
)

// syncOptions is how what is heard of a subscription is to be stored.
type syncOptions struct {
	scheduleRefresh bool               // the next look at it is put on the queue
	completes       *billing.Operation // the op that ends with it
	checkoutID      ids.ID             // the checkout that made it, where that is known
}

// syncSubscription asks the provider how a subscription stands, and applies the
// answer. It is the only way by which subscriptions change that the provider
// knows, whoever asks: a caller's request, a webhook, a round, a recovery.
func (c *Cashier) syncSubscription(ctx context.Context, with account, fence store.Fence, id string, h syncOptions) (billing.Subscription, error) {
	remote, err := with.provider.Subscription(ctx, id)
	if err != nil {
		return billing.Subscription{}, err
	}
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return billing.Subscription{}, err
	}
	if h.checkoutID.IsZero() {
		h.checkoutID = checkoutIDOf(remote)
	}
	app := c.options.Store.App(with.scope)
	stored := store.ProviderReport{Fence: fence, Connection: with.ID, Remote: remote.ProviderSubscription, Bought: h.checkoutID, Now: now, Close: h.completes}
	if h.scheduleRefresh {
		stored.Watch = nextRefresh
	}
	projection, err := app.ApplySubscription(ctx, stored)
	if err != nil {
		return billing.Subscription{}, err
	}
	c.logAlerts(with, projection.Alerts)
	if len(projection.Actions)+len(projection.Settled) > 0 {
		defer c.Notify(with.scope)
	}
	return projection.Subscription, nil
}

// checkoutIDOf is the checkout that a subscription says it was made by; zero for one
// that we did not sell.
func checkoutIDOf(remote stripe.Subscription) ids.ID {
	id, err := ids.Parse(ids.Checkout, remote.Metadata[metaCheckout])
	if err != nil {
		return ids.ID{}
	}
	return id
}

func (c *Cashier) logAlerts(with account, alerts []billing.Alert) {
	for _, alert := range alerts {
		c.options.Log.Warn("cashier: somebody should look at this", "alert", string(alert.Kind), "object", alert.ObjectID, "app", with.scope.AppID.Format(ids.Application))
	}
}

const (
	// renewalGrace is how long after the end of a period a renewal may be unheard of
	// before the provider is asked: it charges an hour after.
	renewalGrace = int64(90 * time.Minute / time.Millisecond)
	// refreshDelay is how long after something must have happened it is looked at, when
	// nobody told.
	refreshDelay = int64(time.Minute / time.Millisecond)
	// overdueInterval is between two looks at what is overdue.
	overdueInterval = int64(6 * time.Hour / time.Millisecond)
)

// nextRefresh is when to ask about a subscription though no webhook came.
func nextRefresh(s billing.Subscription) int64 {
	if s.Ended() || s.Local() {
		return 0
	}
	next := s.Period.End + renewalGrace
	if s.Pending != nil {
		next = min(next, s.Pending.ExpiresAt+refreshDelay)
	}
	return next
}

// delayOverdue keeps looks that are due again and again, such as at a renewal that
// fails for weeks, at a distance.
func delayOverdue(next, now int64) int64 {
	if next != 0 && next <= now {
		return now + overdueInterval
	}
	return next
}

// applySession stores how a checkout stands, and hears the subscription that it
// has made.
func (c *Cashier) applySession(ctx context.Context, with account, fence store.Fence, session stripe.Session) error {
	app := c.options.Store.App(with.scope)
	checkout, err := c.checkoutOf(ctx, with, session)
	if err != nil {
		return err
	}
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return err
	}
	if checkout.Kind == store.TopUpCheckout {
		_, err := app.ApplyTopUp(ctx, fence, checkout.ID, session.ProviderSession, now, nil)
		return err
	}
	if _, err := app.ApplyCheckout(ctx, fence, checkout.ID, session.ProviderSession, now, nil); err != nil {
		return err
	}
	if session.SubscriptionID == "" {
		return nil
	}
	_, err = c.syncSubscription(ctx, with, fence, session.SubscriptionID, syncOptions{scheduleRefresh: true, checkoutID: checkout.ID})
	return err
}

// checkoutOf finds what a session was opened for, also when the answer to the
// call that opened it was lost.
func (c *Cashier) checkoutOf(ctx context.Context, with account, session stripe.Session) (store.Checkout, error) {
	app := c.options.Store.App(with.scope)
	known, err := app.CheckoutBySession(ctx, session.ID)
	if !errors.Is(err, store.ErrUnknown) {
		return known, err
	}
	id, err := ids.Parse(ids.Checkout, session.Reference)
	if err != nil {
		return known, store.ErrUnknown
	}
	return app.CheckoutByID(ctx, id)
}
