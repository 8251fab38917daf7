package cashier

import (
	"context"
	"errors"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
	"purser/tenancy"
)

// MaxWebhook is the largest webhook body that is read: Stripe's events have at most
// 256 KiB.
const MaxWebhook = 256 << 10

var (
	// ErrBadSignature is returned for a webhook that was not signed by the account, or
	// not within the tolerance.
	ErrBadSignature = stripe.ErrSignature
	// ErrNoSecret is returned for a connection without a webhook secret. Unverified
	// webhooks are refused.
	ErrNoSecret = errors.New("cashier: this connection has no webhook secret")
)

// eventTypes are the subscribed event types. "invoice.created" must never be among
// them: Stripe delays finalizing an invoice until that webhook is acknowledged.
var eventTypes = []string{
	"checkout.session.completed", "checkout.session.async_payment_succeeded", "checkout.session.async_payment_failed", "checkout.session.expired",
	"customer.subscription.created", "customer.subscription.updated", "customer.subscription.deleted", "customer.subscription.paused",
	"customer.subscription.resumed", "customer.subscription.pending_update_applied", "customer.subscription.pending_update_expired",
	"invoice.paid", "invoice.payment_failed", "invoice.payment_action_required", "invoice.voided", "invoice.marked_uncollectible",
	"invoice.finalization_failed",
	"charge.refunded", "charge.refund.updated", "refund.created", "refund.updated",
	"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed", "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated",
	"subscription_schedule.updated", "subscription_schedule.released", "subscription_schedule.aborted", "subscription_schedule.canceled",
	"subscription_schedule.completed",
	"customer.deleted",
}

// Outcomes of an event. These strings are stored.
const (
	outcomeQueued  = "queued"
	outcomeIgnored = "ignored"
)

// CheckConnection refuses a webhook for an unknown connection before its body is read.
func (c *Cashier) CheckConnection(ctx context.Context, connection string) error {
	id, err := ids.Parse(connectionPrefix, connection)
	if err != nil {
		return fault.New(fault.PathNotFound)
	}
	_, err = c.connectionScope(ctx, id)
	return err
}

// connectionScope is the application of a connection, which never changes.
func (c *Cashier) connectionScope(ctx context.Context, id ids.ID) (tenancy.Scope, error) {
	if scope, known := c.scopes.Get(id); known {
		return scope, nil
	}
	scope, err := c.options.Store.Directory().ConnectionScope(ctx, id)
	if err == nil {
		c.scopes.Add(id, scope)
	}
	return scope, err
}

// Webhook is a verified webhook that is not stored yet.
type Webhook struct {
	scope      tenancy.Scope
	connection payments.Connection
	event      stripe.Event
}

// VerifyWebhook checks the signature of a webhook. It only reads: anyone can send one.
func (c *Cashier) VerifyWebhook(ctx context.Context, connection, signature string, body []byte) (Webhook, error) {
	id, err := ids.Parse(connectionPrefix, connection)
	if err != nil {
		return Webhook{}, fault.New(fault.PathNotFound)
	}
	scope, err := c.connectionScope(ctx, id)
	if err != nil {
		return Webhook{}, err
	}
	conn, err := c.options.Store.PaymentAccounts(scope).ConnectionByID(ctx, id)
	if err != nil {
		return Webhook{}, err
	}
	secrets, err := c.webhookSecrets(ctx, scope, conn)
	if err != nil {
		return Webhook{}, err
	}
	if len(secrets) == 0 {
		return Webhook{}, ErrNoSecret
	}
	event, err := stripe.Verify(body, signature, secrets, c.options.Now())
	return Webhook{scope: scope, connection: conn, event: event}, err
}

// StoreWebhook stores an event and enqueues a job for its object before it is
// acknowledged. An event that Postgres can't store is acknowledged and dropped.
func (c *Cashier) StoreWebhook(ctx context.Context, w Webhook) error {
	if err := c.options.Store.Clock().Trust(ctx); err != nil {
		return err
	}
	conn, event := w.connection, w.event
	now := c.nowAt(conn.ClockOffset)
	kept := payments.WebhookEvent{
		ID: event.ID, Type: event.Type, Object: event.Object.ID, APIVersion: event.APIVersion, Live: event.Live, ReceivedAt: now, Outcome: outcomeQueued,
	}
	jobs := jobFor(conn.ID, event, now)
	if event.Live != conn.Live || len(jobs) == 0 {
		kept.Outcome, jobs = outcomeIgnored, nil
	}
	if !isStorable(kept) {
		kept.Outcome = outcomeIgnored
	} else if err := c.options.Store.PaymentAccounts(w.scope).ReceiveEvent(ctx, conn.ID, kept, jobs); err != nil {
		return err
	}
	c.options.ObserveWebhook(WebhookReceipt{Outcome: kept.Outcome, Lag: c.lagSince(conn.ClockOffset, event.CreatedAt)})
	c.Wake(w.scope)
	return nil
}

// maxEventField is the largest length of an event's fields: Stripe's ids have at most
// 255 characters. An index cannot hold a much longer one.
const maxEventField = 255

// isStorable reports whether Postgres can store the event's fields.
func isStorable(e payments.WebhookEvent) bool {
	for _, field := range []string{e.ID, e.Type, e.Object, e.APIVersion} {
		if len(field) > maxEventField || strings.ContainsRune(field, 0) {
			return false
		}
	}
	return true
}

// jobFor is the job for an event, or none: a refresh of its object, whose content in
// the event is not used.
func jobFor(connection ids.ID, event stripe.Event, now int64) []queue.Job {
	kinds := map[string]queue.JobKind{
		"checkout.session":      queue.JobSession,
		"subscription":          queue.JobSubscription,
		"invoice":               queue.JobInvoice,
		"charge":                queue.JobCharge,
		"refund":                queue.JobRefund,
		"dispute":               queue.JobDispute,
		"subscription_schedule": queue.JobSchedule,
	}
	kind, known := kinds[event.Object.Kind]
	if event.Type == "customer.deleted" {
		kind, known = queue.JobCustomer, true
	}
	if !known || event.Object.ID == "" || event.ID == "" {
		return nil
	}
	return []queue.Job{{Kind: kind, Object: event.Object.ID, Connection: connection, DueAt: now}}
}
