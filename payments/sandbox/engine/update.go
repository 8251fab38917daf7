package engine

import "slices"

// SubscriptionChange holds the parameters of UpdateSubscription; nil and empty leave
// fields unchanged.
type SubscriptionChange struct {
	Items             []ItemChange
	Behavior          string // payment_behavior
	Proration         string // proration_behavior
	ProrationDate     *Time
	Anchor            string // billing_cycle_anchor: now or unchanged
	CancelAtPeriodEnd *bool
	CancelAt          *Time // zero clears it
	Metadata          map[string]string
	Method            *string // default_payment_method
	SavesMethod       *string
	OffSession        *bool
}

// UpdateSubscription changes a subscription and invoices the change where required.
func (a *Account) UpdateSubscription(env Env, id string, p SubscriptionChange) (*Subscription, error) {
	s, err := Get(a.Subscriptions, "subscription", id)
	if err != nil {
		return nil, err
	}
	if err := a.checkUpdate(s, p); err != nil {
		return nil, err
	}
	was := a.Render(s)
	if err := a.setUnbilledFields(env, s, p); err != nil {
		return nil, err
	}
	if len(p.Items) == 0 && p.Anchor != "now" {
		a.emitChange(env, subscriptionUpdated, was, s)
		return s, nil
	}
	items, err := a.changeItems(env, s.Items, p.Items)
	if err != nil {
		return nil, err
	}
	if currency := a.Prices.Get(items[0].Price).Currency; currency != s.Currency {
		return nil, errMixed(s.Currency)
	}
	u := update{s: s, was: was, items: items, proration: p.Proration, behavior: p.Behavior, how: customerPresent}
	if p.OffSession != nil && *p.OffSession {
		u.how = customerAbsent
	}
	// Another interval cannot keep the old period boundaries.
	if p.Anchor == "now" || a.interval(items) != a.interval(s.Items) {
		u.anchor = env.Now
	}
	return s, a.executeUpdate(env, u)
}

// checkUpdate refuses combinations of parameters, whatever the prices are.
func (a *Account) checkUpdate(s *Subscription, p SubscriptionChange) error {
	if s.ended() {
		return invalid("", "A canceled subscription can only update its cancellation_details and metadata.")
	}
	if p.Behavior == "pending_if_incomplete" {
		if err := checkPendingParams(p); err != nil {
			return err
		}
	}
	// Stripe refuses this pair with this message (seen at postiz-app 1904).
	if p.ProrationDate != nil && p.Anchor == "now" {
		return invalid("proration_date", "You cannot specify `proration_date` when `billing_cycle_anchor=now`.")
	}
	cancels := p.CancelAtPeriodEnd != nil || p.CancelAt != nil
	// A schedule controls the cancellation of its subscription (seen at dust 32051).
	if cancels && s.Schedule != "" {
		return invalid("cancel_at_period_end", "The subscription is managed by the subscription schedule `%s`, and updating any cancelation behavior directly is not allowed. Please update the schedule instead.", s.Schedule)
	}
	if p.Anchor == "now" && s.Schedule != "" {
		return invalid("billing_cycle_anchor", "The sandbox does not move the billing cycle of a scheduled subscription: release `%s` first.", s.Schedule)
	}
	// Also when both clear the cancellation (seen at squarelet 750).
	if p.CancelAtPeriodEnd != nil && p.CancelAt != nil {
		return invalid("", "Received both cancel_at_period_end and cancel_at parameters. Please pass in only one.")
	}
	return nil
}

// checkPendingParams allows Stripe's list of parameters for a pending update (docs:
// billing/subscriptions/pending-updates; the message as seen at codecov-api 839). Any
// other parameter would take effect before the payment.
func checkPendingParams(p SubscriptionChange) error {
	refused := []struct {
		name  string
		given bool
	}{
		{"metadata", p.Metadata != nil},
		{"cancel_at_period_end", p.CancelAtPeriodEnd != nil},
		{"cancel_at", p.CancelAt != nil},
		{"default_payment_method", p.Method != nil},
		{"payment_settings", p.SavesMethod != nil},
		{"off_session", p.OffSession != nil},
		{"items[deleted]", slices.ContainsFunc(p.Items, func(i ItemChange) bool { return i.Deleted })},
		{"items[metadata]", slices.ContainsFunc(p.Items, func(i ItemChange) bool { return i.Metadata != nil })},
	}
	for _, param := range refused {
		if param.given {
			return invalid(param.name, "When `payment_behavior` is set to `pending_if_incomplete`, you can only pass supported params. `%s` is not supported.", param.name)
		}
	}
	return nil
}

// setUnbilledFields changes the fields that are not invoiced.
func (a *Account) setUnbilledFields(env Env, s *Subscription, p SubscriptionChange) error {
	if err := mergeMetadata(&s.Metadata, p.Metadata); err != nil {
		return err
	}
	set(&s.SavesMethod, p.SavesMethod)
	if p.Method != nil {
		method, err := a.attach(env, s.Customer, "default_payment_method", *p.Method)
		if err != nil {
			return err
		}
		s.Method = method.ID
	}
	if p.CancelAt != nil {
		if *p.CancelAt != 0 && *p.CancelAt <= env.Now {
			return invalid("cancel_at", "`cancel_at` must be in the future.")
		}
		a.cancelLater(env, s, *p.CancelAt, false)
	}
	if p.CancelAtPeriodEnd != nil {
		if *p.CancelAtPeriodEnd {
			a.cancelLater(env, s, s.PeriodEnd, true)
		} else if s.CancelAtPeriodEnd {
			a.cancelLater(env, s, 0, false)
		}
	}
	return nil
}

// update is a change of items in progress.
type update struct {
	s         *Subscription
	was       Doc
	items     []Item
	anchor    Time // new billing_cycle_anchor; zero keeps the old one
	proration string
	behavior  string
	how       presence
}

// executeUpdate applies the update, after its payment where one is required.
func (a *Account) executeUpdate(env Env, u update) error {
	s := u.s
	lines := a.updateLines(env, u)
	if lines == nil {
		a.applyItems(env, s, u.items, u.anchor)
		a.emitChange(env, subscriptionUpdated, u.was, s)
		return nil
	}
	method := a.methodOf(s)
	if method != nil && method.Bank() && u.behavior == "pending_if_incomplete" {
		return invalid("payment_behavior", "`pending_if_incomplete` cannot be used with a bank debit.")
	}
	// A newer update replaces the pending one, whose invoice is voided.
	if s.Pending != nil {
		old := a.Invoices.Get(s.Pending.Invoice)
		s.Pending = nil
		a.void(env, old)
	}
	invoice := a.newInvoice(env, s, reasonUpdate, lines)
	a.finalize(env, invoice)
	if method == nil && invoice.AmountDue > 0 {
		return errNoMethod()
	}
	s.LatestInvoice = invoice.ID
	switch got := a.collect(env, invoice, method, u.how); {
	case got == paid:
		s.Prorations = nil
		a.applyItems(env, s, u.items, u.anchor)
		a.emitChange(env, subscriptionUpdated, u.was, s)
		a.markPaid(env, invoice)
		a.emitPaid(env, invoice)
	case u.behavior == "pending_if_incomplete":
		a.savePending(env, u, invoice)
		a.paymentFailed(env, invoice, got)
	case got == refused && u.behavior == "error_if_incomplete":
		return declined(a.Intents.Get(invoice.Intent).Error)
	case got == needsAction && u.behavior == "error_if_incomplete":
		return errActionRequired()
	default:
		s.Prorations = nil
		a.applyItems(env, s, u.items, u.anchor)
		a.emitChange(env, subscriptionUpdated, u.was, s)
		if got != underway {
			a.paymentFailed(env, invoice, got)
		}
	}
	return nil
}

// updateLines are the lines to invoice now; nil when there are none.
func (a *Account) updateLines(env Env, u update) []Line {
	s := u.s
	if u.anchor != 0 {
		lines := slices.Clone(s.Prorations)
		if u.proration != "none" {
			lines = append(lines, a.prorationCredit(s, env.Now)...)
		}
		end := a.interval(u.items).boundary(u.anchor, 1)
		return append(lines, a.linesFor(u.items, u.anchor, end)...)
	}
	if u.proration == "none" {
		return nil
	}
	shares := append(a.prorationCredit(s, env.Now), a.prorationCharge(s, u.items, env.Now)...)
	if u.proration == "always_invoice" {
		return append(slices.Clone(s.Prorations), shares...)
	}
	s.Prorations = append(s.Prorations, shares...)
	return nil
}

// applyItems replaces the items, and starts a full new period when the anchor moves.
func (a *Account) applyItems(env Env, s *Subscription, items []Item, anchor Time) {
	s.Items = items
	if anchor == 0 {
		return
	}
	s.Anchor, s.PeriodStart = anchor, anchor
	s.PeriodEnd = a.interval(items).boundary(anchor, 1)
	if s.CancelAtPeriodEnd {
		s.CancelAt = s.PeriodEnd
	}
	a.setTimer(max(s.PeriodEnd, env.Now), periodEnds, s)
}
