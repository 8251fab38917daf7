package engine

// PendingUpdate is a change that waits for its invoice to be paid. Until then
// the subscription goes on as it was.
type PendingUpdate struct {
	Items   []Item
	Anchor  Time
	Expires Time
	Invoice string
}

// pendingTime is the longest that an update waits for its payment.
const pendingTime = 23 * hour

// suspend keeps the update until its invoice is paid, at most to the end of the
// period.
func (w *Account) suspend(m Clock, u update, invoice *Invoice) {
	s := u.s
	s.Pending = &PendingUpdate{
		Items: u.items, Anchor: u.anchor, Invoice: invoice.ID,
		Expires: min(s.PeriodEnd, m.Now+pendingTime),
	}
	w.setTimer(s.Pending.Expires, pendingExpires, s)
	w.emitChange(m, subscriptionUpdated, u.was, s)
}

// applyPending makes the update true, now that it is paid. The new period counts
// from when it was asked for: that is what the invoice's lines say.
func (w *Account) applyPending(m Clock, s *Subscription) {
	was, pending := w.Render(s), s.Pending
	s.Pending, s.Prorations = nil, nil
	w.apply(m, s, pending.Items, pending.Anchor)
	w.emit(m, "customer.subscription.pending_update_applied", s)
	w.emitChange(m, subscriptionUpdated, was, s)
}

// pendingExpires drops an update that nobody paid for.
func (w *Account) pendingExpires(m Clock, s *Subscription) {
	if s.Pending != nil && s.Pending.Expires <= m.Now {
		w.dropPending(m, s)
	}
}

func (w *Account) dropPending(m Clock, s *Subscription) {
	was, invoice := w.Render(s), w.Invoices.Get(s.Pending.Invoice)
	s.Pending = nil
	w.void(m, invoice)
	w.emit(m, "customer.subscription.pending_update_expired", s)
	w.emitChange(m, subscriptionUpdated, was, s)
}
