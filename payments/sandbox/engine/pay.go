package engine

import (
	"strings"

	"purser/payments/sandbox/persist"
)

// Step is the result of a form on a hosted page.
type Step struct {
	URL    string // to redirect to; empty to show the page again with the reason
	Reason string
}

// Challenge is an authentication that the bank requires before a payment.
type Challenge struct {
	Token string
	For   string // id of the session or the invoice
	Card  Card
}

// challenge redirects the customer to authenticate. A payment has one open challenge.
func (a *Account) challenge(env Env, target string, card Card) Step {
	a.dropChallenges(target)
	token := env.token("", tokenLength)
	a.Challenges.Put(&Challenge{Token: token, For: target, Card: card})
	return Step{URL: a.urls.Site + "/authenticate/" + token}
}

func (a *Account) dropChallenges(target string) {
	for _, challenge := range a.Challenges.By(persist.ByParent, target) {
		a.Challenges.Delete(challenge.Token)
	}
}

// AnswerChallenge completes or fails a challenge.
func (a *Account) AnswerChallenge(env Env, token string, proven bool) (Step, error) {
	challenge, err := Get(a.Challenges, "authentication", token)
	if err != nil {
		return Step{}, err
	}
	a.Challenges.Delete(token)
	if session := a.Sessions.Get(challenge.For); session != nil {
		if !proven {
			session.Failure = authenticationFailed.Message
			return Step{URL: a.sessionURL(session)}, nil
		}
		return a.paySession(env, session, challenge.Card, customerAuthenticated)
	}
	invoice := a.Invoices.Get(challenge.For)
	if !proven {
		if intent := a.Intents.Get(invoice.Intent); invoice.Status == open {
			intent.Status, intent.Error = requiresMethod, authenticationFailed
		}
		return Step{URL: a.invoiceURL(invoice)}, nil
	}
	return a.payHosted(env, invoice, challenge.Card, customerAuthenticated)
}

func (a *Account) PaySession(env Env, id string, card Card) (Step, error) {
	session, err := Get(a.Sessions, "checkout.session", id)
	if err != nil {
		return Step{}, err
	}
	return a.paySession(env, session, card, customerPresent)
}

// StartFree completes a free checkout session that requires no card.
func (a *Account) StartFree(env Env, id string) (Step, error) {
	session, err := Get(a.Sessions, "checkout.session", id)
	if err != nil {
		return Step{}, err
	}
	if !session.Free() {
		return Step{Reason: "This checkout needs a card."}, nil
	}
	return a.completeSession(env, session, nil, customerPresent)
}

// Free reports whether the session can be completed without a card.
func (s *Session) Free() bool { return s.Total == 0 && s.Collects == "if_required" }

// NotOpen refuses the payment of a session or an invoice that is not open.
func NotOpen(status string) *Refusal {
	r := invalid("", "This can no longer be paid: it is %s.", status)
	r.Status = conflict
	return r
}

func (a *Account) paySession(env Env, session *Session, card Card, how presence) (Step, error) {
	if session.Status != open {
		return Step{}, NotOpen(session.Status)
	}
	test := byCard[card]
	session.Failure = ""
	// Check the card before creating anything: a declined checkout leaves no
	// subscription behind. A free plan only saves the card.
	if test.decline != nil && (session.Total > 0 || test.notSavable) {
		session.Failure = test.decline.Message
		return Step{Reason: session.Failure}, nil
	}
	if test.challenge != challengeNever && how != customerAuthenticated {
		return a.challenge(env, session.ID, card), nil
	}
	customer := ""
	if session.Mode == modeSubscription {
		if err := a.ensureCustomer(env, session); err != nil {
			return Step{}, err
		}
		customer = session.Customer
	}
	method := a.addMethod(env, customer, card)
	return a.completeSession(env, session, method, how)
}

func (a *Account) ensureCustomer(env Env, session *Session) error {
	if session.Customer != "" {
		return nil
	}
	customer, err := a.CreateCustomer(env, CustomerFields{Email: &session.Email})
	if err != nil {
		return err
	}
	session.Customer = customer.ID
	return nil
}

// completeSession creates the payment or subscription, with a method that was checked.
func (a *Account) completeSession(env Env, session *Session, method *Method, how presence) (Step, error) {
	if session.Status != open {
		return Step{}, NotOpen(session.Status)
	}
	got, err := paid, error(nil)
	if session.Mode == modeSubscription {
		got, err = a.completeSubscription(env, session, method, how)
	} else {
		intent := a.newIntent(env, session.Total, session.Currency, session.Customer)
		intent.Session, intent.Metadata = session.ID, session.IntentMetadata
		session.Intent = intent.ID
		got = a.attemptCharge(env, intent, method, how)
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
	a.dropChallenges(session.ID)
	a.emit(env, "checkout.session.completed", session)
	return Step{URL: strings.ReplaceAll(session.Success, "{CHECKOUT_SESSION_ID}", session.ID)}, nil
}

func (a *Account) completeSubscription(env Env, session *Session, method *Method, how presence) (result, error) {
	if err := a.ensureCustomer(env, session); err != nil {
		return refused, err
	}
	var want []ItemChange
	for _, line := range session.Lines {
		want = append(want, ItemChange{Price: line.Price, Quantity: &line.Quantity})
	}
	s, invoice, err := a.startSubscription(env, a.Customers.Get(session.Customer), want, session.SubscriptionMetadata, method)
	if err != nil {
		return refused, err
	}
	session.Subscription, session.Invoice = s.ID, invoice.ID
	if s.Status == active {
		return paid, nil
	}
	a.Intents.Get(invoice.Intent).Session = session.ID
	got := a.collect(env, invoice, method, how)
	if got == paid {
		a.applyPayment(env, invoice)
	}
	return got, nil
}

// sessionPaidLate records that a session's bank debit succeeded.
func (a *Account) sessionPaidLate(env Env, intent *Intent) {
	session := a.Sessions.Get(intent.Session)
	if session == nil || session.Payment != unpaid {
		return
	}
	session.Payment = settled
	a.emit(env, "checkout.session.async_payment_succeeded", session)
}

// sessionUnpaidLate records that it failed.
func (a *Account) sessionUnpaidLate(env Env, intent *Intent) {
	if session := a.Sessions.Get(intent.Session); session != nil && session.Payment == unpaid {
		a.emit(env, "checkout.session.async_payment_failed", session)
	}
}

// InvoiceOf finds an invoice by the token of its hosted page.
func (a *Account) InvoiceOf(token string) (*Invoice, error) {
	if invoice := a.Invoices.One(persist.ByAlias, token); invoice != nil {
		return invoice, nil
	}
	return nil, NotFound("invoice", token)
}

// PayHosted pays an invoice at its hosted page.
func (a *Account) PayHosted(env Env, token string, card Card) (Step, error) {
	invoice, err := a.InvoiceOf(token)
	if err != nil {
		return Step{}, err
	}
	return a.payHosted(env, invoice, card, customerPresent)
}

func (a *Account) payHosted(env Env, invoice *Invoice, card Card, how presence) (Step, error) {
	intent := a.Intents.Get(invoice.Intent)
	if invoice.Status != open || intent.Status == processing {
		return Step{}, NotOpen(invoice.Status)
	}
	// A pending update cannot be paid by a debit that may fail days after it expired.
	s := a.Subscriptions.Get(invoice.Subscription)
	if byCard[card].debitOutcome != "" && s.awaits(invoice) {
		return Step{Reason: "A change of plan cannot be paid by bank debit. Use a card."}, nil
	}
	method := a.addMethod(env, invoice.Customer, card)
	switch a.collect(env, invoice, method, how) {
	case needsAction:
		return a.challenge(env, invoice.ID, card), nil
	case refused:
		a.emit(env, "invoice.payment_failed", invoice)
		return Step{Reason: intent.Error.Message}, nil
	case paid:
		// The card becomes the default, so that the next renewal succeeds too.
		s.Method = method.ID
		a.applyPayment(env, invoice)
	case underway:
		s.Method, invoice.NextAttempt = method.ID, 0
	}
	return Step{URL: a.invoiceURL(invoice)}, nil
}
