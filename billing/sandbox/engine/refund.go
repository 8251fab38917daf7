package engine

// Refund is money given back.
type Refund struct {
	Head
	Amount   int64
	Currency string
	Charge   string
	Intent   string
	Status   string
	Reason   string
	Failure  string
	Metadata map[string]string
}

const (
	refundPending = "pending"
	refundFailed  = "failed"
)

// refundTime is after how long a refund that does not simply succeed ends.
const refundTime = hour

// NewRefund is what a refund is made from: a charge or its intent.
type NewRefund struct {
	Charge   string
	Intent   string
	Amount   *int64
	Reason   string
	Metadata map[string]string
}

// CreateRefund gives back a charge, or a part of it.
func (w *Account) CreateRefund(m Clock, p NewRefund) (*Refund, error) {
	charge, err := w.chargeOf(p)
	if err != nil {
		return nil, err
	}
	left := charge.Amount - charge.Refunded
	amount := left
	set(&amount, p.Amount)
	switch {
	case left == 0:
		return nil, invalid("", "Charge %s has already been refunded.", charge.ID).withCode("charge_already_refunded")
	case w.withdrawn(charge):
		return nil, invalid("", "Charge %s has been charged back; cannot issue a refund.", charge.ID).withCode("charge_disputed")
	case amount < 1:
		return nil, invalid("amount", "Invalid positive integer").withCode("parameter_invalid_integer")
	case amount > left:
		return nil, invalid("amount", "Refund amount (%d) is greater than unrefunded amount on charge (%d).", amount, left)
	}
	head := w.newHead(m, "re_")
	refund := &Refund{
		Head: head, Amount: amount, Currency: charge.Currency, Charge: charge.ID, Intent: charge.Intent,
		Status: succeeded, Reason: p.Reason,
	}
	if err := merge(&refund.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	end := byCard[w.Methods.Get(charge.Method).Card].refund
	if end == endsWell {
		refund.Status = refundPending
	}
	if end != "" {
		w.setTimer(m.Now+refundTime, refundEnds, refund)
	}
	w.Refunds.Put(refund)
	charge.Refunded += amount
	w.emit(m, "charge.refunded", charge)
	w.emit(m, "refund.created", refund)
	return refund, nil
}

func (w *Account) chargeOf(p NewRefund) (*Charge, error) {
	switch {
	case p.Charge != "" && p.Intent != "":
		return nil, invalid("payment_intent", "You may only specify one of these parameters: charge, payment_intent.")
	case p.Charge != "":
		return find(w.Charges, "charge", "charge", p.Charge)
	case p.Intent == "":
		return nil, absent("charge")
	}
	intent, err := find(w.Intents, "payment_intent", "payment_intent", p.Intent)
	if err != nil {
		return nil, err
	}
	if intent.Charge == "" {
		return nil, invalid("payment_intent", "This PaymentIntent (%s) does not have a successful charge to refund.", intent.ID)
	}
	return w.Charges.Get(intent.Charge), nil
}

// refundEnds brings a refund's late end: some fail after they seemed to work.
func (w *Account) refundEnds(m Clock, refund *Refund) {
	charge := w.Charges.Get(refund.Charge)
	was := w.Render(refund)
	if byCard[w.Methods.Get(charge.Method).Card].refund == endsBadly {
		refund.Status, refund.Failure = refundFailed, "expired_or_canceled_card"
		charge.Refunded -= refund.Amount
	} else {
		refund.Status = succeeded
	}
	w.emitChange(m, "charge.refund.updated", was, refund)
	w.emitChange(m, "refund.updated", was, refund)
}
