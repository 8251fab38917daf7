package billing

import (
	"cmp"
	"slices"
)

// setScheduled finds the downgrade that waits for the renewal. An invoiced and unpaid
// renewal comes first, whatever the schedule has after it: it takes effect when it is
// charged, which is after the end of the previous period. Otherwise it is the
// schedule's next phase, or a price that was set at the provider by hand, which the
// next renewal uses.
func (p *projector) setScheduled() {
	s := &p.Subscription
	p.queued, p.following, s.Scheduled = none, none, nil
	if !s.InUse() {
		return
	}
	priceID, next := p.remote.PriceID, p.remote.Next
	at := max(s.Period.End, p.remote.Period.End)
	before := at
	chargedAt, billed := p.remote.renewalCharge(priceID)
	billed = billed && priceID != s.Terms.PriceID
	switch {
	case billed:
		before, at = s.Period.End, max(s.Period.End, chargedAt)
		if next != nil {
			p.following = p.findChange(Downgrade, next.PriceID, "", next.At)
		}
	case next != nil:
		priceID, at, before = next.PriceID, next.At, next.At
	}
	if priceID == "" || priceID == s.Terms.PriceID {
		return
	}
	p.queued = p.findChange(Downgrade, priceID, "", before)
	if terms, known := p.targetTerms(p.queued, priceID); known {
		s.Scheduled = &ScheduledChange{Target: terms, EffectiveAt: at, Billed: billed}
	}
}

// renewalCharge reports whether a renewal at the price is invoiced and unpaid, and
// when its draft is charged; zero for one that is not a draft.
func (s ProviderSubscription) renewalCharge(priceID string) (chargedAt int64, found bool) {
	for _, invoice := range s.Invoices {
		if line, unpaid := invoice.unpaidRenewal(); unpaid && line.PriceID == priceID {
			chargedAt, found = max(chargedAt, invoice.FinalizesAt), true
		}
	}
	return chargedAt, found
}

// UnpaidRenewal is the unpaid renewal invoice of the current period; empty for none.
func (s ProviderSubscription) UnpaidRenewal() (invoiceID string) {
	for _, invoice := range s.Invoices {
		if line, unpaid := invoice.unpaidRenewal(); unpaid && line.Period.Start == s.Period.Start {
			return invoice.ID
		}
	}
	return ""
}

// unpaidRenewal is the line that a renewal bills its period with, while it is unpaid.
func (i ProviderInvoice) unpaidRenewal() (line ProviderLine, unpaid bool) {
	if i.Reason != ReasonCycle || i.Status != InvoiceDraft && i.Status != InvoiceOpen {
		return line, false
	}
	return i.periodLine()
}

// setPending finds the upgrade that waits for its payment: a pending update at the
// provider, or a checkout that would replace the subscription.
func (p *projector) setPending() {
	s := &p.Subscription
	p.waiting = none
	*s = s.Awaiting(p.current.Changes, p.now)
	remote := p.remote.Pending
	if remote == nil || !s.InUse() {
		return
	}
	billedAt := p.now
	if p.openInvoice = openInvoiceFor(p.remote.Invoices, remote.PriceID); p.openInvoice.ID != "" {
		billedAt = p.openInvoice.CreatedAt
	}
	p.waiting = p.findChange(Upgrade, remote.PriceID, p.openInvoice.ID, billedAt+clockSkew)
	if terms, known := p.targetTerms(p.waiting, remote.PriceID); known {
		s.Pending = &PendingChange{Target: terms, ExpiresAt: remote.ExpiresAt, PaymentURL: p.openInvoice.PaymentURL}
	}
}

// findChange finds the requested change behind what the provider is about to do: the
// one with its invoice, else the latest that was requested in time.
func (p *projector) findChange(kind ChangeKind, priceID, invoiceID string, before int64) int {
	latest := none
	for i, c := range p.current.Changes {
		switch {
		case c.Kind != kind || c.Target.PriceID != priceID:
		case invoiceID != "" && c.InvoiceID == invoiceID:
			return i
		case c.RequestedAt <= before && (latest == none || c.requestedAfter(p.current.Changes[latest])):
			latest = i
		}
	}
	return latest
}

// targetTerms are the terms of the change, else those of the price in the catalog.
func (p *projector) targetTerms(position int, priceID string) (Terms, bool) {
	if position != none {
		return p.current.Changes[position].Target, true
	}
	terms, known := p.termsOf(priceID)
	if !known {
		p.addAlert(UnknownPrice, p.remote.ID)
	}
	return terms, known
}

func (p *projector) isPaid(position int) bool {
	_, paid := p.applied[position]
	return paid || p.current.Changes[position].State == ChangeApplied
}

func openInvoiceFor(invoices []ProviderInvoice, priceID string) (latest ProviderInvoice) {
	for _, invoice := range invoices {
		line, found := invoice.periodLine()
		if !found || line.PriceID != priceID || invoice.Status != InvoiceOpen {
			continue
		}
		if cmp.Or(cmp.Compare(invoice.CreatedAt, latest.CreatedAt), cmp.Compare(invoice.ID, latest.ID)) > 0 {
			latest = invoice
		}
	}
	return latest
}

// updateChanges updates the state of each change. One that the provider never had stays as
// it is: its call may be on its way, and recovery of that operation closes it.
func (p *projector) updateChanges() {
	for i, was := range p.current.Changes {
		if was.replaces(p.current.Subscription) {
			continue
		}
		updated := p.progress(i)
		if updated.State != was.State || updated.InvoiceID != was.InvoiceID || updated.ExpiresAt != was.ExpiresAt || updated.PaymentURL != was.PaymentURL {
			p.Changes = append(p.Changes, updated)
		}
	}
	// At most one change of a kind may be pending at any moment, so those that leave the
	// state are written first.
	slices.SortStableFunc(p.Changes, func(a, b Change) int { return cmp.Compare(a.waiting(), b.waiting()) })
}

func (c Change) waiting() int {
	if c.State == ChangePending {
		return 1
	}
	return 0
}

func (p *projector) progress(position int) Change {
	c := p.current.Changes[position]
	switch {
	case p.isPaid(position) && !p.Subscription.Duplicate:
		c.State, c.InvoiceID = ChangeApplied, p.paidBy(position)
	case position == p.waiting:
		c.State, c.ExpiresAt = ChangePending, p.remote.Pending.ExpiresAt
		if p.openInvoice.ID != "" {
			c.InvoiceID, c.PaymentURL = p.openInvoice.ID, p.openInvoice.PaymentURL
		}
	case position == p.following, position == p.queued && p.following == none:
		c.State = ChangePending
	case c.Kind == Checkout && !p.Subscription.Ended():
	case c.State == ChangePending:
		c.State = ChangeDropped
	}
	return c
}
