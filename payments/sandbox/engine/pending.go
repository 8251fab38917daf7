package engine

// PendingUpdate is a change that applies when its invoice is paid. Until then the
// subscription is unchanged.
type PendingUpdate struct {
	Items   []Item
	Anchor  Time
	Expires Time
	Invoice string
}

// pendingTime is how long an update waits for its payment at most.
const pendingTime = 23 * hour

// savePending stores the update as pending until its invoice is paid, at most to the
// end of the period.
func (a *Account) savePending(env Env, u update, invoice *Invoice) {
	s := u.s
	s.Pending = &PendingUpdate{
		Items: u.items, Anchor: u.anchor, Invoice: invoice.ID,
		Expires: min(s.PeriodEnd, env.Now+pendingTime),
	}
	a.setTimer(s.Pending.Expires, pendingExpires, s)
	a.emitChange(env, subscriptionUpdated, u.was, s)
}

// applyPending applies the update after payment. The new period starts when the update
// was requested, as the invoice's lines say.
func (a *Account) applyPending(env Env, s *Subscription) {
	was, pending := a.Render(s), s.Pending
	s.Pending, s.Prorations = nil, nil
	a.applyItems(env, s, pending.Items, pending.Anchor)
	a.emit(env, "customer.subscription.pending_update_applied", s)
	a.emitChange(env, subscriptionUpdated, was, s)
}

// pendingExpires drops an update that was not paid in time.
func (a *Account) pendingExpires(env Env, s *Subscription) {
	if s.Pending != nil && s.Pending.Expires <= env.Now {
		a.dropPending(env, s)
	}
}

func (a *Account) dropPending(env Env, s *Subscription) {
	was, invoice := a.Render(s), a.Invoices.Get(s.Pending.Invoice)
	s.Pending = nil
	a.void(env, invoice)
	a.emit(env, "customer.subscription.pending_update_expired", s)
	a.emitChange(env, subscriptionUpdated, was, s)
}
