package engine

import "purser/payments/sandbox/persist"

// Dispute is a charge that the customer disputed with the bank.
type Dispute struct {
	Head
	Amount    int64
	Currency  string
	Charge    string
	Intent    string
	Status    string
	Movements []Movement // balance movements: none, withdrawn, reinstated
}

// Movement is a balance movement of a dispute.
type Movement struct {
	ID     string
	Amount int64
	At     Time
}

// The states of a dispute. A warning is an inquiry: no funds are withdrawn.
const (
	needsResponse        = "needs_response"
	warningNeedsResponse = "warning_needs_response"
	warningClosed        = "warning_closed"
	won                  = "won"
	lost                 = "lost"
)

// disputeOpens opens the dispute of a test card whose payments are disputed.
func (a *Account) disputeOpens(env Env, charge *Charge) {
	if a.disputeOn(charge) == nil {
		a.openDispute(env, charge, byCard[a.Methods.Get(charge.Method).Card].disputeStatus)
	}
}

func (a *Account) openDispute(env Env, charge *Charge, status string) *Dispute {
	dispute := &Dispute{
		Head: a.numbered(env, env.token("dp_", idLength)), Amount: charge.Amount, Currency: charge.Currency,
		Charge: charge.ID, Intent: charge.Intent, Status: status,
	}
	a.Disputes.Put(dispute)
	charge.Disputed = true
	if status == needsResponse {
		a.addMovement(env, dispute, -dispute.Amount)
	}
	a.emit(env, "charge.dispute.created", dispute)
	if status == needsResponse {
		a.emit(env, "charge.dispute.funds_withdrawn", dispute)
	}
	return dispute
}

func (a *Account) addMovement(env Env, dispute *Dispute, amount int64) {
	dispute.Movements = append(dispute.Movements, Movement{ID: env.token("txn_", idLength), Amount: amount, At: env.Now})
}

// Dispute moves the charge's dispute to the outcome: "open", "won" or "lost". It opens
// a dispute when there is none, and escalates an inquiry.
func (a *Account) Dispute(env Env, charge *Charge, outcome string) (*Dispute, error) {
	dispute := a.disputeOn(charge)
	switch outcome {
	case "open", won, lost:
	default:
		return nil, invalid("outcome", "The outcome of a dispute is open, won or lost.")
	}
	switch {
	case dispute == nil:
		dispute = a.openDispute(env, charge, needsResponse)
	case dispute.Status == won || dispute.Status == lost || dispute.Status == warningClosed:
		return nil, invalid("", "The dispute of this payment is closed: it ended %s.", dispute.Status)
	case dispute.Status == warningNeedsResponse && outcome == won:
		was := a.Render(dispute)
		dispute.Status = warningClosed
		a.emitChange(env, "charge.dispute.closed", was, dispute)
		return dispute, nil
	case dispute.Status == warningNeedsResponse:
		was := a.Render(dispute)
		dispute.Status = needsResponse
		a.addMovement(env, dispute, -dispute.Amount)
		a.emitChange(env, "charge.dispute.updated", was, dispute)
		a.emit(env, "charge.dispute.funds_withdrawn", dispute)
	}
	if outcome != "open" {
		a.closeDispute(env, dispute, outcome)
	}
	return dispute, nil
}

func (a *Account) closeDispute(env Env, dispute *Dispute, outcome string) {
	was := a.Render(dispute)
	dispute.Status = outcome
	if outcome == won {
		a.addMovement(env, dispute, dispute.Amount)
	}
	a.emitChange(env, "charge.dispute.closed", was, dispute)
	if outcome == won {
		a.emit(env, "charge.dispute.funds_reinstated", dispute)
	}
}

// disputeOn is the charge's dispute, or nil: the sandbox allows one per charge.
func (a *Account) disputeOn(charge *Charge) *Dispute {
	return a.Disputes.One(persist.ByParent, charge.ID)
}

// fundsWithdrawn reports whether a dispute has withdrawn the charge's funds.
func (a *Account) fundsWithdrawn(charge *Charge) bool {
	dispute := a.disputeOn(charge)
	return dispute != nil && (dispute.Status == needsResponse || dispute.Status == lost)
}

// ChargeFor finds the charge of a checkout, for refunds and disputes by the control
// API. An invoice id works too: renewals have no checkout.
func (a *Account) ChargeFor(reference string) (*Charge, error) {
	intent := ""
	if invoice := a.Invoices.Get(reference); invoice != nil {
		intent = invoice.Intent
	} else {
		session, err := a.SessionOf(reference)
		if err != nil {
			return nil, err
		}
		intent = session.Intent
		if first := a.Invoices.Get(session.Invoice); first != nil {
			intent = first.Intent
		}
	}
	if paidBy := a.Intents.Get(intent); paidBy != nil && paidBy.Charge != "" {
		return a.Charges.Get(paidBy.Charge), nil
	}
	return nil, invalid("checkoutId", "Nothing has been paid for %s.", reference)
}

// ChargeParent is the charge that a list of refunds or disputes is filtered by, given
// directly or by its intent; empty for an unfiltered list.
func (a *Account) ChargeParent(charge, intent string) string {
	if charge != "" || intent == "" {
		return charge
	}
	if paid := a.Intents.Get(intent); paid != nil && paid.Charge != "" {
		return paid.Charge
	}
	return "none" // no charge has this id
}
