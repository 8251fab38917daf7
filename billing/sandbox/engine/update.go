package engine

import "slices"

// SubscriptionChange is what a caller wants changed; nil and empty leave things
// as they are.
type SubscriptionChange struct {
	Items             []ItemChange
	Behavior          string // payment_behavior
	Proration         string // proration_behavior
	ProrationDate     *Time
	Anchor            string // billing_cycle_anchor: now or unchanged
	CancelAtPeriodEnd *bool
	CancelAt          *Time // zero takes it away
	Metadata          map[string]string
	Method            *string // default_payment_method
	SavesMethod       *string
	OffSession        *bool
}

// UpdateSubscription changes a subscription, and charges for it when the change
// says so.
func (w *Account) UpdateSubscription(m Clock, id string, p SubscriptionChange) (*Subscription, error) {
	s, err := Get(w.Subscriptions, "subscription", id)
	if err != nil {
		return nil, err
	}
	if err := w.checkUpdate(s, p); err != nil {
		return nil, err
	}
	was := w.Render(s)
	if err := w.setPlain(m, s, p); err != nil {
		return nil, err
	}
	if len(p.Items) == 0 && p.Anchor != "now" {
		w.emitChange(m, subscriptionUpdated, was, s)
		return s, nil
	}
	items, err := w.changeItems(m, s.Items, p.Items)
	if err != nil {
		return nil, err
	}
	if currency := w.Prices.Get(items[0].Price).Currency; currency != s.Currency {
		return nil, errMixed(s.Currency)
	}
	u := update{s: s, was: was, items: items, proration: p.Proration, behavior: p.Behavior, how: there}
	if p.OffSession != nil && *p.OffSession {
		u.how = away
	}
	// Another interval cannot keep the old boundaries.
	if p.Anchor == "now" || w.interval(items) != w.interval(s.Items) {
		u.anchor = m.Now
	}
	return s, w.carryOut(m, u)
}

// checkUpdate holds what the API refuses whatever the prices are.
func (w *Account) checkUpdate(s *Subscription, p SubscriptionChange) error {
	if s.ended() {
		return invalid("", "A canceled subscription can only update its cancellation_details and metadata.")
	}
	if p.Behavior == "pending_if_incomplete" {
		if err := checkPendingParams(p); err != nil {
			return err
		}
	}
	// The pair was refused to a public project word for word (postiz-app 1904).
	if p.ProrationDate != nil && p.Anchor == "now" {
		return invalid("proration_date", "You cannot specify `proration_date` when `billing_cycle_anchor=now`.")
	}
	cancels := p.CancelAtPeriodEnd != nil || p.CancelAt != nil
	// A schedule owns how its subscription goes on (dust 32051).
	if cancels && s.Schedule != "" {
		return invalid("cancel_at_period_end", "The subscription is managed by the subscription schedule `%s`, and updating any cancelation behavior directly is not allowed. Please update the schedule instead.", s.Schedule)
	}
	if p.Anchor == "now" && s.Schedule != "" {
		return invalid("billing_cycle_anchor", "The sandbox does not move the billing cycle of a scheduled subscription: release `%s` first.", s.Schedule)
	}
	if p.CancelAtPeriodEnd != nil && *p.CancelAtPeriodEnd && p.CancelAt != nil && *p.CancelAt != 0 {
		return invalid("cancel_at", "You may only set one of `cancel_at` and `cancel_at_period_end`.")
	}
	return nil
}

// checkPendingParams holds Stripe's list of what may come with a pending update
// (docs: billing/subscriptions/pending-updates; the message as codecov-api 839
// got it). Everything else would take effect although nothing was paid.
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

// setPlain changes what costs nothing.
func (w *Account) setPlain(m Clock, s *Subscription, p SubscriptionChange) error {
	if err := merge(&s.Metadata, p.Metadata); err != nil {
		return err
	}
	set(&s.SavesMethod, p.SavesMethod)
	if p.Method != nil {
		method, err := w.attach(m, s.Customer, "default_payment_method", *p.Method)
		if err != nil {
			return err
		}
		s.Method = method.ID
	}
	if p.CancelAt != nil {
		if *p.CancelAt != 0 && *p.CancelAt <= m.Now {
			return invalid("cancel_at", "`cancel_at` must be in the future.")
		}
		w.cancelLater(m, s, *p.CancelAt, false)
	}
	if p.CancelAtPeriodEnd != nil {
		if *p.CancelAtPeriodEnd {
			w.cancelLater(m, s, s.PeriodEnd, true)
		} else if s.CancelAtPeriodEnd {
			w.cancelLater(m, s, 0, false)
		}
	}
	return nil
}

// update is a change of items on its way.
type update struct {
	s         *Subscription
	was       Doc
	items     []Item
	anchor    Time // where periods count from afterwards; zero keeps it
	proration string
	behavior  string
	how       presence
}

// carryOut applies the update, after it was paid for where it has to be.
func (w *Account) carryOut(m Clock, u update) error {
	s := u.s
	lines := w.updateLines(m, u)
	if lines == nil {
		w.apply(m, s, u.items, u.anchor)
		w.emitChange(m, subscriptionUpdated, u.was, s)
		return nil
	}
	method := w.methodOf(s)
	if method != nil && method.Bank() && u.behavior == "pending_if_incomplete" {
		return invalid("payment_behavior", "`pending_if_incomplete` cannot be used with a bank debit.")
	}
	// A newer update replaces the one before, which can then no longer be paid for.
	if s.Pending != nil {
		old := w.Invoices.Get(s.Pending.Invoice)
		s.Pending = nil
		w.void(m, old)
	}
	invoice, err := w.newInvoice(m, s, reasonUpdate, lines)
	if err != nil {
		return err
	}
	w.finalize(m, invoice)
	if method == nil && invoice.AmountDue > 0 {
		return errNoMethod()
	}
	s.LatestInvoice = invoice.ID
	switch got := w.collect(m, invoice, method, u.how); {
	case got == paid:
		s.Prorations = nil
		w.apply(m, s, u.items, u.anchor)
		w.emitChange(m, subscriptionUpdated, u.was, s)
		w.markPaid(m, invoice)
		w.emitPaid(m, invoice)
	case u.behavior == "pending_if_incomplete":
		w.suspend(m, u, invoice)
		w.fail(m, invoice, got)
	case got == refused && u.behavior == "error_if_incomplete":
		return declined(w.Intents.Get(invoice.Intent).Error)
	case got == needsAction && u.behavior == "error_if_incomplete":
		return errActionRequired()
	default:
		s.Prorations = nil
		w.apply(m, s, u.items, u.anchor)
		w.emitChange(m, subscriptionUpdated, u.was, s)
		if got != underway {
			w.fail(m, invoice, got)
		}
	}
	return nil
}

// updateLines is what has to be paid now; nil when nothing is.
func (w *Account) updateLines(m Clock, u update) []Line {
	s := u.s
	if u.anchor != 0 {
		lines := slices.Clone(s.Prorations)
		if u.proration != "none" {
			lines = append(lines, w.unused(s, m.Now)...)
		}
		end := w.interval(u.items).boundary(u.anchor, 1)
		return append(lines, w.linesFor(u.items, u.anchor, end)...)
	}
	if u.proration == "none" {
		return nil
	}
	shares := append(w.unused(s, m.Now), w.remaining(s, u.items, m.Now)...)
	if u.proration == "always_invoice" {
		return append(slices.Clone(s.Prorations), shares...)
	}
	s.Prorations = append(s.Prorations, shares...)
	return nil
}

// apply switches the items, and begins a full new period where the anchor moves.
func (w *Account) apply(m Clock, s *Subscription, items []Item, anchor Time) {
	s.Items = items
	if anchor == 0 {
		return
	}
	s.Anchor, s.PeriodStart = anchor, anchor
	s.PeriodEnd = w.interval(items).boundary(anchor, 1)
	if s.CancelAtPeriodEnd {
		s.CancelAt = s.PeriodEnd
	}
	w.setTimer(max(s.PeriodEnd, m.Now), periodEnds, s)
}
