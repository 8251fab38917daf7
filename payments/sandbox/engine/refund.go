package engine

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

// refundTime is when a refund with a delayed outcome ends.
const refundTime = hour

// NewRefund holds the parameters of CreateRefund: a charge or its intent.
type NewRefund struct {
	Charge   string
	Intent   string
	Amount   *int64
	Reason   string
	Metadata map[string]string
}

// CreateRefund refunds a charge, or a part of it.
func (a *Account) CreateRefund(env Env, p NewRefund) (*Refund, error) {
	charge, err := a.chargeOf(p)
	if err != nil {
		return nil, err
	}
	left := charge.Amount - charge.Refunded
	amount := left
	set(&amount, p.Amount)
	switch {
	case left == 0:
		return nil, invalid("", "Charge %s has already been refunded.", charge.ID).withCode("charge_already_refunded")
	case a.fundsWithdrawn(charge):
		return nil, invalid("", "Charge %s has been charged back; cannot issue a refund.", charge.ID).withCode("charge_disputed")
	case amount < 1:
		return nil, invalid("amount", "Invalid positive integer").withCode("parameter_invalid_integer")
	case amount > left:
		return nil, invalid("amount", "Refund amount (%d) is greater than unrefunded amount on charge (%d).", amount, left)
	}
	head := a.newHead(env, "re_")
	refund := &Refund{
		Head: head, Amount: amount, Currency: charge.Currency, Charge: charge.ID, Intent: charge.Intent,
		Status: succeeded, Reason: p.Reason,
	}
	if err := mergeMetadata(&refund.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	end := byCard[a.Methods.Get(charge.Method).Card].refundOutcome
	if end == outcomeSucceeds {
		refund.Status = refundPending
	}
	if end != "" {
		a.setTimer(env.Now+refundTime, refundEnds, refund)
	}
	a.Refunds.Put(refund)
	charge.Refunded += amount
	a.emit(env, "charge.refunded", charge)
	a.emit(env, "refund.created", refund)
	return refund, nil
}

func (a *Account) chargeOf(p NewRefund) (*Charge, error) {
	switch {
	case p.Charge != "" && p.Intent != "":
		return nil, invalid("payment_intent", "You may only specify one of these parameters: charge, payment_intent.")
	case p.Charge != "":
		return find(a.Charges, "charge", "charge", p.Charge)
	case p.Intent == "":
		return nil, missingParam("charge")
	}
	intent, err := find(a.Intents, "payment_intent", "payment_intent", p.Intent)
	if err != nil {
		return nil, err
	}
	if intent.Charge == "" {
		return nil, invalid("payment_intent", "This PaymentIntent (%s) does not have a successful charge to refund.", intent.ID)
	}
	return a.Charges.Get(intent.Charge), nil
}

// refundEnds applies the delayed outcome of a refund: some fail after they succeeded.
func (a *Account) refundEnds(env Env, refund *Refund) {
	charge := a.Charges.Get(refund.Charge)
	was := a.Render(refund)
	if byCard[a.Methods.Get(charge.Method).Card].refundOutcome == outcomeFails {
		refund.Status, refund.Failure = refundFailed, "expired_or_canceled_card"
		charge.Refunded -= refund.Amount
	} else {
		refund.Status = succeeded
	}
	a.emitChange(env, "charge.refund.updated", was, refund)
	a.emitChange(env, "refund.updated", was, refund)
}
