package billing

import (
	"math/bits"
	"slices"

	"purser/ids"
	"purser/metering"
)

// Reversal is how much of a payment's money went back, in total.
type Reversal struct {
	RefundedCents int64
	DisputedCents int64
}

// Reversed adds up what the provider says of a charge. Its own running total is
// not asked: it counts refunds that failed later.
func (c ProviderCharge) Reversed() Reversal {
	var r Reversal
	for _, refund := range c.Refunds {
		if refund.Status != "failed" && refund.Status != "canceled" {
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

// withdrawn reports whether the dispute holds the money: from the moment it was
// taken until it comes back, and for good when the dispute is lost.
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

// Movement is a change of one balance: of what was taken back with a payment, or
// given again.
type Movement struct {
	CreditID  ids.ID
	CreditKey string
	Kind      metering.EntryKind // refund or dispute
	Delta     metering.Delta
}

// Reverse takes back of each credit what the reversed money had bought, or gives
// it again when less is reversed than before. The aim is absolute,
//
//	floor(credited × min(paid, refunded + disputed) ÷ paid)
//
// and the movements are the difference to what was taken already, so any order
// and number of reports ends in the same place. Nothing paid is nothing to take.
func (p Payment) Reverse(r Reversal) (Payment, []Movement) {
	kind := metering.EntryRefund
	if r.DisputedCents != p.DisputedCents {
		kind = metering.EntryDispute
	}
	paid := uint64(max(0, p.AmountCents))
	reversed := min(paid, uint64(max(0, r.RefundedCents))+uint64(max(0, r.DisputedCents)))

	next := p
	next.RefundedCents, next.DisputedCents = r.RefundedCents, r.DisputedCents
	next.TakenBack = nil
	var movements []Movement
	for _, credited := range p.Credits {
		aim := share(credited.Amount, reversed, paid)
		taken := p.takenBack(credited.CreditID)
		if aim > 0 {
			next.TakenBack = append(next.TakenBack, Grant{credited.CreditID, credited.CreditKey, aim})
		}
		if aim != taken {
			movements = append(movements, Movement{credited.CreditID, credited.CreditKey, kind, difference(taken, aim)})
		}
	}
	return next, movements
}

func (p Payment) takenBack(creditID ids.ID) metering.Amount {
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

// difference is what the balance gains or loses when the amount taken back goes
// from one to the other.
func difference(taken, aim metering.Amount) metering.Delta {
	if aim > taken {
		return metering.Delta{Amount: aim - taken, Out: true}
	}
	return metering.Delta{Amount: taken - aim}
}
