package engine

import "purser/billing/sandbox/persist"

// Dispute is a charge that the customer's bank calls into question.
type Dispute struct {
	Head
	Amount    int64
	Currency  string
	Charge    string
	Intent    string
	Status    string
	Movements []Movement // of the account's balance: none, withdrawn, given back
}

// Movement is money that a dispute moved.
type Movement struct {
	ID     string
	Amount int64
	At     Time
}

// The states of a dispute. A warning is an inquiry: no money has moved.
const (
	needsResponse        = "needs_response"
	warningNeedsResponse = "warning_needs_response"
	warningClosed        = "warning_closed"
	won                  = "won"
	lost                 = "lost"
)

// disputeOpens is for the cards whose payments are disputed.
func (w *Account) disputeOpens(m Clock, charge *Charge) {
	if w.disputeOn(charge) == nil {
		w.openDispute(m, charge, byCard[w.Methods.Get(charge.Method).Card].opens)
	}
}

func (w *Account) openDispute(m Clock, charge *Charge, status string) *Dispute {
	dispute := &Dispute{
		Head: w.numbered(m, m.token("dp_", idLength)), Amount: charge.Amount, Currency: charge.Currency,
		Charge: charge.ID, Intent: charge.Intent, Status: status,
	}
	w.Disputes.Put(dispute)
	charge.Disputed = true
	if status == needsResponse {
		w.move(m, dispute, -dispute.Amount)
	}
	w.emit(m, "charge.dispute.created", dispute)
	if status == needsResponse {
		w.emit(m, "charge.dispute.funds_withdrawn", dispute)
	}
	return dispute
}

func (w *Account) move(m Clock, dispute *Dispute, amount int64) {
	dispute.Movements = append(dispute.Movements, Movement{ID: m.token("txn_", idLength), Amount: amount, At: m.Now})
}

// Dispute brings the charge's dispute to the outcome: "open", "won" or "lost".
// It opens one that is not there, and turns an inquiry into a dispute.
func (w *Account) Dispute(m Clock, charge *Charge, outcome string) (*Dispute, error) {
	dispute := w.disputeOn(charge)
	switch outcome {
	case "open", won, lost:
	default:
		return nil, invalid("outcome", "The outcome of a dispute is open, won or lost.")
	}
	switch {
	case dispute == nil:
		dispute = w.openDispute(m, charge, needsResponse)
	case dispute.Status == won || dispute.Status == lost || dispute.Status == warningClosed:
		return nil, invalid("", "The dispute of this payment is closed: it ended %s.", dispute.Status)
	case dispute.Status == warningNeedsResponse && outcome == won:
		was := w.Render(dispute)
		dispute.Status = warningClosed
		w.emitChange(m, "charge.dispute.closed", was, dispute)
		return dispute, nil
	case dispute.Status == warningNeedsResponse:
		was := w.Render(dispute)
		dispute.Status = needsResponse
		w.move(m, dispute, -dispute.Amount)
		w.emitChange(m, "charge.dispute.updated", was, dispute)
		w.emit(m, "charge.dispute.funds_withdrawn", dispute)
	}
	if outcome != "open" {
		w.closeDispute(m, dispute, outcome)
	}
	return dispute, nil
}

func (w *Account) closeDispute(m Clock, dispute *Dispute, outcome string) {
	was := w.Render(dispute)
	dispute.Status = outcome
	if outcome == won {
		w.move(m, dispute, dispute.Amount)
	}
	w.emitChange(m, "charge.dispute.closed", was, dispute)
	if outcome == won {
		w.emit(m, "charge.dispute.funds_reinstated", dispute)
	}
}

// disputeOn is the charge's dispute, or nil: a charge has at most one here.
func (w *Account) disputeOn(charge *Charge) *Dispute {
	return w.Disputes.One(persist.ByParent, charge.ID)
}

// withdrawn reports whether a dispute has taken the charge's money.
func (w *Account) withdrawn(charge *Charge) bool {
	dispute := w.disputeOn(charge)
	return dispute != nil && (dispute.Status == needsResponse || dispute.Status == lost)
}

// ChargeFor finds the money of a checkout, for refunds and disputes that are
// made by hand. An invoice's id works too: renewals have no checkout.
func (w *Account) ChargeFor(reference string) (*Charge, error) {
	intent := ""
	if invoice := w.Invoices.Get(reference); invoice != nil {
		intent = invoice.Intent
	} else {
		session, err := w.SessionOf(reference)
		if err != nil {
			return nil, err
		}
		intent = session.Intent
		if first := w.Invoices.Get(session.Invoice); first != nil {
			intent = first.Intent
		}
	}
	if paidBy := w.Intents.Get(intent); paidBy != nil && paidBy.Charge != "" {
		return w.Charges.Get(paidBy.Charge), nil
	}
	return nil, invalid("checkoutId", "Nothing has been paid for %s.", reference)
}

// ChargeParent is the charge whose refunds or disputes a list is about, by the charge
// or by its intent; empty for a list about all.
func (w *Account) ChargeParent(charge, intent string) string {
	if charge != "" || intent == "" {
		return charge
	}
	if paid := w.Intents.Get(intent); paid != nil && paid.Charge != "" {
		return paid.Charge
	}
	return "none" // no charge has this id
}
