package billing

// Around the end of a period the provider drafts the renewal's invoice and charges
// it an hour later. An upgrade that is paid in that hour starts a full period of its
// own, and the provider still charges the draft: the customer would pay for the old
// plan's period and the new plan's.

// paidUpgrades are the paid updates that were requested here, without those made at
// the provider by hand.
func (p *projector) paidUpgrades(purchases []purchase) (upgrades []purchase) {
	for _, bought := range purchases {
		if bought.invoice.Reason == ReasonUpdate && p.changeFor(bought) != none {
			upgrades = append(upgrades, bought)
		}
	}
	return upgrades
}

// replacedBy reports whether an upgrade was paid in the period of a renewal before the
// renewal was. A renewal that was paid first is kept. The provider counts in seconds:
// of two that were paid in the same one the renewal is the replaced one, since an
// upgrade is only requested after earlier payments are known.
func replacedBy(upgrades []purchase, renewal ProviderInvoice) bool {
	line, found := renewal.periodLine()
	if !found || renewal.Reason != ReasonCycle {
		return false
	}
	for _, upgrade := range upgrades {
		start := upgrade.line.Period.Start
		if start < line.Period.Start || start >= line.Period.End {
			continue
		}
		switch renewal.Status {
		case InvoiceDraft, InvoiceOpen:
			return renewal.AmountDue > 0
		case InvoicePaid:
			paid := renewal.AmountPaid + renewal.FromBalance
			return paid > 0 && upgrade.invoice.PaidAt != 0 && renewal.PaidAt >= upgrade.invoice.PaidAt
		}
	}
	return false
}

// collectedLate reports whether a renewal was collected after the subscription had
// ended, such as by a debit that was processing when another replaced it. Nothing was
// delivered for it.
func (p *projector) collectedLate(renewal ProviderInvoice) bool {
	ended := p.current.Subscription.EndedAt
	if ended == 0 && p.remote.Status.Terminal() {
		ended = p.remote.EndedAt
	}
	return ended != 0 && renewal.Reason == ReasonCycle && renewal.AmountPaid+renewal.FromBalance > 0 && renewal.PaidAt > ended
}

// replacedByCheckout reports whether a renewal was collected after the customer had
// paid for the replacing subscription in its checkout. Bank debits are collected days
// later and in any order, so the times of collection are not compared.
func (p *projector) replacedByCheckout(renewal ProviderInvoice) bool {
	from := p.current.ReplacedFrom
	return from != 0 && p.current.Subscription.Ended() && renewal.Reason == ReasonCycle && renewal.AmountPaid+renewal.FromBalance > 0 && renewal.PaidAt >= from
}

// voidReplaced requests voiding of the unpaid renewals that an upgrade has replaced.
func (p *projector) voidReplaced(upgrades []purchase) {
	for _, invoice := range p.remote.Invoices {
		if invoice.Status != InvoicePaid && replacedBy(upgrades, invoice) {
			p.addAction(VoidRenewal, invoice.ID)
		}
	}
}

// refundReplaced handles a renewal that was collected although it had been replaced:
// it grants nothing and is refunded. What the customer's balance at the provider has
// paid is credited to that balance: an invoice that the balance covers can be neither
// voided before it is finalized, which pays it, nor refunded afterwards.
//
// One that was collected late raises an alert, unless the customer had replaced the
// subscription: a customer who pays an overdue renewal may expect to have the plan
// again.
func (p *projector) refundReplaced(bought purchase, late, byCheckout bool) {
	source := Source{Invoice, bought.invoice.ID}
	if hasPayment(p.current.Payments, source) {
		// It was booked before the checkout was collected. The refund claws back the credits
		// that the charge has paid. What the balance paid is not returned, because nothing
		// would claw back those credits.
		if byCheckout && bought.invoice.AmountPaid > 0 {
			p.refundPayment(bought.invoice)
		}
		return
	}
	terms, _ := p.termsOf(bought.line.PriceID)
	p.Settled = append(p.Settled, Payment{
		Source: source, AmountCents: bought.invoice.AmountPaid, BalanceCents: bought.invoice.FromBalance, Currency: bought.invoice.Currency,
		IntentID: bought.invoice.IntentID, ChargeID: bought.invoice.ChargeID, PlanID: terms.PlanID, Period: bought.line.Period,
	})
	if late && !byCheckout {
		p.addAlert(PaidLate, bought.invoice.ID)
	}
	if !p.Subscription.Duplicate { // refundAll handles duplicates
		p.refundPayment(bought.invoice)
	}
}

// refundPayment returns what was paid of an invoice to where it came from: the card,
// and the customer's balance at the provider.
func (p *projector) refundPayment(invoice ProviderInvoice) {
	if invoice.AmountPaid > 0 {
		p.addAction(RefundInvoice, invoice.ID)
	}
	if invoice.FromBalance > 0 {
		p.addAction(ReturnBalance, invoice.ID)
	}
}
