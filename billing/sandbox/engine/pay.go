package engine

import (
	"strings"

	"purser/billing/sandbox/persist"
)

// Step is where a person at a hosted page goes next.
type Step struct {
	URL    string // empty when the page stays, with the reason
	Reason string
}

// Challenge is a bank that wants to hear from the customer before it pays.
type Challenge struct {
	Token string
	For   string // the session or the invoice that is being paid
	Card  Card
}

// challenge sends the customer to the bank. One payment has one open question.
func (w *Account) challenge(m Clock, target string, card Card) Step {
	w.dropChallenges(target)
	token := m.token("", tokenLength)
	w.Challenges.Put(&Challenge{Token: token, For: target, Card: card})
	return Step{URL: w.place.Site + "/authenticate/" + token}
}

func (w *Account) dropChallenges(target string) {
	for _, challenge := range w.Challenges.By(persist.ByParent, target) {
		w.Challenges.Delete(challenge.Token)
	}
}

// AnswerChallenge ends a challenge, proven or not.
func (w *Account) AnswerChallenge(m Clock, token string, proven bool) (Step, error) {
	challenge, err := Get(w.Challenges, "authentication", token)
	if err != nil {
		return Step{}, err
	}
	w.Challenges.Delete(token)
	if session := w.Sessions.Get(challenge.For); session != nil {
		if !proven {
			session.Failure = notProven.Message
			return Step{URL: w.sessionURL(session)}, nil
		}
		return w.paySession(m, session, challenge.Card, proving)
	}
	invoice := w.Invoices.Get(challenge.For)
	if !proven {
		if intent := w.Intents.Get(invoice.Intent); invoice.Status == open {
			intent.Status, intent.Error = requiresMethod, notProven
		}
		return Step{URL: w.invoiceURL(invoice)}, nil
	}
	return w.payHosted(m, invoice, challenge.Card, proving)
}

// PaySession pays a checkout with a card.
func (w *Account) PaySession(m Clock, id string, card Card) (Step, error) {
	session, err := Get(w.Sessions, "checkout.session", id)
	if err != nil {
		return Step{}, err
	}
	return w.paySession(m, session, card, there)
}

// StartFree completes a checkout that costs nothing and asks for no card.
func (w *Account) StartFree(m Clock, id string) (Step, error) {
	session, err := Get(w.Sessions, "checkout.session", id)
	if err != nil {
		return Step{}, err
	}
	if !session.Free() {
		return Step{Reason: "This checkout needs a card."}, nil
	}
	return w.finish(m, session, nil, there)
}

// Free reports whether the checkout can be completed without a card.
func (s *Session) Free() bool { return s.Total == 0 && s.Collects == "if_required" }

// NotOpen is what a page gets that tries to pay what cannot be paid any more.
func NotOpen(status string) *Refusal {
	r := invalid("", "This can no longer be paid: it is %s.", status)
	r.Status = conflict
	return r
}

func (w *Account) paySession(m Clock, session *Session, card Card, how presence) (Step, error) {
	if session.Status != open {
		return Step{}, NotOpen(session.Status)
	}
	test := byCard[card]
	session.Failure = ""
	// Nothing is made before the card is known to work: a declined checkout
	// leaves no subscription behind. A free plan only saves the card.
	if test.decline != nil && (session.Total > 0 || test.unsaved) {
		session.Failure = test.decline.Message
		return Step{Reason: session.Failure}, nil
	}
	if test.asks != asksNever && how != proving {
		return w.challenge(m, session.ID, card), nil
	}
	customer := ""
	if session.Mode == modeSubscription {
		if err := w.ensureCustomer(m, session); err != nil {
			return Step{}, err
		}
		customer = session.Customer
	}
	method := w.addMethod(m, customer, card)
	return w.finish(m, session, method, how)
}

func (w *Account) ensureCustomer(m Clock, session *Session) error {
	if session.Customer != "" {
		return nil
	}
	customer, err := w.CreateCustomer(m, CustomerFields{Email: &session.Email})
	if err != nil {
		return err
	}
	session.Customer = customer.ID
	return nil
}

// finish makes what was ordered, with a method that is known to work.
func (w *Account) finish(m Clock, session *Session, method *Method, how presence) (Step, error) {
	if session.Status != open {
		return Step{}, NotOpen(session.Status)
	}
	got, err := paid, error(nil)
	if session.Mode == modeSubscription {
		got, err = w.finishSubscription(m, session, method, how)
	} else {
		intent := w.newIntent(m, session.Total, session.Currency, session.Customer)
		intent.Session, intent.Metadata = session.ID, session.IntentMetadata
		session.Intent = intent.ID
		got = w.try(m, intent, method, how)
	}
	if err != nil {
		return Step{}, err
	}
	session.Status = complete
	switch {
	case got == underway:
		session.Payment = unpaid
	case session.Total == 0:
		session.Payment = noPayment
	default:
		session.Payment = settled
	}
	w.dropChallenges(session.ID)
	w.emit(m, "checkout.session.completed", session)
	return Step{URL: strings.ReplaceAll(session.Success, "{CHECKOUT_SESSION_ID}", session.ID)}, nil
}

func (w *Account) finishSubscription(m Clock, session *Session, method *Method, how presence) (result, error) {
	if err := w.ensureCustomer(m, session); err != nil {
		return refused, err
	}
	var want []ItemChange
	for _, line := range session.Lines {
		want = append(want, ItemChange{Price: line.Price, Quantity: &line.Quantity})
	}
	s, invoice, err := w.start(m, w.Customers.Get(session.Customer), want, session.SubscriptionMetadata, method)
	if err != nil {
		return refused, err
	}
	session.Subscription, session.Invoice = s.ID, invoice.ID
	if s.Status == active {
		return paid, nil
	}
	w.Intents.Get(invoice.Intent).Session = session.ID
	got := w.collect(m, invoice, method, how)
	if got == paid {
		w.settle(m, invoice)
	}
	return got, nil
}

// sessionPaidLate announces that a checkout's bank debit has worked.
func (w *Account) sessionPaidLate(m Clock, intent *Intent) {
	session := w.Sessions.Get(intent.Session)
	if session == nil || session.Payment != unpaid {
		return
	}
	session.Payment = settled
	w.emit(m, "checkout.session.async_payment_succeeded", session)
}

// sessionUnpaidLate announces that it has not.
func (w *Account) sessionUnpaidLate(m Clock, intent *Intent) {
	if session := w.Sessions.Get(intent.Session); session != nil && session.Payment == unpaid {
		w.emit(m, "checkout.session.async_payment_failed", session)
	}
}

// InvoiceOf finds an invoice by the token of its page.
func (w *Account) InvoiceOf(token string) (*Invoice, error) {
	if invoice := w.Invoices.One(persist.ByAlias, token); invoice != nil {
		return invoice, nil
	}
	return nil, NotFound("invoice", token)
}

// PayHosted pays an invoice at its page.
func (w *Account) PayHosted(m Clock, token string, card Card) (Step, error) {
	invoice, err := w.InvoiceOf(token)
	if err != nil {
		return Step{}, err
	}
	return w.payHosted(m, invoice, card, there)
}

func (w *Account) payHosted(m Clock, invoice *Invoice, card Card, how presence) (Step, error) {
	intent := w.Intents.Get(invoice.Intent)
	if invoice.Status != open || intent.Status == processing {
		return Step{}, NotOpen(invoice.Status)
	}
	// A pending update cannot be paid by a debit that may fail days after it expired.
	s := w.Subscriptions.Get(invoice.Subscription)
	if byCard[card].bank != "" && s.awaits(invoice) {
		return Step{Reason: "A change of plan cannot be paid by bank debit. Use a card."}, nil
	}
	method := w.addMethod(m, invoice.Customer, card)
	switch w.collect(m, invoice, method, how) {
	case needsAction:
		return w.challenge(m, invoice.ID, card), nil
	case refused:
		w.emit(m, "invoice.payment_failed", invoice)
		return Step{Reason: intent.Error.Message}, nil
	case paid:
		// Whoever pays for a subscription by hand wants the next renewal to work.
		s.Method = method.ID
		w.settle(m, invoice)
	case underway:
		s.Method, invoice.NextAttempt = method.ID, 0
	}
	return Step{URL: w.invoiceURL(invoice)}, nil
}
