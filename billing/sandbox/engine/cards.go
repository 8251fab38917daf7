package engine

import "strings"

// Card is how a test card behaves. It is all that is kept of one, with its last
// four digits: a number never becomes part of a world.
type Card string

// TestCard is a card or a bank account that the sandbox's pages take. The
// numbers and what they do are Stripe's, so that what people know holds here.
type TestCard struct {
	Card   Card
	Number string // digits; empty for a bank account
	Does   string // for people, without a full stop

	token   string   // names it in the API, as a payment method that anybody may use
	asks    asks     // when the bank wants the customer to authenticate
	decline *Decline // why each charge fails
	opens   string   // the dispute that follows a charge: its first status
	refund  string   // how a refund ends that does not simply succeed
	unsaved bool     // it cannot be kept for later charges
	bank    string   // how a debit of a bank account ends, days later
}

type asks int

const (
	asksNever asks = iota
	asksOnce       // until it has authenticated one time
	asksAlways
)

// Decline is why a charge failed.
type Decline struct {
	Code        string
	DeclineCode string
	Message     string
}

var (
	genericDecline = &Decline{"card_declined", "generic_decline", "Your card was declined."}
	noFunds        = &Decline{"card_declined", "insufficient_funds", "Your card has insufficient funds."}
	noMethod       = Decline{"resource_missing", "", "This customer has no attached payment source or default payment method."}
	debitFailed    = Decline{"payment_intent_payment_attempt_failed", "", "The bank account could not be debited."}
	notProven      = Decline{"payment_intent_authentication_failure", "", "The payment was not authenticated. Try again or use another card."}
)

const (
	endsWell  = "succeeds"
	endsBadly = "fails"
)

var testCards = []TestCard{
	{Card: "pays", Number: "4242424242424242", Does: "Succeeds, now and at every renewal", token: "pm_card_visa"},
	{Card: "declined", Number: "4000000000000002", Does: "Declined", token: "pm_card_chargeDeclined", decline: genericDecline, unsaved: true},
	{Card: "insufficient", Number: "4000000000009995", Does: "Declined: insufficient funds", token: "pm_card_chargeDeclinedInsufficientFunds", decline: noFunds, unsaved: true},
	{Card: "saved_declined", Number: "4000000000000341", Does: "Can be saved, but every charge fails", token: "pm_card_chargeCustomerFail", decline: genericDecline},
	{Card: "asks_once", Number: "4000002500003155", Does: "Requires authentication once", token: "pm_card_authenticationRequiredOnSetup", asks: asksOnce},
	{Card: "asks_always", Number: "4000002760003184", Does: "Requires authentication every time", token: "pm_card_authenticationRequired", asks: asksAlways},
	{Card: "disputed", Number: "4000000000000259", Does: "Succeeds, then the payment is disputed", token: "pm_card_createDispute", opens: needsResponse},
	{Card: "inquired", Number: "4000000000001976", Does: "Succeeds, then the bank opens an inquiry", token: "pm_card_createDisputeInquiry", opens: warningNeedsResponse},
	{Card: "refund_fails", Number: "4000000000005126", Does: "Succeeds; refunds fail after an hour", token: "pm_card_refundFail", refund: endsBadly},
	{Card: "refund_pends", Number: "4000000000007726", Does: "Succeeds; refunds take an hour", token: "pm_card_pendingRefund", refund: endsWell},
}

var testBanks = []TestCard{
	{Card: "bank_succeeds", Does: "Debit succeeds after 3 days", token: "pm_usBankAccount_success", bank: endsWell},
	{Card: "bank_fails", Does: "Debit fails after 3 days", token: "pm_usBankAccount_noAccount", bank: endsBadly},
}

// TestCards lists the cards in the order in which people should meet them.
func TestCards() []TestCard { return testCards }

// TestBanks lists the bank accounts.
func TestBanks() []TestCard { return testBanks }

var byCard, byNumber, byToken = indexCards()

func indexCards() (cards map[Card]TestCard, numbers map[string]Card, tokens map[string]Card) {
	cards, numbers, tokens = map[Card]TestCard{}, map[string]Card{}, map[string]Card{}
	for _, list := range [][]TestCard{testCards, testBanks} {
		for _, c := range list {
			cards[c.Card], tokens[c.token] = c, c.Card
			if c.Number != "" {
				numbers[c.Number] = c.Card
			}
		}
	}
	return cards, numbers, tokens
}

// CardOf is the card with the number, digits only.
func CardOf(number string) (Card, bool) {
	card, known := byNumber[number]
	return card, known
}

// BankOf is the bank account whose debits end so: "succeeds" or "fails".
func BankOf(end string) (Card, bool) {
	for _, b := range testBanks {
		if b.bank == end {
			return b.Card, true
		}
	}
	return "", false
}

// Ends is how a debit of a bank account ends: what BankOf takes.
func (c TestCard) Ends() string { return c.bank }

// Last4 is the last four digits.
func (c Card) Last4() string { return byCard[c].last4() }

func (c TestCard) last4() string {
	if c.Number == "" {
		return "6789"
	}
	return c.Number[len(c.Number)-4:]
}

// Method is a payment method: a card, and the customer who saved it.
type Method struct {
	Head
	Customer string
	Card     Card
	Last4    string
	Proven   bool // authenticated once, which is enough for some cards
	Metadata map[string]string
}

// Bank reports whether the method is a bank account.
func (p *Method) Bank() bool { return byCard[p.Card].bank != "" }

// CardOn is what the customer's next charge would be made to, or nil.
func (w *Account) CardOn(customer string) *Method {
	for _, s := range w.subscriptionsOf(customer) {
		if method := w.methodOf(s); method != nil {
			return method
		}
	}
	return w.Methods.Get(w.Customers.Get(customer).Method)
}

func (w *Account) addMethod(m Clock, customer string, card Card) *Method {
	method := &Method{Head: w.newHead(m, "pm_"), Customer: customer, Card: card, Last4: card.Last4()}
	w.Methods.Put(method)
	if customer != "" {
		w.emit(m, "payment_method.attached", method)
	}
	return method
}

// tokenPrefix is that of Stripe's test tokens: tok_visa stands for pm_card_visa.
const tokenPrefix = "tok_"

// CreateMethod makes a payment method that no customer has, from a test token.
func (w *Account) CreateMethod(m Clock, token string, metadata map[string]string) (*Method, error) {
	name, isToken := strings.CutPrefix(token, tokenPrefix)
	card, known := byToken["pm_card_"+name]
	if !isToken || !known {
		return nil, invalid("card[token]", "The sandbox makes payment methods from Stripe's test tokens only, such as tok_visa: No such token: '%s'", token).withCode("resource_missing")
	}
	method := w.addMethod(m, "", card)
	return method, merge(&method.Metadata, metadata)
}

// AttachMethod gives a payment method to a customer. One of the well-known names makes a
// new method.
func (w *Account) AttachMethod(m Clock, id, customer string) (*Method, error) {
	if _, err := w.customer(customer); err != nil {
		return nil, err
	}
	if _, isToken := byToken[id]; isToken {
		return w.attach(m, customer, "payment_method", id)
	}
	method, err := Get(w.Methods, "PaymentMethod", id)
	switch {
	case err != nil:
		return nil, err
	case method.Customer == customer:
		return method, nil
	case method.Customer != "":
		return nil, invalid("", "The payment method you provided has already been attached to a customer.")
	case byCard[method.Card].unsaved:
		return nil, declined(*byCard[method.Card].decline)
	}
	method.Customer = customer
	w.emit(m, "payment_method.attached", method)
	return method, nil
}

// DetachMethod takes a payment method from its customer, for good.
func (w *Account) DetachMethod(m Clock, id string) (*Method, error) {
	method, err := Get(w.Methods, "PaymentMethod", id)
	if err != nil {
		return nil, err
	}
	customer := w.Customers.Get(method.Customer)
	if customer == nil {
		return nil, invalid("", "The payment method you provided is not attached to a customer so detachment is impossible.")
	}
	was := w.Render(method)
	if customer.Method == method.ID {
		customer.Method = ""
	}
	for _, s := range w.subscriptionsOf(customer.ID) {
		if s.Method == method.ID {
			s.Method = ""
		}
	}
	method.Customer = ""
	w.emitChange(m, "payment_method.detached", was, method)
	return method, nil
}

// attach finds the method that a parameter names for the customer. One of the
// well-known tokens makes a new method, which is how tests get one without a page.
func (w *Account) attach(m Clock, customer, param, id string) (*Method, error) {
	card, isToken := byToken[id]
	if !isToken {
		method, err := find(w.Methods, "PaymentMethod", param, id)
		if err != nil {
			return nil, err
		}
		if method.Customer != customer {
			return nil, invalid(param, "The payment method %s is not attached to the customer %s.", id, customer)
		}
		return method, nil
	}
	if test := byCard[card]; test.unsaved {
		return nil, declined(*test.decline)
	}
	return w.addMethod(m, customer, card), nil
}
