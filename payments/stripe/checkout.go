package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v79"

	"purser/billing"
)

// Session is a checkout session with our reference.
type Session struct {
	billing.ProviderSession
	Reference string // the client_reference_id
	Metadata  map[string]string
}

// SessionOrder is the parameters of a new checkout session.
type SessionOrder struct {
	CustomerID string
	Reference  string
	SuccessURL string
	CancelURL  string
	ExpiresAt  int64
	Metadata   map[string]string // copied to the subscription or payment

	// For a subscription:
	PriceID string
	Free    bool // no card is collected

	// For a single payment:
	AmountCents int64
	Currency    string
	Name        string
}

// CreateSubscriptionSession opens a checkout session that sells a subscription.
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

// CreatePaymentSession opens a checkout session for a single payment.
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

// Session reads a checkout session with its payment intent.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	s, err := c.api.CheckoutSessions.Get(id, &sdk.CheckoutSessionParams{Params: params(ctx, "payment_intent")})
	if err != nil {
		return Session{}, readProblem(err)
	}
	return sessionOf(s), nil
}

// SessionByReference finds the customer's session by our reference. It reads the
// latest page only: the session was created a moment ago, or not at all.
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

// ExpireSession expires a checkout session. Stripe refuses one that is not open.
func (c *Client) ExpireSession(ctx context.Context, key, id string) (Session, error) {
	s, err := c.api.CheckoutSessions.Expire(id, &sdk.CheckoutSessionExpireParams{Params: keyed(ctx, key)})
	if err != nil {
		return Session{}, problem(err)
	}
	return sessionOf(s), nil
}

func sessionOf(s *sdk.CheckoutSession) Session {
	out := Session{Reference: s.ClientReferenceID, Metadata: s.Metadata, ProviderSession: billing.ProviderSession{
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
		// A bank debit that failed: the payment intent needs another method, and the
		// session is already complete.
		out.Failed = s.Status == sdk.CheckoutSessionStatusComplete && !out.Paid &&
			(intent.Status == sdk.PaymentIntentStatusRequiresPaymentMethod || intent.Status == sdk.PaymentIntentStatusCanceled)
		if intent.LatestCharge != nil {
			out.ChargeID = intent.LatestCharge.ID
		}
	}
	return out
}
