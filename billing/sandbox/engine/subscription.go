package engine

import (
	"slices"

	"purser/billing/sandbox/persist"
)

// Subscription is a recurring order.
type Subscription struct {
	Head
	Customer    string
	Status      string
	Currency    string
	Items       []Item
	Anchor      Time // periods count from it
	PeriodStart Time
	PeriodEnd   Time
	Metadata    map[string]string

	Method        string // its own default payment method
	SavesMethod   string // whether a method that pays for it becomes its default
	LatestInvoice string
	Schedule      string
	Pending       *PendingUpdate
	Prorations    []Line // wait for the next invoice

	CancelAtPeriodEnd bool
	CancelAt          Time
	CanceledAt        Time
	EndedAt           Time
	EndReason         string
}

// Item is one position of a subscription.
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

// firstPaymentTime is how long a new subscription waits for its first payment.
const firstPaymentTime = 23 * hour

// ended reports whether the subscription is over for good.
func (s *Subscription) ended() bool { return s.Status == canceled || s.Status == incompleteExpired }

// awaits reports whether paying the invoice applies the pending update.
func (s *Subscription) awaits(invoice *Invoice) bool {
	return s.Pending != nil && s.Pending.Invoice == invoice.ID
}

// HasStatus reports whether a filter of a list keeps the subscription. Without
// one, those that are over are left out.
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

// HasPrice reports whether an item has the price.
func (s *Subscription) HasPrice(price string) bool {
	return slices.ContainsFunc(s.Items, func(i Item) bool { return i.Price == price })
}

// NewSubscription is what a subscription is made from.
type NewSubscription struct {
	Customer    string
	Items       []ItemChange
	Metadata    map[string]string
	Method      string
	SavesMethod string
	Behavior    string // payment_behavior
	OffSession  bool
}

// CreateSubscription starts a subscription and tries its first payment.
func (w *Account) CreateSubscription(m Clock, p NewSubscription) (*Subscription, error) {
	if p.Behavior == "pending_if_incomplete" {
		return nil, invalid("payment_behavior", "`pending_if_incomplete` is only for updating a subscription.")
	}
	customer, err := w.customer(p.Customer)
	if err != nil {
		return nil, err
	}
	var method *Method
	if p.Method != "" {
		if method, err = w.attach(m, customer.ID, "default_payment_method", p.Method); err != nil {
			return nil, err
		}
	}
	s, invoice, err := w.start(m, customer, p.Items, p.Metadata, method)
	if err != nil {
		return nil, err
	}
	s.SavesMethod = p.SavesMethod
	if s.Status != incomplete || p.Behavior == "default_incomplete" {
		return s, nil
	}
	if method = w.methodOf(s); method == nil {
		return nil, errNoMethod()
	}
	how := there
	if p.OffSession {
		how = away
	}
	switch got := w.collect(m, invoice, method, how); {
	case got == paid:
		w.settle(m, invoice)
	case got == refused && p.Behavior == "error_if_incomplete":
		return nil, declined(w.Intents.Get(invoice.Intent).Error)
	case got == needsAction && p.Behavior == "error_if_incomplete":
		return nil, errActionRequired()
	case got != underway:
		w.fail(m, invoice, got)
	}
	return s, nil
}

// start makes the subscription and its first invoice, open and not yet tried.
// One that costs nothing is active at once.
func (w *Account) start(m Clock, customer *Customer, want []ItemChange, metadata map[string]string, method *Method) (*Subscription, *Invoice, error) {
	items, err := w.changeItems(m, nil, want)
	if err != nil {
		return nil, nil, err
	}
	currency := w.Prices.Get(items[0].Price).Currency
	if customer.Currency != "" && customer.Currency != currency {
		return nil, nil, errMixed(customer.Currency)
	}
	head := w.newHead(m, "sub_")
	var kept map[string]string
	if err := merge(&kept, metadata); err != nil {
		return nil, nil, err
	}
	customer.Currency = currency
	s := &Subscription{
		Head: head, Customer: customer.ID, Status: incomplete, Currency: currency, Items: items, Metadata: kept,
		Anchor: m.Now, PeriodStart: m.Now, PeriodEnd: w.interval(items).boundary(m.Now, 1),
	}
	if method != nil {
		s.Method = method.ID
	}
	w.Subscriptions.Put(s)
	invoice, err := w.newInvoice(m, s, reasonCreate, w.linesFor(items, s.PeriodStart, s.PeriodEnd))
	if err != nil {
		return nil, nil, err
	}
	w.finalize(m, invoice)
	s.LatestInvoice = invoice.ID
	if invoice.AmountDue == 0 {
		w.activate(m, s)
		w.markPaid(m, invoice)
		w.emit(m, "customer.subscription.created", s)
		w.emitPaid(m, invoice)
		return s, invoice, nil
	}
	w.setTimer(m.Now+firstPaymentTime, incompleteExpires, s)
	w.emit(m, "customer.subscription.created", s)
	return s, invoice, nil
}

// activate begins the periods.
func (w *Account) activate(m Clock, s *Subscription) {
	s.Status = active
	// A first payment may arrive after its own period: the next ones follow then.
	w.setTimer(max(s.PeriodEnd, m.Now), periodEnds, s)
}

// incompleteExpires ends a subscription whose first payment never came. One
// whose payment is under way waits for the bank.
func (w *Account) incompleteExpires(m Clock, s *Subscription) {
	if s.Status != incomplete || m.Now < s.Created+firstPaymentTime {
		return
	}
	invoice := w.Invoices.Get(s.LatestInvoice)
	if intent := w.Intents.Get(invoice.Intent); intent.Status == processing {
		return
	}
	was := w.Render(s)
	w.void(m, invoice)
	s.Status, s.EndedAt = incompleteExpired, m.Now
	w.emitChange(m, subscriptionUpdated, was, s)
}

// methodOf is what the subscription is charged with, or nil.
func (w *Account) methodOf(s *Subscription) *Method {
	if method := w.Methods.Get(s.Method); method != nil {
		return method
	}
	return w.Methods.Get(w.Customers.Get(s.Customer).Method)
}

// subscriptionsOf lists those of a customer that are not over, oldest first.
func (w *Account) subscriptionsOf(customer string) []*Subscription {
	return w.Subscriptions.By(persist.ByLiveOf, customer)
}

// errActionRequired is for a payment that only the customer could complete, where
// nothing may be left incomplete.
func errActionRequired() *Refusal {
	return declined(Decline{
		Code:    "subscription_payment_intent_requires_action",
		Message: "Payment for this subscription requires additional user action before it can be completed successfully. Payment can be completed using the PaymentIntent associated with the subscription.",
	})
}

func errMixed(currency string) *Refusal {
	return invalid("currency", "You cannot combine currencies on a single customer. This customer has had a subscription, subscription schedule, or invoice in %s.", currency)
}
