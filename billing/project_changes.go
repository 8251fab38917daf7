package billing

import "cmp"

// scheduled finds the downgrade that waits for the renewal: the next phase of the
// provider's schedule, or, once the phase has begun, the price that is billed and
// not yet paid. That one takes effect when it is charged, which is after the end of
// the period before.
func (p *projector) scheduled() {
	s := &p.Subscription
	p.queued, s.Scheduled = none, nil
	if !s.Live() {
		return
	}
	priceID, at, billed := p.said.PriceID, s.Period.End, p.said.Next == nil
	if !billed {
		priceID, at = p.said.Next.PriceID, p.said.Next.At
	}
	if priceID == "" || priceID == s.Terms.PriceID {
		return
	}
	p.queued = p.asked(Downgrade, priceID, "", at)
	if billed {
		at = max(at, chargedAt(p.said.Invoices, priceID))
	}
	if terms, known := p.wanted(p.queued, priceID); known {
		s.Scheduled = &ScheduledChange{Target: terms, EffectiveAt: at, Billed: billed}
	}
}

// chargedAt is when the draft of a renewal at the price is charged; zero for none.
func chargedAt(invoices []ProviderInvoice, priceID string) (at int64) {
	for _, invoice := range invoices {
		line, found := invoice.periodLine()
		if found && invoice.Status == InvoiceDraft && invoice.Reason == ReasonCycle && line.PriceID == priceID {
			at = max(at, invoice.FinalizesAt)
		}
	}
	return at
}

// pending finds the upgrade that waits for its payment: at the provider, or on
// the page of a checkout that would replace the subscription.
func (p *projector) pending() {
	s := &p.Subscription
	p.waiting = none
	*s = s.Awaiting(p.known.Changes, p.now)
	said := p.said.Pending
	if said == nil || !s.Live() {
		return
	}
	billedAt := p.now
	if p.openInvoice = openInvoiceFor(p.said.Invoices, said.PriceID); p.openInvoice.ID != "" {
		billedAt = p.openInvoice.CreatedAt
	}
	p.waiting = p.asked(Upgrade, said.PriceID, p.openInvoice.ID, billedAt+clockSkew)
	if terms, known := p.wanted(p.waiting, said.PriceID); known {
		s.Pending = &PendingChange{Target: terms, ExpiresAt: said.ExpiresAt, PaymentURL: p.openInvoice.PaymentURL}
	}
}

// asked finds the change that the provider is about to make: the one that has
// its invoice, else the latest that was asked for in time.
func (p *projector) asked(kind ChangeKind, priceID, invoiceID string, before int64) int {
	latest := none
	for i, c := range p.known.Changes {
		switch {
		case c.Kind != kind || c.Target.PriceID != priceID:
		case invoiceID != "" && c.InvoiceID == invoiceID:
			return i
		case c.RequestedAt <= before && (latest == none || c.later(p.known.Changes[latest])):
			latest = i
		}
	}
	return latest
}

// wanted are the terms of the change, and else what the price means in the
// catalog.
func (p *projector) wanted(position int, priceID string) (Terms, bool) {
	if position != none {
		return p.known.Changes[position].Target, true
	}
	terms, known := p.termsOf(priceID)
	if !known {
		p.alert(UnknownPrice, priceID)
	}
	return terms, known
}

func (p *projector) paidFor(position int) bool {
	_, paid := p.applied[position]
	return paid || p.known.Changes[position].State == ChangeApplied
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

// changes notes how far each change has come. One that was never seen at the
// provider stays as it is: the call that asks for it may be on its way, and
// whoever recovers that call closes it.
func (p *projector) changes() {
	for i, was := range p.known.Changes {
		if was.replaces(p.known.Subscription) {
			continue
		}
		is := p.progress(i)
		if is.State != was.State || is.InvoiceID != was.InvoiceID || is.ExpiresAt != was.ExpiresAt || is.PaymentURL != was.PaymentURL {
			p.Changes = append(p.Changes, is)
		}
	}
}

func (p *projector) progress(position int) Change {
	c := p.known.Changes[position]
	switch {
	case p.paidFor(position) && !p.Subscription.Extra:
		c.State, c.InvoiceID = ChangeApplied, p.paidBy(position)
	case position == p.waiting:
		c.State, c.ExpiresAt = ChangePending, p.said.Pending.ExpiresAt
		if p.openInvoice.ID != "" {
			c.InvoiceID, c.PaymentURL = p.openInvoice.ID, p.openInvoice.PaymentURL
		}
	case position == p.queued:
		c.State = ChangePending
	case c.Kind == Checkout && !p.Subscription.Ended():
	case c.State == ChangePending:
		c.State = ChangeDropped
	}
	return c
}
