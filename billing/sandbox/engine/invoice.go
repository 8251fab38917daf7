package engine

import "purser/billing/sandbox/persist"

// Invoice asks a customer for money, for a subscription's period.
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
	Token           string // opens the hosted page
	Total           int64
	StartingBalance int64
	EndingBalance   int64
	AmountDue       int64
	AmountPaid      int64
	Intent          string
	Charge          string

	Attempts     int
	Advances     bool // finalised and retried by itself
	FinalizesAt  Time
	NextAttempt  Time
	FirstFailure Time
	Retries      int

	FinalizedAt, PaidAt, VoidedAt Time
}

// Line is one position of an invoice.
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

// Why an invoice was made.
const (
	reasonCreate = "subscription_create"
	reasonCycle  = "subscription_cycle"
	reasonUpdate = "subscription_update"
)

// newInvoice drafts an invoice for a subscription.
func (w *Account) newInvoice(m Clock, s *Subscription, reason string, lines []Line) (*Invoice, error) {
	head := w.newHead(m, "in_")
	invoice := &Invoice{
		Head: head, Customer: s.Customer, Subscription: s.ID, Metadata: s.Metadata, Reason: reason, Status: draft,
		Currency: s.Currency, Advances: true,
		// What was used up, as Stripe has it; the lines say what is paid for.
		PeriodStart: m.Now, PeriodEnd: m.Now,
	}
	for _, line := range lines {
		line.ID = m.token("il_", idLength)
		invoice.Lines = append(invoice.Lines, line)
		invoice.Total += line.Amount
	}
	w.balance(invoice)
	w.Invoices.Put(invoice)
	// Others are finalised at once, by whoever asked for them.
	if reason == reasonCycle {
		invoice.FinalizesAt = m.Now + draftTime
		w.setTimer(invoice.FinalizesAt, draftEnds, invoice)
	}
	w.emit(m, "invoice.created", invoice)
	return invoice, nil
}

// balance sets what is due after the customer's balance. What is owed to the
// customer, or is too small to be charged, is carried to the next invoice.
func (w *Account) balance(invoice *Invoice) {
	invoice.StartingBalance = w.Customers.Get(invoice.Customer).Balance
	due := invoice.Total + invoice.StartingBalance
	if due < minimum(invoice.Currency) {
		invoice.AmountDue, invoice.EndingBalance = 0, due
	} else {
		invoice.AmountDue, invoice.EndingBalance = due, 0
	}
}

// finalize fixes what the invoice asks for, and opens it for payment.
func (w *Account) finalize(m Clock, invoice *Invoice) {
	customer := w.Customers.Get(invoice.Customer)
	w.balance(invoice)
	w.applyBalance(m, invoice)
	invoice.Status, invoice.FinalizedAt, invoice.FinalizesAt = open, m.Now, 0
	invoice.Number, invoice.Token = customer.nextNumber(), m.token("", tokenLength)
	if invoice.AmountDue > 0 {
		intent := w.newIntent(m, invoice.AmountDue, invoice.Currency, invoice.Customer)
		intent.Invoice = invoice.ID
		invoice.Intent = intent.ID
	}
	w.emit(m, "invoice.finalized", invoice)
}

// collect tries to take what the invoice asks for. A method of nil fails.
func (w *Account) collect(m Clock, invoice *Invoice, method *Method, how presence) result {
	if invoice.AmountDue == 0 {
		return paid
	}
	invoice.Attempts++
	intent := w.Intents.Get(invoice.Intent)
	if method == nil {
		intent.Status, intent.Error = requiresMethod, noMethod
		return refused
	}
	return w.try(m, intent, method, how)
}

func (w *Account) markPaid(m Clock, invoice *Invoice) {
	invoice.Status, invoice.PaidAt, invoice.NextAttempt = settled, m.Now, 0
	invoice.AmountPaid = invoice.AmountDue
	if intent := w.Intents.Get(invoice.Intent); intent != nil {
		invoice.Charge = intent.Charge
	}
}

// settle marks the invoice paid, and lets its subscription have what was paid
// for. The order of the events is that of recorded traffic.
func (w *Account) settle(m Clock, invoice *Invoice) {
	w.markPaid(m, invoice)
	s := w.Subscriptions.Get(invoice.Subscription)
	was := w.Render(s)
	switch {
	case s.awaits(invoice):
		w.emitPaid(m, invoice)
		w.applyPending(m, s)
	case s.Status == incomplete:
		w.activate(m, s)
		w.emitChange(m, subscriptionUpdated, was, s)
		w.emitPaid(m, invoice)
	case s.Status == pastDue && !w.owes(s):
		w.emitPaid(m, invoice)
		s.Status = active
		w.emitChange(m, subscriptionUpdated, was, s)
	default:
		w.emitPaid(m, invoice)
	}
}

// emitPaid announces a paid invoice, under both of the names that it has.
func (w *Account) emitPaid(m Clock, invoice *Invoice) {
	w.emit(m, "invoice.paid", invoice)
	w.emit(m, "invoice.payment_succeeded", invoice)
}

// owes reports whether an invoice of the subscription has been tried and is
// still open, apart from the one that asks for a pending update.
func (w *Account) owes(s *Subscription) bool {
	for _, invoice := range w.Invoices.By(persist.ByLiveOf, s.ID) {
		if invoice.Status == open && invoice.Attempts > 0 && !s.awaits(invoice) {
			return true
		}
	}
	return false
}

// FinalizeInvoice ends a draft out of turn. What is due nothing is paid by that.
// With auto_advance Stripe collects it at a time of its own choosing, which the
// sandbox does not imitate.
func (w *Account) FinalizeInvoice(m Clock, id string, advances *bool) (*Invoice, error) {
	invoice, err := Get(w.Invoices, "invoice", id)
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
	w.finalize(m, invoice)
	if invoice.AmountDue == 0 {
		w.settle(m, invoice)
	}
	return invoice, nil
}

// VoidInvoice takes an open invoice back: nobody can pay it any more.
func (w *Account) VoidInvoice(m Clock, id string) (*Invoice, error) {
	invoice, err := Get(w.Invoices, "invoice", id)
	if err != nil {
		return nil, err
	}
	if invoice.Status != open {
		return nil, invalid("", "You can only pass in open invoices. This invoice isn't open.").withCode("invoice_not_open")
	}
	if intent := w.Intents.Get(invoice.Intent); intent != nil && intent.Status == processing {
		return nil, invalid("", "This invoice has a payment that is still processing and cannot be voided.")
	}
	w.void(m, invoice)
	s := w.Subscriptions.Get(invoice.Subscription)
	was := w.Render(s)
	switch {
	case s.awaits(invoice):
		s.Pending = nil
	case s.Status == incomplete:
		s.Status, s.EndedAt = incompleteExpired, m.Now
	case s.Status == pastDue && !w.owes(s):
		s.Status = active
	default:
		return invoice, nil
	}
	w.emitChange(m, subscriptionUpdated, was, s)
	return invoice, nil
}

func (w *Account) void(m Clock, invoice *Invoice) {
	invoice.Status, invoice.VoidedAt, invoice.NextAttempt = void, m.Now, 0
	w.unapplyBalance(m, invoice)
	if intent := w.Intents.Get(invoice.Intent); intent != nil {
		intent.Status = canceled
	}
	w.emit(m, "invoice.voided", invoice)
}
