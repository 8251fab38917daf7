package engine

// draftTime is how long a renewal's invoice stays a draft.
const draftTime = hour

// dunning is when a renewal that could not be charged is tried again, counted
// from the first failure. After the last one the subscription is cancelled.
var dunning = []Time{3 * day, 5 * day, 7 * day}

// draftEnds finalises a renewal's invoice and charges it.
func (w *Account) draftEnds(m Clock, invoice *Invoice) {
	if invoice.Status != draft || !invoice.Advances || invoice.FinalizesAt != m.Now {
		return
	}
	w.finalize(m, invoice)
	w.take(m, invoice)
}

// retryDue tries again what could not be charged.
func (w *Account) retryDue(m Clock, invoice *Invoice) {
	if invoice.Status != open || invoice.NextAttempt != m.Now {
		return
	}
	invoice.Retries++
	w.take(m, invoice)
}

// take charges an invoice by itself, with nobody there.
func (w *Account) take(m Clock, invoice *Invoice) {
	s := w.Subscriptions.Get(invoice.Subscription)
	switch got := w.collect(m, invoice, w.methodOf(s), away); got {
	case paid:
		w.settle(m, invoice)
	case underway:
		invoice.NextAttempt = 0
	default:
		w.fail(m, invoice, got)
	}
}

// fail announces that an invoice was not paid, and what that does to its
// subscription.
func (w *Account) fail(m Clock, invoice *Invoice, got result) {
	s := w.Subscriptions.Get(invoice.Subscription)
	renewal := !s.ended() && s.Status != incomplete && !s.awaits(invoice)
	if renewal {
		w.planRetry(m, invoice)
	}
	if got == needsAction {
		w.emit(m, "invoice.payment_action_required", invoice)
	} else {
		w.emit(m, "invoice.payment_failed", invoice)
	}
	switch {
	case !renewal:
		return
	case invoice.NextAttempt == 0:
		w.end(m, s, "payment_failed")
	case s.Status == active:
		was := w.Render(s)
		s.Status = pastDue
		w.emitChange(m, subscriptionUpdated, was, s)
	}
}

func (w *Account) planRetry(m Clock, invoice *Invoice) {
	if invoice.FirstFailure == 0 {
		invoice.FirstFailure = m.Now
	}
	invoice.NextAttempt = 0
	if invoice.Retries < len(dunning) {
		// A bank debit fails days after it was tried: what is overdue then is due at once.
		invoice.NextAttempt = max(m.Now+1, invoice.FirstFailure+dunning[invoice.Retries])
		w.setTimer(invoice.NextAttempt, retryDue, invoice)
	}
}

// PayInvoice tries an invoice out of turn, with the customer behind the call
// unless it says otherwise.
func (w *Account) PayInvoice(m Clock, id, methodID string, offSession bool) (*Invoice, error) {
	invoice, err := Get(w.Invoices, "invoice", id)
	if err != nil {
		return nil, err
	}
	s := w.Subscriptions.Get(invoice.Subscription)
	switch {
	case invoice.Status == settled:
		return nil, invalid("", "Invoice is already paid")
	case invoice.Status == void:
		return nil, invalid("", "This invoice can no longer be paid: its status is void.")
	case invoice.Status == draft:
		w.finalize(m, invoice)
	}
	if intent := w.Intents.Get(invoice.Intent); intent != nil && intent.Status == processing {
		return nil, invalid("", "This invoice has a payment that is still processing.")
	}
	method := w.methodOf(s)
	if methodID != "" {
		if method, err = w.attach(m, invoice.Customer, "payment_method", methodID); err != nil {
			return nil, err
		}
	}
	if method == nil && invoice.AmountDue > 0 {
		return nil, errNoMethod()
	}
	how := there
	if offSession {
		how = away
	}
	switch got := w.collect(m, invoice, method, how); got {
	case paid:
		w.settle(m, invoice)
	case underway:
		invoice.NextAttempt = 0
	case needsAction:
		w.emit(m, "invoice.payment_action_required", invoice)
		return nil, w.tried(declined(Decline{
			Code:    "invoice_payment_intent_requires_action",
			Message: "This payment requires additional user action before it can be completed successfully. Payment can be completed using the PaymentIntent associated with the invoice.",
		}), w.Intents.Get(invoice.Intent))
	case refused:
		w.emit(m, "invoice.payment_failed", invoice)
		intent := w.Intents.Get(invoice.Intent)
		return nil, w.tried(declined(intent.Error), intent)
	}
	return invoice, nil
}

// errNoMethod is for a charge with nothing to charge.
func errNoMethod() *Refusal {
	return invalid("", "%s Please consider adding a default payment method.", noMethod.Message).withCode(noMethod.Code)
}
