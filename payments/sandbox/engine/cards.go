package engine

import "strings"

// Card names the behavior of a test card. Only this and the last four digits are
// stored, never a card number.
type Card string

// TestCard is a card or a bank account that the sandbox's pages accept. Numbers and
// behavior are those of Stripe's test cards.
type TestCard struct {
	Card   Card
	Number string // digits; empty for a bank account
	Does   string // description on the page, without a full stop

	token         string          // Stripe's name for it as a test payment method
	challenge     challengePolicy // when the bank requires authentication
	decline       *Decline        // of every charge
	disputeStatus string          // initial status of the dispute that follows a charge
	refundOutcome string          // of a refund that does not succeed at once
	notSavable    bool            // it cannot be saved for later charges
	debitOutcome  string          // of a bank debit, days later
}

type challengePolicy int

const (
	challengeNever challengePolicy = iota
	challengeOnce                  // until it was authenticated once
	challengeAlways
)

// Decline is why a charge failed.
type Decline struct {
	Code        string
	DeclineCode string
	Message     string
}

var (
	genericDecline       = &Decline{"card_declined", "generic_decline", "Your card was declined."}
	noFunds              = &Decline{"card_declined", "insufficient_funds", "Your card has insufficient funds."}
	noPaymentMethod      = Decline{"resource_missing", "", "This customer has no attached payment source or default payment method."}
	debitFailed          = Decline{"payment_intent_payment_attempt_failed", "", "The bank account could not be debited."}
	authenticationFailed = Decline{"payment_intent_authentication_failure", "", "The payment was not authenticated. Try again or use another card."}
)

const (
	outcomeSucceeds = "succeeds"
	outcomeFails    = "fails"
)

var testCards = []TestCard{
	{Card: "pays", Number: "4242424242424242", Does: "Succeeds, now and at every renewal", token: "pm_card_visa"},
	{Card: "declined", Number: "4000000000000002", Does: "Declined", token: "pm_card_chargeDeclined", decline: genericDecline, notSavable: true},
	{Card: "insufficient", Number: "4000000000009995", Does: "Declined: insufficient funds", token: "pm_card_chargeDeclinedInsufficientFunds", decline: noFunds, notSavable: true},
	{Card: "saved_declined", Number: "4000000000000341", Does: "Can be saved, but every charge fails", token: "pm_card_chargeCustomerFail", decline: genericDecline},
	{Card: "asks_once", Number: "4000002500003155", Does: "Requires authentication once", token: "pm_card_authenticationRequiredOnSetup", challenge: challengeOnce},
	{Card: "asks_always", Number: "4000002760003184", Does: "Requires authentication every time", token: "pm_card_authenticationRequired", challenge: challengeAlways},
	{Card: "disputed", Number: "4000000000000259", Does: "Succeeds, then the payment is disputed", token: "pm_card_createDispute", disputeStatus: needsResponse},
	{Card: "inquired", Number: "4000000000001976", Does: "Succeeds, then the bank opens an inquiry", token: "pm_card_createDisputeInquiry", disputeStatus: warningNeedsResponse},
	{Card: "refund_fails", Number: "4000000000005126", Does: "Succeeds; refunds fail after an hour", token: "pm_card_refundFail", refundOutcome: outcomeFails},
	{Card: "refund_pends", Number: "4000000000007726", Does: "Succeeds; refunds take an hour", token: "pm_card_pendingRefund", refundOutcome: outcomeSucceeds},
}

var testBanks = []TestCard{
	{Card: "bank_succeeds", Does: "Debit succeeds after 3 days", token: "pm_usBankAccount_success", debitOutcome: outcomeSucceeds},
	{Card: "bank_fails", Does: "Debit fails after 3 days", token: "pm_usBankAccount_noAccount", debitOutcome: outcomeFails},
}

// TestCards lists the cards in the order of the pages.
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

// CardOf finds the card with the number, digits only.
func CardOf(number string) (Card, bool) {
	card, known := byNumber[number]
	return card, known
}

// BankOf finds the bank account by the outcome of its debits: "succeeds" or "fails".
func BankOf(outcome string) (Card, bool) {
	for _, b := range testBanks {
		if b.debitOutcome == outcome {
			return b.Card, true
		}
	}
	return "", false
}

// DebitOutcome is the outcome of debits of a bank account, the argument of BankOf.
func (c TestCard) DebitOutcome() string { return c.debitOutcome }

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
	Proven   bool // authenticated once, which suffices for some cards
	Metadata map[string]string
}

// Bank reports whether the method is a bank account.
func (p *Method) Bank() bool { return byCard[p.Card].debitOutcome != "" }

// CardOn is the payment method of the customer's next charge, or nil.
func (a *Account) CardOn(customer string) *Method {
	for _, s := range a.subscriptionsOf(customer) {
		if method := a.methodOf(s); method != nil {
			return method
		}
	}
	return a.Methods.Get(a.Customers.Get(customer).Method)
}

func (a *Account) addMethod(env Env, customer string, card Card) *Method {
	method := &Method{Head: a.newHead(env, "pm_"), Customer: customer, Card: card, Last4: card.Last4()}
	a.Methods.Put(method)
	if customer != "" {
		a.emit(env, "payment_method.attached", method)
	}
	return method
}

// tokenPrefix is the prefix of Stripe's test tokens: tok_visa is pm_card_visa.
const tokenPrefix = "tok_"

// CreateMethod creates an unattached payment method from a test token.
func (a *Account) CreateMethod(env Env, token string, metadata map[string]string) (*Method, error) {
	name, isToken := strings.CutPrefix(token, tokenPrefix)
	card, known := byToken["pm_card_"+name]
	if !isToken || !known {
		return nil, invalid("card[token]", "The sandbox makes payment methods from Stripe's test tokens only, such as tok_visa: No such token: '%s'", token).withCode("resource_missing")
	}
	method := a.addMethod(env, "", card)
	return method, mergeMetadata(&method.Metadata, metadata)
}

// AttachMethod attaches a payment method to a customer. A test name such as
// pm_card_visa creates a new method.
func (a *Account) AttachMethod(env Env, id, customer string) (*Method, error) {
	if _, err := a.customer(customer); err != nil {
		return nil, err
	}
	if _, isToken := byToken[id]; isToken {
		return a.attach(env, customer, "payment_method", id)
	}
	method, err := Get(a.Methods, "PaymentMethod", id)
	switch {
	case err != nil:
		return nil, err
	case method.Customer == customer:
		return method, nil
	case method.Customer != "":
		return nil, invalid("", "The payment method you provided has already been attached to a customer.")
	case byCard[method.Card].notSavable:
		return nil, declined(*byCard[method.Card].decline)
	}
	method.Customer = customer
	a.emit(env, "payment_method.attached", method)
	return method, nil
}

// DetachMethod detaches a payment method from its customer permanently.
func (a *Account) DetachMethod(env Env, id string) (*Method, error) {
	method, err := Get(a.Methods, "PaymentMethod", id)
	if err != nil {
		return nil, err
	}
	customer := a.Customers.Get(method.Customer)
	if customer == nil {
		return nil, invalid("", "The payment method you provided is not attached to a customer so detachment is impossible.")
	}
	was := a.Render(method)
	if customer.Method == method.ID {
		customer.Method = ""
	}
	for _, s := range a.subscriptionsOf(customer.ID) {
		if s.Method == method.ID {
			s.Method = ""
		}
	}
	method.Customer = ""
	a.emitChange(env, "payment_method.detached", was, method)
	return method, nil
}

// attach finds the customer's method that a parameter names. A test name such as
// pm_card_visa creates a new method, so that tests need no hosted page.
func (a *Account) attach(env Env, customer, param, id string) (*Method, error) {
	card, isToken := byToken[id]
	if !isToken {
		method, err := find(a.Methods, "PaymentMethod", param, id)
		if err != nil {
			return nil, err
		}
		if method.Customer != customer {
			return nil, invalid(param, "The payment method %s is not attached to the customer %s.", id, customer)
		}
		return method, nil
	}
	if test := byCard[card]; test.notSavable {
		return nil, declined(*test.decline)
	}
	return a.addMethod(env, customer, card), nil
}
