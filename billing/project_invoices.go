package billing

import (
	"cmp"
	"slices"
	"time"
)

// purchase is a paid invoice that bought a period.
type purchase struct {
	invoice     ProviderInvoice
	line        ProviderLine
	terms       Terms
	change      int  // position of the change that it fulfils or renews, or none
	unrequested bool // an update that no change requested
}

// settleInvoices works out what each paid invoice bought, and credits those that are
// not settled yet, oldest first.
func (p *projector) settleInvoices() {
	purchases := paidPurchases(p.remote.Invoices)
	upgrades := p.paidUpgrades(purchases)
	p.voidReplaced(upgrades)
	for _, paid := range purchases {
		late, byCheckout := p.collectedLate(paid.invoice), p.replacedByCheckout(paid.invoice)
		if late || byCheckout || replacedBy(upgrades, paid.invoice) {
			p.refundReplaced(paid, late, byCheckout)
			continue
		}
		bought, known := p.resolvePurchase(paid)
		if !known {
			p.addAlert(UnknownPrice, paid.invoice.ID) // not the price: other customers may pay it, too
			continue
		}
		p.purchases = append(p.purchases, bought)
		source := Source{Invoice, bought.invoice.ID}
		if !hasPayment(p.current.Payments, source) && !hasPayment(p.Settled, source) {
			p.Settled = append(p.Settled, p.payment(source, bought))
		}
	}
	if p.Subscription.Duplicate {
		p.refundAll()
	}
}

// paidPurchases are the paid invoices that bought a period, with the line that says which,
// ordered by period. Any other invoice, such as one created by hand, buys none.
func paidPurchases(invoices []ProviderInvoice) []purchase {
	var purchases []purchase
	for _, invoice := range invoices {
		if invoice.Status != InvoicePaid || !invoice.Reason.buysPeriod() {
			continue
		}
		if line, found := invoice.periodLine(); found {
			purchases = append(purchases, purchase{invoice: invoice, line: line})
		}
	}
	slices.SortFunc(purchases, func(a, b purchase) int {
		return cmp.Or(
			cmp.Compare(a.line.Period.Start, b.line.Period.Start),
			cmp.Compare(a.invoice.CreatedAt, b.invoice.CreatedAt),
			cmp.Compare(a.invoice.ID, b.invoice.ID),
		)
	})
	return purchases
}

// rank orders invoices whose periods start in the same second.
func (r InvoiceReason) rank() int {
	return slices.Index([]InvoiceReason{ReasonCreate, ReasonCycle, ReasonUpdate}, r)
}

func (r InvoiceReason) buysPeriod() bool {
	return r == ReasonCreate || r == ReasonCycle || r == ReasonUpdate
}

// periodLine is the line that bills the latest full period of a subscription.
func (i ProviderInvoice) periodLine() (latest ProviderLine, found bool) {
	for _, line := range i.Lines {
		if !line.Subscription || line.Proration || line.PriceID == "" {
			continue
		}
		if !found || line.Period.Start > latest.Period.Start {
			latest, found = line, true
		}
	}
	return latest, found
}

// LacksPeriod reports whether the invoice buys a period and no line says which.
func (i ProviderInvoice) LacksPeriod() bool {
	_, found := i.periodLine()
	return i.Reason.buysPeriod() && !found
}

// resolvePurchase finds the terms of a purchase: those of the change that requested it, else
// the subscription's at this price, else the catalog's.
func (p *projector) resolvePurchase(bought purchase) (purchase, bool) {
	at := p.changeFor(bought)
	bought.change = at
	if at == none {
		bought.unrequested = bought.invoice.Reason == ReasonUpdate
		terms, known := p.termsOf(bought.line.PriceID)
		bought.terms = terms
		return bought, known
	}
	bought.terms = p.current.Changes[at].Target
	switch {
	case !bought.fulfils(p.current.Changes[at]):
		if _, paid := p.applied[at]; !paid {
			p.applied[at] = ""
		}
	case p.paidBy(at) == "" || p.paidBy(at) == bought.invoice.ID:
		p.applied[at] = bought.invoice.ID
	default:
		// Two paid updates for one change: the customer was charged twice.
		bought.unrequested = bought.invoice.Reason == ReasonUpdate
	}
	return bought, true
}

// fulfils distinguishes the invoice that a change was waiting for from the later ones that
// renew its terms.
func (b purchase) fulfils(c Change) bool {
	switch c.Kind {
	case Checkout:
		return b.invoice.Reason == ReasonCreate
	case Upgrade:
		return b.invoice.Reason == ReasonUpdate
	default:
		return b.invoice.Reason == ReasonCycle
	}
}

// paidBy is the invoice that paid for a change, if known.
func (p *projector) paidBy(position int) string {
	if invoiceID := p.applied[position]; invoiceID != "" {
		return invoiceID
	}
	if c := p.current.Changes[position]; c.State == ChangeApplied {
		return c.InvoiceID
	}
	return ""
}

// clockSkew is how far the provider's clock may be behind ours.
const clockSkew = int64(time.Minute / time.Millisecond)

// changeFor finds the change that a purchase fulfils or renews: the latest one to its
// price that was requested before the period began. A plan's terms can differ between
// two purchases at one price, so the time decides.
func (p *projector) changeFor(bought purchase) int {
	latest := none
	for i, c := range p.current.Changes {
		if c.Target.PriceID != bought.line.PriceID || c.replaces(p.current.Subscription) {
			continue
		}
		if c.InvoiceID == bought.invoice.ID {
			return i
		}
		begins := bought.line.Period.Start
		if c.Kind != Downgrade {
			begins += clockSkew
		}
		if bought.invoice.Reason == ReasonUpdate && c.Kind != Upgrade || c.RequestedAt > begins {
			continue
		}
		if latest == none || c.requestedAfter(p.current.Changes[latest]) {
			latest = i
		}
	}
	if latest == none && bought.invoice.Reason == ReasonUpdate {
		return p.unpaidUpgrade(bought)
	}
	return latest
}

// unpaidUpgrade finds the upgrade that a paid update fulfils although it seems to have
// been requested later: the clock that dated the request may be hours ahead, and money
// must not depend on it. An update that was settled as unrequested stays so.
func (p *projector) unpaidUpgrade(bought purchase) int {
	earliest := none
	if hasPayment(p.current.Payments, Source{Invoice, bought.invoice.ID}) {
		return earliest
	}
	for i, c := range p.current.Changes {
		if c.Kind != Upgrade || c.Target.PriceID != bought.line.PriceID || p.isPaid(i) {
			continue
		}
		if earliest == none || p.current.Changes[earliest].requestedAfter(c) {
			earliest = i
		}
	}
	return earliest
}

func (p *projector) termsOf(priceID string) (Terms, bool) {
	if own := p.current.Subscription.Terms; own.PriceID == priceID {
		return own, true
	}
	terms, known := p.current.Prices[priceID]
	return terms, known
}

func (p *projector) payment(source Source, bought purchase) Payment {
	settled := Payment{
		Source:       source,
		AmountCents:  bought.invoice.AmountPaid,
		BalanceCents: bought.invoice.FromBalance,
		Currency:     bought.invoice.Currency,
		IntentID:     bought.invoice.IntentID,
		ChargeID:     bought.invoice.ChargeID,
		PlanID:       bought.terms.PlanID,
		Period:       bought.line.Period,
		Free:         bought.terms.Free(),
	}
	if p.grants(bought) {
		settled.Credits = bought.terms.credits()
	}
	return settled
}

// grants reports whether the purchase grants the credits of its terms.
func (p *projector) grants(bought purchase) bool {
	switch {
	case p.Subscription.Duplicate:
		return false
	case bought.unrequested:
		p.addAlert(UnrequestedUpdate, bought.invoice.ID)
		return false
	case bought.terms.Free():
		ended := p.current.Subscription.Ended() && bought.line.Period.Start >= p.current.Subscription.EndedAt
		return !ended && freeGrantDue(concat(p.current.Payments, p.Settled), bought.terms.PlanID, bought.line.Period)
	default:
		// A trial's line is zero. Payment from the customer's balance counts as payment.
		return bought.line.AmountCents > 0
	}
}

// refundAll requests refunds of all paid invoices of a duplicate subscription.
func (p *projector) refundAll() {
	for _, invoice := range p.remote.Invoices {
		if invoice.Status == InvoicePaid && !hasPayment(p.current.Payments, Source{Invoice, invoice.ID}) {
			p.refundPayment(invoice)
		}
	}
}
