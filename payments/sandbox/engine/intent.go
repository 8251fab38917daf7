package engine

// Intent is a payment intent: one amount to pay, in any number of attempts.
type Intent struct {
	Head
	Amount   int64
	Currency string
	Customer string
	Invoice  string
	Session  string // checkout session; empty for the payment of an invoice
	Status   string
	Method   string
	Charge   string // the successful one
	Error    Decline
	Secret   string
	Metadata map[string]string
}

// The states of an intent.
const (
	requiresMethod = "requires_payment_method"
	requiresAction = "requires_action"
	processing     = "processing"
	succeeded      = "succeeded"
	canceled       = "canceled"
)

// Charge is a successful payment.
type Charge struct {
	Head
	Amount   int64
	Currency string
	Customer string
	Intent   string
	Invoice  string
	Method   string
	Refunded int64
	Disputed bool
	Metadata map[string]string
}

// presence says whether the customer can authenticate while a charge is attempted.
type presence int

const (
	customerAbsent        presence = iota // off-session, such as a renewal
	customerPresent                       // on-session
	customerAuthenticated                 // on-session, after authentication
)

// result is the outcome of a payment attempt.
type result int

const (
	paid result = iota
	needsAction
	refused
	underway // a bank debit, whose outcome follows days later
)

func (a *Account) newIntent(env Env, amount int64, currency, customer string) *Intent {
	id := env.token("pi_", idLength)
	intent := &Intent{
		Head: a.numbered(env, id), Amount: amount, Currency: currency, Customer: customer,
		Status: requiresMethod, Secret: id + env.token("_secret_", idLength),
	}
	a.Intents.Put(intent)
	return intent
}

// debitTime is how long a bank debit is processing.
const debitTime = 3 * day

// attemptCharge attempts to charge the method for the intent.
func (a *Account) attemptCharge(env Env, intent *Intent, method *Method, how presence) result {
	card := byCard[method.Card]
	intent.Method, intent.Error = method.ID, Decline{}
	switch {
	case card.decline != nil:
		intent.Status, intent.Method, intent.Error = requiresMethod, "", *card.decline
		return refused
	case how != customerAuthenticated && (card.challenge == challengeAlways || card.challenge == challengeOnce && !method.Proven):
		intent.Status = requiresAction
		return needsAction
	case card.debitOutcome != "":
		intent.Status = processing
		a.setTimer(env.Now+debitTime, debitEnds, intent)
		return underway
	}
	if how == customerAuthenticated {
		method.Proven = true
	}
	a.createCharge(env, intent)
	return paid
}

// createCharge records a successful charge of the intent.
func (a *Account) createCharge(env Env, intent *Intent) {
	charge := &Charge{
		Head: a.numbered(env, env.token("ch_", idLength)), Amount: intent.Amount, Currency: intent.Currency, Customer: intent.Customer,
		Intent: intent.ID, Invoice: intent.Invoice, Method: intent.Method, Metadata: intent.Metadata,
	}
	a.Charges.Put(charge)
	intent.Status, intent.Charge, intent.Error = succeeded, charge.ID, Decline{}
	a.emit(env, "charge.succeeded", charge)
	a.emit(env, "payment_intent.succeeded", intent)
	if byCard[a.Methods.Get(intent.Method).Card].disputeStatus != "" {
		a.setTimer(env.Now, disputeOpens, charge)
	}
}

// debitEnds applies the outcome of a processing bank debit.
func (a *Account) debitEnds(env Env, intent *Intent) {
	if intent.Status != processing {
		return
	}
	if byCard[a.Methods.Get(intent.Method).Card].debitOutcome == outcomeSucceeds {
		a.createCharge(env, intent)
		if invoice := a.Invoices.Get(intent.Invoice); invoice != nil {
			a.applyPayment(env, invoice)
		}
		a.sessionPaidLate(env, intent)
		return
	}
	intent.Status, intent.Error = requiresMethod, debitFailed
	if invoice := a.Invoices.Get(intent.Invoice); invoice != nil {
		a.paymentFailed(env, invoice, refused)
		a.incompleteExpires(env, a.Subscriptions.Get(invoice.Subscription))
	}
	a.sessionUnpaidLate(env, intent)
}
