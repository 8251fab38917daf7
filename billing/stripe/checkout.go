package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v79"

	"purser/billing"
)

// Session is a hosted checkout, with what we wrote on it.
type Session struct {
	billing.ProviderSession
	Reference string // ours
}

// SessionOrder asks for a page.
type SessionOrder struct {
	CustomerID string
	Reference  string
	SuccessURL string
	CancelURL  string
	ExpiresAt  int64
	Metadata   map[string]string // goes to what the page makes: a subscription or a payment

	// For a subscription:
	PriceID string
	Free    bool // nothing is charged, so no card is asked for

	// For a single payment:
	AmountCents int64
	Currency    string
	Name        string
}

// CreateSubscriptionSession opens a page on which a subscription is bought.
func (c *Client) CreateSubscriptionSession(ctx context.Context, key string, o SessionOrder) (Session, error) {
	collection := sdk.CheckoutSessionPaymentMethodCollectionAlways
	if o.Free {
		collection = sdk.CheckoutSessionPaymentMethodCollectionIfRequired
	}
	p := o.params(ctx, key, sdk.CheckoutSessionModeSubscription)
	p.LineItems = []*sdk.CheckoutSessionLineItemParams{{Price: sdk.String(o.PriceID), Quantity: sdk.Int64(1)}}
	p.PaymentMethodCollection = sdk.String(string(collection))
	p.SubscriptionData = &sdk.CheckoutSessionSubscriptionDataParams{Metadata: o.Metadata}
	return c.createSession(p)
}

// CreatePaymentSession opens a page on which something is paid for once.
func (c *Client) CreatePaymentSession(ctx context.Context, key string, o SessionOrder) (Session, error) {
	p := o.params(ctx, key, sdk.CheckoutSessionModePayment)
	p.LineItems = []*sdk.CheckoutSessionLineItemParams{{
		Quantity: sdk.Int64(1),
		PriceData: &sdk.CheckoutSessionLineItemPriceDataParams{
			Currency:    sdk.String(o.Currency),
			UnitAmount:  sdk.Int64(o.AmountCents),
			ProductData: &sdk.CheckoutSessionLineItemPriceDataProductDataParams{Name: sdk.String(o.Name)},
		},
	}}
	p.Metadata = o.Metadata
	p.PaymentIntentData = &sdk.CheckoutSessionPaymentIntentDataParams{Metadata: o.Metadata}
	return c.createSession(p)
}

func (o SessionOrder) params(ctx context.Context, key string, mode sdk.CheckoutSessionMode) *sdk.CheckoutSessionParams {
	return &sdk.CheckoutSessionParams{
		Params:            keyed(ctx, key),
		Mode:              sdk.String(string(mode)),
		Customer:          sdk.String(o.CustomerID),
		ClientReferenceID: sdk.String(o.Reference),
		SuccessURL:        sdk.String(o.SuccessURL),
		CancelURL:         sdk.String(o.CancelURL),
		ExpiresAt:         sdk.Int64(seconds(o.ExpiresAt)),
	}
}

func (c *Client) createSession(p *sdk.CheckoutSessionParams) (Session, error) {
	made, err := c.api.CheckoutSessions.New(p)
	if err != nil {
		return Session{}, problem(err)
	}
	return sessionOf(made), nil
}

// Session reads a hosted checkout, with the payment behind it.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	s, err := c.api.CheckoutSessions.Get(id, &sdk.CheckoutSessionParams{Params: params(ctx, "payment_intent")})
	if err != nil {
		return Session{}, problem(err)
	}
	return sessionOf(s), nil
}

// SessionByReference finds the customer's session that carries our reference.
// Only the latest are looked at: it was made a moment ago, or not at all.
func (c *Client) SessionByReference(ctx context.Context, customerID, reference string) (Session, error) {
	list := c.api.CheckoutSessions.List(&sdk.CheckoutSessionListParams{ListParams: onePage(ctx, pageSize), Customer: sdk.String(customerID)})
	for list.Next() {
		if s := list.CheckoutSession(); s.ClientReferenceID == reference {
			return c.Session(ctx, s.ID)
		}
	}
	if err := list.Err(); err != nil {
		return Session{}, problem(err)
	}
	return Session{}, &Problem{Kind: NotFound, Message: "There is no session " + reference + "."}
}

// ExpireSession closes the page. One that is closed already is refused.
func (c *Client) ExpireSession(ctx context.Context, key, id string) (Session, error) {
	s, err := c.api.CheckoutSessions.Expire(id, &sdk.CheckoutSessionExpireParams{Params: keyed(ctx, key)})
	if err != nil {
		return Session{}, problem(err)
	}
	return sessionOf(s), nil
}

func sessionOf(s *sdk.CheckoutSession) Session {
	out := Session{Reference: s.ClientReferenceID, ProviderSession: billing.ProviderSession{
		ID:          s.ID,
		Status:      billing.SessionStatus(s.Status),
		Paid:        s.PaymentStatus == sdk.CheckoutSessionPaymentStatusPaid,
		Live:        s.Livemode,
		AmountTotal: s.AmountTotal,
		Currency:    string(s.Currency),
		URL:         s.URL,
		ExpiresAt:   milliseconds(s.ExpiresAt),
	}}
	if s.Customer != nil {
		out.CustomerID = s.Customer.ID
	}
	if s.Subscription != nil {
		out.SubscriptionID = s.Subscription.ID
	}
	if intent := s.PaymentIntent; intent != nil {
		out.IntentID = intent.ID
		// A debit that was under way and bounced: the payment wants another method,
		// and the page that could take one is closed.
		out.Failed = s.Status == sdk.CheckoutSessionStatusComplete && !out.Paid &&
			(intent.Status == sdk.PaymentIntentStatusRequiresPaymentMethod || intent.Status == sdk.PaymentIntentStatusCanceled)
		if intent.LatestCharge != nil {
			out.ChargeID = intent.LatestCharge.ID
		}
	}
	return out
}
