package stripe

import (
	"context"
	"slices"

	sdk "github.com/stripe/stripe-go/v79"

	"purser/billing"
	"purser/metering"
)

// Subscription is a subscription with the ids that calls about it need.
type Subscription struct {
	billing.ProviderSubscription
	CustomerID     string
	Metadata       map[string]string
	ItemID         string
	ScheduleID     string // its schedule; empty for none
	PendingInvoice string // the invoice of its pending update; empty for none
}

// Subscription reads a subscription and its latest hundred invoices: eight years of
// months.
func (c *Client) Subscription(ctx context.Context, id string) (Subscription, error) {
	s, err := c.api.Subscriptions.Get(id, &sdk.SubscriptionParams{Params: params(ctx, "schedule", "latest_invoice")})
	if err != nil {
		return Subscription{}, readProblem(err)
	}
	out := subscriptionOf(s)
	list := c.api.Invoices.List(&sdk.InvoiceListParams{ListParams: onePage(ctx, pageSize), Subscription: sdk.String(id)})
	var invoices []*sdk.Invoice
	for list.Next() {
		invoices = append(invoices, list.Invoice())
	}
	if err := list.Err(); err != nil {
		return Subscription{}, problem(err)
	}
	// An invoice may have been created between the two reads: the latest one is always included.
	if latest := s.LatestInvoice; latest != nil && !slices.ContainsFunc(invoices, func(i *sdk.Invoice) bool { return i.ID == latest.ID }) {
		invoices = slices.Insert(invoices, 0, latest)
	}
	long := 0
	for _, i := range invoices {
		invoice := invoiceOf(i)
		if hidesPeriod(i, invoice) && long < maxLongInvoices {
			long++
			if err := c.readLines(ctx, i, &invoice); err != nil {
				return Subscription{}, err
			}
		}
		out.Invoices = append(out.Invoices, invoice)
	}
	return out, nil
}

func subscriptionOf(s *sdk.Subscription) Subscription {
	out := Subscription{Metadata: s.Metadata, ProviderSubscription: billing.ProviderSubscription{
		ID:                s.ID,
		Status:            billing.ProviderStatus(s.Status),
		Period:            metering.Period{Start: milliseconds(s.CurrentPeriodStart), End: milliseconds(s.CurrentPeriodEnd)},
		CancelAtPeriodEnd: s.CancelAtPeriodEnd,
		CancelAt:          milliseconds(s.CancelAt),
		EndedAt:           milliseconds(s.EndedAt),
	}}
	if s.Customer != nil {
		out.CustomerID = s.Customer.ID
	}
	if s.Items != nil && len(s.Items.Data) > 0 {
		out.ItemID, out.PriceID = s.Items.Data[0].ID, priceID(s.Items.Data[0].Price)
	}
	if p := s.PendingUpdate; p != nil && len(p.SubscriptionItems) > 0 {
		out.Pending = &billing.ProviderPending{PriceID: priceID(p.SubscriptionItems[0].Price), ExpiresAt: milliseconds(p.ExpiresAt)}
		if s.LatestInvoice != nil {
			out.PendingInvoice = s.LatestInvoice.ID
		}
	}
	if s.Schedule != nil {
		out.ScheduleID, out.Next = s.Schedule.ID, nextPhase(s.Schedule)
	}
	return out
}

// nextPhase is the phase after the schedule's current one.
func nextPhase(s *sdk.SubscriptionSchedule) *billing.ProviderPhase {
	if s.CurrentPhase == nil {
		return nil
	}
	for _, phase := range s.Phases {
		if phase.StartDate >= s.CurrentPhase.EndDate && len(phase.Items) > 0 {
			return &billing.ProviderPhase{PriceID: priceID(phase.Items[0].Price), At: milliseconds(phase.StartDate)}
		}
	}
	return nil
}

func priceID(p *sdk.Price) string {
	if p == nil {
		return ""
	}
	return p.ID
}

// Upgrade changes the price now, with a full new period, once that is paid. Stripe
// accepts no other change together with pending_if_incomplete, so none is sent.
func (c *Client) Upgrade(ctx context.Context, key string, s Subscription, price string) error {
	ctx, tries := watchTries(ctx)
	_, err := c.api.Subscriptions.Update(s.ID, &sdk.SubscriptionParams{
		Params:                keyed(ctx, key, "latest_invoice.payment_intent"),
		Items:                 []*sdk.SubscriptionItemsParams{{ID: sdk.String(s.ItemID), Price: sdk.String(price), Quantity: sdk.Int64(1)}},
		PaymentBehavior:       sdk.String("pending_if_incomplete"),
		ProrationBehavior:     sdk.String("none"),
		BillingCycleAnchorNow: sdk.Bool(true),
	})
	return problemAfter(tries, err)
}

// SetCancel sets or clears cancel_at_period_end. A cancel_at date that was set at Stripe
// is cleared in its place: Stripe takes only one of the two.
func (c *Client) SetCancel(ctx context.Context, key string, s Subscription, atPeriodEnd bool) error {
	p := &sdk.SubscriptionParams{Params: keyed(ctx, key)}
	if !atPeriodEnd && s.CancelAt != 0 && !s.CancelAtPeriodEnd {
		p.AddExtra("cancel_at", "")
	} else {
		p.CancelAtPeriodEnd = sdk.Bool(atPeriodEnd)
	}
	_, err := c.api.Subscriptions.Update(s.ID, p)
	return problem(err)
}

// CancelNow cancels a subscription at once, without a final invoice or proration.
func (c *Client) CancelNow(ctx context.Context, key, id string) error {
	_, err := c.api.Subscriptions.Cancel(id, &sdk.SubscriptionCancelParams{
		Params: keyed(ctx, key), InvoiceNow: sdk.Bool(false), Prorate: sdk.Bool(false),
	})
	return problem(err)
}

// Subscriptions lists the account's subscriptions. Those that ended before endedSince
// have no object to refresh: they cannot change any more.
func (c *Client) Subscriptions(ctx context.Context, endedSince int64, after string, each func(Listed) error) error {
	list := c.api.Subscriptions.List(&sdk.SubscriptionListParams{ListParams: pageAfter(ctx, after), Status: sdk.String("all")})
	for list.Next() {
		s := list.Subscription()
		listed := Listed{ID: s.ID, ObjectID: s.ID}
		if s.EndedAt != 0 && milliseconds(s.EndedAt) < endedSince {
			listed.ObjectID = ""
		}
		if err := each(listed); err != nil {
			return err
		}
	}
	return problem(list.Err())
}
