package engine

import "cmp"

// draftTime is how long the invoice of a renewal stays a draft.
const draftTime = hour

// dunning is the retry schedule of a failed renewal, counted from the first failure.
// After the last retry the subscription is cancelled.
var dunning = []Time{3 * day, 5 * day, 7 * day}

// draftEnds finalizes and charges the invoice of a renewal.
func (a *Account) draftEnds(env Env, invoice *Invoice) {
	if invoice.Status != draft || !invoice.Advances || invoice.FinalizesAt != env.Now {
		return
	}
	a.finalize(env, invoice)
	a.collectOffSession(env, invoice)
}

// retryDue retries a failed invoice.
func (a *Account) retryDue(env Env, invoice *Invoice) {
	if invoice.Status != open || invoice.NextAttempt != env.Now {
		return
	}
	invoice.Retries++
	a.collectOffSession(env, invoice)
}

// collectOffSession charges an invoice automatically, without the customer.
func (a *Account) collectOffSession(env Env, invoice *Invoice) {
	s := a.Subscriptions.Get(invoice.Subscription)
	switch got := a.collect(env, invoice, a.methodOf(s), customerAbsent); got {
	case paid:
		a.applyPayment(env, invoice)
	case underway:
		invoice.NextAttempt = 0
	default:
		a.paymentFailed(env, invoice, got)
	}
}

// paymentFailed records the failed payment of an invoice and applies it to its
// subscription.
func (a *Account) paymentFailed(env Env, invoice *Invoice, got result) {
	s := a.Subscriptions.Get(invoice.Subscription)
	renewal := !s.ended() && s.Status != incomplete && !s.awaits(invoice)
	if renewal {
		a.planRetry(env, invoice)
	}
	if got == needsAction {
		a.emit(env, "invoice.payment_action_required", invoice)
	} else {
		a.emit(env, "invoice.payment_failed", invoice)
	}
	switch {
	case !renewal:
		return
	case invoice.NextAttempt == 0:
		a.cancelNow(env, s, "payment_failed")
	case s.Status == active:
		was := a.Render(s)
		s.Status = pastDue
		a.emitChange(env, subscriptionUpdated, was, s)
	}
}

func (a *Account) planRetry(env Env, invoice *Invoice) {
	invoice.FirstFailure = cmp.Or(invoice.FirstFailure, env.Now)
	invoice.NextAttempt = 0
	if invoice.Retries < len(dunning) {
		// A bank debit fails days after the attempt: an overdue retry is due now.
		invoice.NextAttempt = max(env.Now+1, invoice.FirstFailure+dunning[invoice.Retries])
		a.setTimer(invoice.NextAttempt, retryDue, invoice)
	}
}

// PayInvoice attempts the payment of an invoice, on-session unless offSession is set.
func (a *Account) PayInvoice(env Env, id, methodID string, offSession bool) (*Invoice, error) {
	invoice, err := Get(a.Invoices, "invoice", id)
	if err != nil {
		return nil, err
	}
	s := a.Subscriptions.Get(invoice.Subscription)
	switch {
	case invoice.Status == settled:
		return nil, invalid("", "Invoice is already paid")
	case invoice.Status == void:
		return nil, invalid("", "This invoice can no longer be paid: its status is void.")
	case invoice.Status == draft:
		a.finalize(env, invoice)
	}
	if intent := a.Intents.Get(invoice.Intent); intent != nil && intent.Status == processing {
		return nil, invalid("", "This invoice has a payment that is still processing.")
	}
	method := a.methodOf(s)
	if methodID != "" {
		if method, err = a.attach(env, invoice.Customer, "payment_method", methodID); err != nil {
			return nil, err
		}
	}
	if method == nil && invoice.AmountDue > 0 {
		return nil, errNoMethod()
	}
	how := customerPresent
	if offSession {
		how = customerAbsent
	}
	switch got := a.collect(env, invoice, method, how); got {
	case paid:
		a.applyPayment(env, invoice)
	case underway:
		invoice.NextAttempt = 0
	case needsAction:
		a.emit(env, "invoice.payment_action_required", invoice)
		return nil, a.keepAttempt(declined(Decline{
			Code:    "invoice_payment_intent_requires_action",
			Message: "This payment requires additional user action before it can be completed successfully. Payment can be completed using the PaymentIntent associated with the invoice.",
		}), a.Intents.Get(invoice.Intent))
	case refused:
		a.emit(env, "invoice.payment_failed", invoice)
		intent := a.Intents.Get(invoice.Intent)
		return nil, a.keepAttempt(declined(intent.Error), intent)
	}
	return invoice, nil
}

// errNoMethod refuses a charge without a payment method.
func errNoMethod() *Refusal {
	return invalid("", "%s Please consider adding a default payment method.", noPaymentMethod.Message).withCode(noPaymentMethod.Code)
}
