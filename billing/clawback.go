package billing

import (
	"math/bits"
	"slices"

	"purser/ids"
	"purser/metering"
)

// Reversal is the total of a payment's money that was returned.
type Reversal struct {
	RefundedCents int64
	DisputedCents int64
}

// Reversed sums the refunds and disputes of a charge. The provider's amount_refunded
// is not used: it includes refunds that failed later.
func (c ProviderCharge) Reversed() Reversal {
	var r Reversal
	for _, refund := range c.Refunds {
		if !refund.failed() {
			r.RefundedCents += max(0, refund.AmountCents)
		}
	}
	for _, dispute := range c.Disputes {
		if dispute.withdrawn() {
			r.DisputedCents += max(0, dispute.AmountCents)
		}
	}
	return r
}

// HasFailedRefund reports whether money that was sent back, or claimed in a dispute, is no
// longer with the customer.
func (c ProviderCharge) HasFailedRefund() bool {
	return slices.ContainsFunc(c.Refunds, ProviderRefund.failed) ||
		slices.ContainsFunc(c.Disputes, func(d ProviderDispute) bool { return !d.withdrawn() })
}

func (r ProviderRefund) failed() bool { return r.Status == "failed" || r.Status == "canceled" }

// LostCents is the money of disputes that are closed and lost.
func (c ProviderCharge) LostCents() (cents int64) {
	for _, dispute := range c.Disputes {
		if dispute.Status == "lost" && dispute.withdrawn() {
			cents += max(0, dispute.AmountCents)
		}
	}
	return cents
}

// withdrawn reports whether the dispute holds the money: from the withdrawal until the
// reinstatement, and for good when it is lost.
func (d ProviderDispute) withdrawn() bool {
	switch d.Status {
	case "won":
		return false
	case "lost":
		return d.Movements > 0
	default:
		return d.Movements == 1
	}
}

// Movement is a change of one balance: credits clawed back, or returned.
type Movement struct {
	CreditID  ids.ID
	CreditKey string
	Kind      metering.EntryKind // refund or dispute
	Delta     metering.Delta
	Target    metering.Amount // how much of the credit is clawed back afterwards
}

// From is the delta that reaches Target from what is clawed back so far. It differs
// from Delta when an earlier movement could not be booked in full.
func (m Movement) From(taken metering.Amount) metering.Delta { return difference(taken, m.Target) }

// Reverse claws back of each credit what the reversed money had bought, or returns
// it when less is reversed than before. The target is absolute,
//
//	floor(credited × min(paid, refunded + disputed) ÷ paid)
//
// where paid includes what the customer's balance has paid, which a refund leaves alone,
// and the movements are the difference to what was clawed back already, so any order
// and number of reports ends in the same balance. A payment of zero claws back nothing.
// Where refunds and disputes changed together, each has a movement of its own, and
// returned credits come first: they make room for what is clawed back.
func (p Payment) Reverse(r Reversal) (Payment, []Movement) {
	next := p
	next.RefundedCents, next.DisputedCents = r.RefundedCents, r.DisputedCents
	next.TakenBack = nil
	steps := p.reversalSteps(r)
	var movements []Movement
	for _, credited := range p.Credits {
		taken := p.TakenBackOf(credited.CreditID)
		for _, step := range steps {
			target := p.shareOf(credited.Amount, step.total)
			if target != taken {
				movements = append(movements, Movement{credited.CreditID, credited.CreditKey, step.kind, difference(taken, target), target})
			}
			taken = target
		}
		if taken > 0 {
			next.TakenBack = append(next.TakenBack, Grant{credited.CreditID, credited.CreditKey, taken})
		}
	}
	return next, movements
}

// reversalStep is a change of the reversed total, with its reason.
type reversalStep struct {
	kind  metering.EntryKind
	total Reversal
}

// reversalSteps splits a report by reason. An unchanged report still has one step: an
// earlier one may not have been booked in full.
func (p Payment) reversalSteps(r Reversal) []reversalStep {
	refunds, disputes := r.RefundedCents != p.RefundedCents, r.DisputedCents != p.DisputedCents
	switch {
	case refunds && r.DisputedCents < p.DisputedCents:
		return []reversalStep{
			{metering.EntryDispute, Reversal{p.RefundedCents, r.DisputedCents}},
			{metering.EntryRefund, r},
		}
	case refunds && disputes:
		return []reversalStep{
			{metering.EntryRefund, Reversal{r.RefundedCents, p.DisputedCents}},
			{metering.EntryDispute, r},
		}
	case disputes, !refunds && r.RefundedCents == 0:
		return []reversalStep{{metering.EntryDispute, r}}
	default:
		return []reversalStep{{metering.EntryRefund, r}}
	}
}

// shareOf is the part of an amount that the reversed money has paid for.
func (p Payment) shareOf(amount metering.Amount, r Reversal) metering.Amount {
	paid := uint64(max(0, p.AmountCents)) + uint64(max(0, p.BalanceCents))
	return share(amount, min(paid, uint64(max(0, r.RefundedCents))+uint64(max(0, r.DisputedCents))), paid)
}

// TakenBackOf is how much of a credit is clawed back.
func (p Payment) TakenBackOf(creditID ids.ID) metering.Amount {
	if i := slices.IndexFunc(p.TakenBack, func(g Grant) bool { return g.CreditID == creditID }); i >= 0 {
		return p.TakenBack[i].Amount
	}
	return 0
}

// share is floor(amount × part ÷ whole) for a part of at most the whole, exactly:
// the product has up to 128 bits, the quotient is never more than the amount.
func share(amount metering.Amount, part, whole uint64) metering.Amount {
	if part == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(amount), part)
	quotient, _ := bits.Div64(hi, lo, whole)
	return metering.Amount(quotient)
}

// difference is the change of the balance when the clawed-back amount changes.
func difference(taken, target metering.Amount) metering.Delta {
	if target > taken {
		return metering.Delta{Amount: target - taken, Out: true}
	}
	return metering.Delta{Amount: taken - target}
}
