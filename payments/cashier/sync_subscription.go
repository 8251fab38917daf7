package cashier

import (
	"context"
	"errors"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
)

// syncOptions controls how a provider report is stored.
type syncOptions struct {
	scheduleRefresh bool                      // enqueue the next refresh
	completes       *payments.OperationRecord // the operation that this completes
	checkoutID      ids.ID                    // the checkout that created it, if known
}

// syncSubscription reads a subscription from the provider and applies it. Requests,
// webhooks, periodic jobs and recovery all use it: subscriptions at the provider
// change here in no other way.
func (c *Cashier) syncSubscription(ctx context.Context, acct account, fence queue.Fence, id string, opts syncOptions) (billing.Subscription, error) {
	now := c.nowAt(fence.ClockOffset)
	remote, err := acct.provider.Subscription(ctx, id)
	if stripe.IsGone(err) {
		remote, err = c.deletedSubscription(ctx, acct, id, now, err)
	}
	if err != nil {
		return billing.Subscription{}, err
	}
	if opts.checkoutID.IsZero() {
		opts.checkoutID = checkoutIDOf(remote)
	}
	app := c.options.Store.Payments(acct.scope)
	report := payments.ProviderReport{Fence: fence, Connection: acct.latest.ID, Remote: remote.ProviderSubscription, CheckoutID: opts.checkoutID, Now: now, Completes: opts.completes}
	if opts.scheduleRefresh {
		report.NextRefresh = nextRefresh
	}
	projection, err := app.ApplySubscription(ctx, report)
	if err != nil {
		return billing.Subscription{}, err
	}
	c.logAlerts(acct, projection.Alerts)
	if len(projection.Actions)+len(projection.Settled) > 0 {
		defer c.Wake(acct.scope)
	}
	return projection.Subscription, nil
}

// deletedSubscription is the report about a stored subscription that the provider no
// longer has: it has ended. Only test data is deleted, and a read right after the
// creation may not find it yet; in any other case it returns the error of the read.
func (c *Cashier) deletedSubscription(ctx context.Context, acct account, id string, now int64, gone error) (remote stripe.Subscription, err error) {
	if acct.Live {
		return remote, gone
	}
	app := c.options.Store.Payments(acct.scope)
	identity, err := app.IdentityOfSubscription(ctx, id)
	if err != nil {
		return remote, errors.Join(ignoreNotFound(err), gone)
	}
	stored, err := c.currentSubscription(ctx, acct.scope, identity)
	if err != nil || stored == nil || stored.ProviderID != id || now-stored.CreatedAt < deletedGrace {
		return remote, errors.Join(err, gone)
	}
	remote.ID, remote.Status, remote.PriceID, remote.Period = id, billing.ProviderCanceled, stored.Terms.PriceID, stored.Period
	return remote, nil
}

// checkoutIDOf is the checkout that created a subscription, from its metadata; zero
// for one that was not sold here.
func checkoutIDOf(remote stripe.Subscription) ids.ID {
	id, err := ids.Parse(ids.Checkout, remote.Metadata[metaCheckout])
	if err != nil {
		return ids.ID{}
	}
	return id
}

func (c *Cashier) logAlerts(acct account, alerts []billing.Alert) {
	for _, alert := range alerts {
		c.options.Log.Warn("billing alert raised", "alert", string(alert.Kind), "object", alert.ObjectID, "app", acct.scope.AppID.Format(ids.Application))
	}
}

const (
	// renewalGrace is how long after the end of a period a subscription without a
	// reported renewal is refreshed: the provider charges an hour after the period's
	// end.
	renewalGrace = int64(90 * time.Minute / time.Millisecond)
	// refreshDelay is how long after an expected event an object is refreshed without
	// a webhook.
	refreshDelay = int64(time.Minute / time.Millisecond)
	// deletedGrace is how old a subscription or session is at least that counts as deleted.
	deletedGrace = int64(time.Hour / time.Millisecond)
	// overdueInterval is the time between two refreshes of an overdue object.
	overdueInterval = int64(6 * time.Hour / time.Millisecond)
)

// nextRefresh is when to read a subscription again without a webhook; zero for never.
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

// delayOverdue spaces refreshes that would be due at once again, such as during weeks
// of failed renewals.
func delayOverdue(next, now int64) int64 {
	if next != 0 && next <= now {
		return now + overdueInterval
	}
	return next
}

// session reads a checkout session. An open one that the provider no longer has has
// expired, by the rules of deletedSubscription.
func (c *Cashier) session(ctx context.Context, acct account, id string, now int64) (stripe.Session, error) {
	session, err := acct.provider.Session(ctx, id)
	if acct.Live || !stripe.IsGone(err) {
		return session, err
	}
	checkout, findErr := c.options.Store.Payments(acct.scope).CheckoutBySession(ctx, id)
	if findErr = ignoreNotFound(findErr); findErr != nil {
		return session, findErr
	}
	if !checkout.IsUnderWay() || now-checkout.CreatedAt < deletedGrace {
		return session, err
	}
	session.ID, session.Status, session.ExpiresAt = id, billing.SessionExpired, checkout.ExpiresAt
	return session, nil
}

// afterUnreadSession is when to read a session again that could not be read: one that is
// too new to count as deleted, once it is not.
func (c *Cashier) afterUnreadSession(ctx context.Context, acct account, id string, now int64, cause error) (next int64, err error) {
	if acct.Live || !stripe.IsGone(cause) {
		return 0, ignoreNotFound(cause)
	}
	checkout, err := c.options.Store.Payments(acct.scope).CheckoutBySession(ctx, id)
	if err != nil || !checkout.IsUnderWay() || now-checkout.CreatedAt >= deletedGrace {
		return 0, ignoreNotFound(err)
	}
	return checkout.CreatedAt + deletedGrace, nil
}

// applySession stores the state of a checkout session and syncs the subscription that
// it created.
func (c *Cashier) applySession(ctx context.Context, acct account, fence queue.Fence, session stripe.Session) error {
	app := c.options.Store.Payments(acct.scope)
	checkout, err := c.checkoutOf(ctx, acct, session)
	if err != nil {
		return err
	}
	now := c.nowAt(fence.ClockOffset)
	if checkout.Kind == payments.TopUpCheckout {
		_, err := app.ApplyTopUp(ctx, fence, checkout.ID, session.ProviderSession, now, nil)
		return err
	}
	if _, err := app.ApplyCheckout(ctx, fence, checkout.ID, session.ProviderSession, now, nil); err != nil {
		return err
	}
	if session.SubscriptionID == "" {
		return nil
	}
	_, err = c.syncSubscription(ctx, acct, fence, session.SubscriptionID, syncOptions{scheduleRefresh: true, checkoutID: checkout.ID})
	return err
}

// checkoutOf finds the checkout of a session, also when the response to the creating
// call was lost: the session carries our reference.
func (c *Cashier) checkoutOf(ctx context.Context, acct account, session stripe.Session) (payments.Checkout, error) {
	app := c.options.Store.Payments(acct.scope)
	known, err := app.CheckoutBySession(ctx, session.ID)
	if !errors.Is(err, payments.ErrUnknown) {
		return known, err
	}
	id, err := ids.Parse(ids.Checkout, session.Reference)
	if err != nil {
		return known, payments.ErrUnknown
	}
	return app.CheckoutByID(ctx, id)
}
