package engine

// Intent is one sum that is to be paid, through as many attempts as it takes.
type Intent struct {
	Head
	Amount   int64
	Currency string
	Customer string
	Invoice  string
	Session  string // the checkout that asks for it, when no invoice does
	Status   string
	Method   string
	Charge   string // the one that succeeded
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

// Charge is money that was taken.
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

// presence is where the customer is while a charge is tried.
type presence int

const (
	away    presence = iota // a renewal: nobody is there to answer the bank
	there                   // at a page, or behind the call that is made for them
	proving                 // and has just authenticated
)

// result is what came of trying.
type result int

const (
	paid result = iota
	needsAction
	refused
	underway // a bank debit: the answer comes days later
)

func (w *Account) newIntent(m Clock, amount int64, currency, customer string) *Intent {
	id := m.token("pi_", idLength)
	intent := &Intent{
		Head: w.numbered(m, id), Amount: amount, Currency: currency, Customer: customer,
		Status: requiresMethod, Secret: id + m.token("_secret_", idLength),
	}
	w.Intents.Put(intent)
	return intent
}

// debitTime is after how long a bank debit is known to have worked, or not.
const debitTime = 3 * day

// try charges the method for the intent.
func (w *Account) try(m Clock, intent *Intent, method *Method, how presence) result {
	card := byCard[method.Card]
	intent.Method, intent.Error = method.ID, Decline{}
	switch {
	case card.decline != nil:
		intent.Status, intent.Method, intent.Error = requiresMethod, "", *card.decline
		return refused
	case how != proving && (card.asks == asksAlways || card.asks == asksOnce && !method.Proven):
		intent.Status = requiresAction
		return needsAction
	case card.bank != "":
		intent.Status = processing
		w.setTimer(m.Now+debitTime, debitEnds, intent)
		return underway
	}
	if how == proving {
		method.Proven = true
	}
	w.charge(m, intent)
	return paid
}

// charge takes the money.
func (w *Account) charge(m Clock, intent *Intent) {
	charge := &Charge{
		Head: w.numbered(m, m.token("ch_", idLength)), Amount: intent.Amount, Currency: intent.Currency, Customer: intent.Customer,
		Intent: intent.ID, Invoice: intent.Invoice, Method: intent.Method, Metadata: intent.Metadata,
	}
	w.Charges.Put(charge)
	intent.Status, intent.Charge, intent.Error = succeeded, charge.ID, Decline{}
	w.emit(m, "charge.succeeded", charge)
	w.emit(m, "payment_intent.succeeded", intent)
	if byCard[w.Methods.Get(intent.Method).Card].opens != "" {
		w.setTimer(m.Now, disputeOpens, charge)
	}
}

// debitEnds brings the bank's answer to a debit that was under way.
func (w *Account) debitEnds(m Clock, intent *Intent) {
	if intent.Status != processing {
		return
	}
	if byCard[w.Methods.Get(intent.Method).Card].bank == endsWell {
		w.charge(m, intent)
		if invoice := w.Invoices.Get(intent.Invoice); invoice != nil {
			w.settle(m, invoice)
		}
		w.sessionPaidLate(m, intent)
		return
	}
	intent.Status, intent.Error = requiresMethod, debitFailed
	if invoice := w.Invoices.Get(intent.Invoice); invoice != nil {
		w.fail(m, invoice, refused)
		w.incompleteExpires(m, w.Subscriptions.Get(invoice.Subscription))
	}
	w.sessionUnpaidLate(m, intent)
}
