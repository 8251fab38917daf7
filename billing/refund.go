package billing

import "purser/fault"

// Refund is what refunding the rest of a payment does.
type Refund struct {
	AmountCents int64      // what goes back to the customer
	TakenBack   []Movement // the credits that are clawed back for it
}

// DecideRefund decides a refund of all that is left of a payment. Money that a dispute
// holds can't be refunded, and the provider knows a payment only by its charge.
func (p Payment) DecideRefund() (Refund, error) {
	left := p.AmountCents - p.RefundedCents
	switch {
	case p.DisputedCents > 0:
		return Refund{}, fault.Newf(fault.PaymentNotRefundable, "The customer's bank has disputed this payment. It can't be refunded while the dispute holds the money.")
	case left <= 0:
		return Refund{}, fault.Newf(fault.PaymentNotRefundable, "This payment is already refunded.")
	case p.ChargeID == "":
		return Refund{}, fault.New(fault.PaymentNotRefundable)
	}
	_, movements := p.Reverse(Reversal{RefundedCents: p.AmountCents, DisputedCents: p.DisputedCents})
	return Refund{AmountCents: left, TakenBack: movements}, nil
}
