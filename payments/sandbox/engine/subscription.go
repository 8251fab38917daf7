package engine

import (
	"slices"

	"purser/payments/sandbox/persist"
)

// Subscription is a customer's subscription.
type Subscription struct {
	Head
	Customer    string
	Status      string
	Currency    string
	Items       []Item
	Anchor      Time // billing_cycle_anchor
	PeriodStart Time
	PeriodEnd   Time
	Metadata    map[string]string

	Method        string // its own default payment method
	SavesMethod   string // save_default_payment_method
	LatestInvoice string
	Schedule      string
	Pending       *PendingUpdate
	Prorations    []Line // lines of the next invoice

	CancelAtPeriodEnd bool
	CancelAt          Time
	CanceledAt        Time
	EndedAt           Time
	EndReason         string
}

type Item struct {
	ID       string
	Price    string
	Quantity int64
	Created  Time
	Metadata map[string]string
}

// The states of a subscription. Canceled is shared with intents.
const (
	incomplete        = "incomplete"
	incompleteExpired = "incomplete_expired"
	active            = "active"
	pastDue           = "past_due"
)

const subscriptionUpdated = "customer.subscription.updated"

// firstPaymentTime is how long a new subscription stays incomplete.
const firstPaymentTime = 23 * hour

// ended reports whether the subscription has a final status.
func (s *Subscription) ended() bool { return s.Status == canceled || s.Status == incompleteExpired }

// awaits reports whether paying the invoice applies the pending update.
func (s *Subscription) awaits(invoice *Invoice) bool {
	return s.Pending != nil && s.Pending.Invoice == invoice.ID
}

// HasStatus reports whether the subscription matches a status filter. The empty filter
// omits ended ones.
func (s *Subscription) HasStatus(filter string) bool {
	switch filter {
	case "":
		return s.Status != canceled
	case "all":
		return true
	case "ended":
		return s.ended()
	default:
		return s.Status == filter
	}
}

func (s *Subscription) HasPrice(price string) bool {
	return slices.ContainsFunc(s.Items, func(i Item) bool { return i.Price == price })
}

type NewSubscription struct {
	Customer    string
	Items       []ItemChange
	Metadata    map[string]string
	Method      string
	SavesMethod string
	Behavior    string // payment_behavior
	OffSession  bool
}

// CreateSubscription creates a subscription and attempts its first payment.
func (a *Account) CreateSubscription(env Env, p NewSubscription) (*Subscription, error) {
	if p.Behavior == "pending_if_incomplete" {
		return nil, invalid("payment_behavior", "`pending_if_incomplete` is only for updating a subscription.")
	}
	customer, err := a.customer(p.Customer)
	if err != nil {
		return nil, err
	}
	var method *Method
	if p.Method != "" {
		if method, err = a.attach(env, customer.ID, "default_payment_method", p.Method); err != nil {
			return nil, err
		}
	}
	s, invoice, err := a.startSubscription(env, customer, p.Items, p.Metadata, method)
	if err != nil {
		return nil, err
	}
	s.SavesMethod = p.SavesMethod
	if s.Status != incomplete || p.Behavior == "default_incomplete" {
		return s, nil
	}
	if method = a.methodOf(s); method == nil {
		return nil, errNoMethod()
	}
	how := customerPresent
	if p.OffSession {
		how = customerAbsent
	}
	switch got := a.collect(env, invoice, method, how); {
	case got == paid:
		a.applyPayment(env, invoice)
	case got == refused && p.Behavior == "error_if_incomplete":
		return nil, declined(a.Intents.Get(invoice.Intent).Error)
	case got == needsAction && p.Behavior == "error_if_incomplete":
		return nil, errActionRequired()
	case got != underway:
		a.paymentFailed(env, invoice, got)
	}
	return s, nil
}

// startSubscription creates the subscription and its first invoice, open and not yet
// attempted. A free one is active at once.
func (a *Account) startSubscription(env Env, customer *Customer, want []ItemChange, metadata map[string]string, method *Method) (*Subscription, *Invoice, error) {
	items, err := a.changeItems(env, nil, want)
	if err != nil {
		return nil, nil, err
	}
	currency := a.Prices.Get(items[0].Price).Currency
	if customer.Currency != "" && customer.Currency != currency {
		return nil, nil, errMixed(customer.Currency)
	}
	head := a.newHead(env, "sub_")
	var kept map[string]string
	if err := mergeMetadata(&kept, metadata); err != nil {
		return nil, nil, err
	}
	customer.Currency = currency
	s := &Subscription{
		Head: head, Customer: customer.ID, Status: incomplete, Currency: currency, Items: items, Metadata: kept,
		Anchor: env.Now, PeriodStart: env.Now, PeriodEnd: a.interval(items).boundary(env.Now, 1),
	}
	if method != nil {
		s.Method = method.ID
	}
	a.Subscriptions.Put(s)
	invoice := a.newInvoice(env, s, reasonCreate, a.linesFor(items, s.PeriodStart, s.PeriodEnd))
	a.finalize(env, invoice)
	s.LatestInvoice = invoice.ID
	if invoice.AmountDue == 0 {
		a.activate(env, s)
		a.markPaid(env, invoice)
		a.emit(env, "customer.subscription.created", s)
		a.emitPaid(env, invoice)
		return s, invoice, nil
	}
	a.setTimer(env.Now+firstPaymentTime, incompleteExpires, s)
	a.emit(env, "customer.subscription.created", s)
	return s, invoice, nil
}

// activate makes the subscription active and starts its renewals.
func (a *Account) activate(env Env, s *Subscription) {
	s.Status = active
	// A first payment may succeed after its own period: the renewal is then due now.
	a.setTimer(max(s.PeriodEnd, env.Now), periodEnds, s)
}

// incompleteExpires expires a subscription whose first payment did not succeed. One
// with a processing payment waits for the bank.
func (a *Account) incompleteExpires(env Env, s *Subscription) {
	if s.Status != incomplete || env.Now < s.Created+firstPaymentTime {
		return
	}
	invoice := a.Invoices.Get(s.LatestInvoice)
	if intent := a.Intents.Get(invoice.Intent); intent.Status == processing {
		return
	}
	was := a.Render(s)
	a.void(env, invoice)
	s.Status, s.EndedAt = incompleteExpired, env.Now
	a.emitChange(env, subscriptionUpdated, was, s)
}

// methodOf is the payment method of the subscription, or nil.
func (a *Account) methodOf(s *Subscription) *Method {
	if method := a.Methods.Get(s.Method); method != nil {
		return method
	}
	return a.Methods.Get(a.Customers.Get(s.Customer).Method)
}

// subscriptionsOf lists the live subscriptions of a customer, oldest first.
func (a *Account) subscriptionsOf(customer string) []*Subscription {
	return a.Subscriptions.By(persist.ByLiveOf, customer)
}

// errActionRequired refuses a payment that requires authentication, where the payment
// behavior allows no incomplete subscription.
func errActionRequired() *Refusal {
	return declined(Decline{
		Code:    "subscription_payment_intent_requires_action",
		Message: "Payment for this subscription requires additional user action before it can be completed successfully. Payment can be completed using the PaymentIntent associated with the subscription.",
	})
}

func errMixed(currency string) *Refusal {
	return invalid("currency", "You cannot combine currencies on a single customer. This customer has had a subscription, subscription schedule, or invoice in %s.", currency)
}
