package engine

import "purser/payments/sandbox/persist"

type Invoice struct {
	Head
	Customer     string
	Subscription string
	Metadata     map[string]string // of the subscription, as it was
	Reason       string
	Status       string
	Currency     string
	Lines        []Line
	PeriodStart  Time
	PeriodEnd    Time

	Number          string
	Token           string // secret of the hosted page
	Total           int64
	StartingBalance int64
	EndingBalance   int64
	AmountDue       int64
	AmountPaid      int64
	Intent          string
	Charge          string

	Attempts     int
	Advances     bool // auto_advance: finalized and retried automatically
	FinalizesAt  Time
	NextAttempt  Time
	FirstFailure Time
	Retries      int

	FinalizedAt, PaidAt, VoidedAt Time
}

type Line struct {
	ID          string
	Description string
	Price       string
	Quantity    int64
	Amount      int64
	Item        string
	Proration   bool
	Start, End  Time
}

// The states of an invoice.
const (
	draft   = "draft"
	open    = "open"
	settled = "paid"
	void    = "void"
)

// The billing reasons.
const (
	reasonCreate = "subscription_create"
	reasonCycle  = "subscription_cycle"
	reasonUpdate = "subscription_update"
)

func (a *Account) newInvoice(env Env, s *Subscription, reason string, lines []Line) *Invoice {
	invoice := &Invoice{
		Head: a.newHead(env, "in_"), Customer: s.Customer, Subscription: s.ID, Metadata: s.Metadata, Reason: reason, Status: draft,
		Currency: s.Currency, Advances: true,
		// The past period, as at Stripe; the lines have the periods paid for.
		PeriodStart: env.Now, PeriodEnd: env.Now,
	}
	for _, line := range lines {
		line.ID = env.token("il_", idLength)
		invoice.Lines = append(invoice.Lines, line)
		invoice.Total += line.Amount
	}
	a.computeAmountDue(invoice)
	a.Invoices.Put(invoice)
	// Other invoices are finalized by the caller.
	if reason == reasonCycle {
		invoice.FinalizesAt = env.Now + draftTime
		a.setTimer(invoice.FinalizesAt, draftEnds, invoice)
	}
	a.emit(env, "invoice.created", invoice)
	return invoice
}

// computeAmountDue sets the amount due after the customer's balance. A credit, or an
// amount below the minimum charge, is carried to the next invoice.
func (a *Account) computeAmountDue(invoice *Invoice) {
	invoice.StartingBalance = a.Customers.Get(invoice.Customer).Balance
	due := invoice.Total + invoice.StartingBalance
	if due < minimum(invoice.Currency) {
		invoice.AmountDue, invoice.EndingBalance = 0, due
	} else {
		invoice.AmountDue, invoice.EndingBalance = due, 0
	}
}

// finalize fixes the amount due and opens the invoice for payment.
func (a *Account) finalize(env Env, invoice *Invoice) {
	customer := a.Customers.Get(invoice.Customer)
	a.computeAmountDue(invoice)
	a.applyBalance(env, invoice)
	invoice.Status, invoice.FinalizedAt, invoice.FinalizesAt = open, env.Now, 0
	invoice.Number, invoice.Token = customer.nextNumber(), env.token("", tokenLength)
	if invoice.AmountDue > 0 {
		intent := a.newIntent(env, invoice.AmountDue, invoice.Currency, invoice.Customer)
		intent.Invoice = invoice.ID
		invoice.Intent = intent.ID
	}
	a.emit(env, "invoice.finalized", invoice)
}

// collect attempts to charge the amount due. A nil method fails.
func (a *Account) collect(env Env, invoice *Invoice, method *Method, how presence) result {
	if invoice.AmountDue == 0 {
		return paid
	}
	invoice.Attempts++
	intent := a.Intents.Get(invoice.Intent)
	if method == nil {
		intent.Status, intent.Error = requiresMethod, noPaymentMethod
		return refused
	}
	return a.attemptCharge(env, intent, method, how)
}

func (a *Account) markPaid(env Env, invoice *Invoice) {
	invoice.Status, invoice.PaidAt, invoice.NextAttempt = settled, env.Now, 0
	invoice.AmountPaid = invoice.AmountDue
	if intent := a.Intents.Get(invoice.Intent); intent != nil {
		invoice.Charge = intent.Charge
	}
}

// applyPayment marks the invoice paid and applies that to its subscription. The events
// have the order of recorded Stripe traffic.
func (a *Account) applyPayment(env Env, invoice *Invoice) {
	a.markPaid(env, invoice)
	s := a.Subscriptions.Get(invoice.Subscription)
	was := a.Render(s)
	switch {
	case s.awaits(invoice):
		a.emitPaid(env, invoice)
		a.applyPending(env, s)
	case s.Status == incomplete:
		a.activate(env, s)
		a.emitChange(env, subscriptionUpdated, was, s)
		a.emitPaid(env, invoice)
	case s.Status == pastDue && !a.hasUnpaidInvoice(s):
		a.emitPaid(env, invoice)
		s.Status = active
		a.emitChange(env, subscriptionUpdated, was, s)
	default:
		a.emitPaid(env, invoice)
	}
}

// emitPaid emits both events of a paid invoice.
func (a *Account) emitPaid(env Env, invoice *Invoice) {
	a.emit(env, "invoice.paid", invoice)
	a.emit(env, "invoice.payment_succeeded", invoice)
}

// hasUnpaidInvoice reports whether an invoice of the subscription was attempted and is
// still open, except that of a pending update.
func (a *Account) hasUnpaidInvoice(s *Subscription) bool {
	for _, invoice := range a.Invoices.By(persist.ByLiveOf, s.ID) {
		if invoice.Status == open && invoice.Attempts > 0 && !s.awaits(invoice) {
			return true
		}
	}
	return false
}

// FinalizeInvoice finalizes a draft early. An invoice with nothing due is paid by that.
// With auto_advance Stripe collects it at an unspecified time, which the sandbox does
// not imitate.
func (a *Account) FinalizeInvoice(env Env, id string, advances *bool) (*Invoice, error) {
	invoice, err := Get(a.Invoices, "invoice", id)
	if err != nil {
		return nil, err
	}
	if invoice.Status != draft {
		return nil, invalid("", "This invoice is already finalized, you can't re-finalize a non-draft invoice.").withCode("invoice_not_editable")
	}
	if advances == nil || *advances {
		return nil, invalid("auto_advance", "The sandbox finalizes an invoice on request only with `auto_advance=false`.")
	}
	invoice.Advances = false
	a.finalize(env, invoice)
	if invoice.AmountDue == 0 {
		a.applyPayment(env, invoice)
	}
	return invoice, nil
}

// VoidInvoice voids an open invoice, which can no longer be paid.
func (a *Account) VoidInvoice(env Env, id string) (*Invoice, error) {
	invoice, err := Get(a.Invoices, "invoice", id)
	if err != nil {
		return nil, err
	}
	if invoice.Status != open {
		return nil, invalid("", "You can only pass in open invoices. This invoice isn't open.").withCode("invoice_not_open")
	}
	if intent := a.Intents.Get(invoice.Intent); intent != nil && intent.Status == processing {
		return nil, invalid("", "This invoice has a payment that is still processing and cannot be voided.")
	}
	a.void(env, invoice)
	s := a.Subscriptions.Get(invoice.Subscription)
	was := a.Render(s)
	switch {
	case s.awaits(invoice):
		s.Pending = nil
	case s.Status == incomplete:
		s.Status, s.EndedAt = incompleteExpired, env.Now
	case s.Status == pastDue && !a.hasUnpaidInvoice(s):
		s.Status = active
	default:
		return invoice, nil
	}
	a.emitChange(env, subscriptionUpdated, was, s)
	return invoice, nil
}

func (a *Account) void(env Env, invoice *Invoice) {
	invoice.Status, invoice.VoidedAt, invoice.NextAttempt = void, env.Now, 0
	a.unapplyBalance(env, invoice)
	if intent := a.Intents.Get(invoice.Intent); intent != nil {
		intent.Status = canceled
	}
	a.emit(env, "invoice.voided", invoice)
}
