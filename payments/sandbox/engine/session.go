package engine

import (
	"fmt"

	"purser/payments/sandbox/persist"
)

// Session is a checkout session at a hosted page.
type Session struct {
	Head
	Mode      string // payment or subscription
	Status    string
	Payment   string // payment_status
	Customer  string
	Email     string
	Lines     []SessionLine
	Currency  string
	Total     int64
	Reference string // client_reference_id
	Metadata  map[string]string
	Success   string
	Cancel    string
	Expires   Time
	Collects  string // payment_method_collection

	SubscriptionMetadata map[string]string
	IntentMetadata       map[string]string

	Intent       string
	Subscription string
	Invoice      string
	Failure      string // error of the last attempt, shown on the page
}

type SessionLine struct {
	ID          string
	Price       string
	Quantity    int64
	Description string
}

// The states of a session and of its payment.
const (
	complete  = "complete"
	expired   = "expired"
	unpaid    = "unpaid"
	noPayment = "no_payment_required"

	modePayment      = "payment"
	modeSubscription = "subscription"
)

type NewSession struct {
	Mode      string
	Customer  string
	Email     string
	Lines     []NewSessionLine
	Reference string
	Metadata  map[string]string
	Success   string
	Cancel    string
	Expires   *Time
	Collects  string

	SubscriptionMetadata map[string]string
	IntentMetadata       map[string]string
}

// NewSessionLine is a line item with an existing or an inline price.
type NewSessionLine struct {
	Price    string
	Quantity *int64
	Inline   *InlinePrice
}

// InlinePrice is a price_data parameter: a price for one session, with its product.
type InlinePrice struct {
	Currency string
	Amount   *int64
	Name     string
	Product  string
}

const (
	shortestSession = 30 * 60
	longestSession  = day
	maxSessionLines = 100
)

func (a *Account) CreateSession(env Env, p NewSession) (*Session, error) {
	if err := a.checkSession(env, p); err != nil {
		return nil, err
	}
	head := a.numbered(env, env.token("cs_test_", sessionLength))
	session := &Session{
		Head: head, Mode: p.Mode, Status: open, Payment: unpaid, Customer: p.Customer, Email: p.Email,
		Reference: p.Reference, Success: p.Success, Cancel: p.Cancel, Collects: p.Collects,
		Expires: env.Now + longestSession,
	}
	for into, given := range map[*map[string]string]map[string]string{
		&session.Metadata: p.Metadata, &session.SubscriptionMetadata: p.SubscriptionMetadata, &session.IntentMetadata: p.IntentMetadata,
	} {
		if err := mergeMetadata(into, given); err != nil {
			return nil, err
		}
	}
	set(&session.Expires, p.Expires)
	for n, want := range p.Lines {
		if err := a.addLine(env, session, n, want); err != nil {
			return nil, err
		}
	}
	if err := a.checkOrder(session); err != nil {
		return nil, err
	}
	a.Sessions.Put(session)
	a.setTimer(session.Expires, sessionExpires, session)
	return session, nil
}

func (a *Account) checkSession(env Env, p NewSession) error {
	switch {
	case p.Mode != modePayment && p.Mode != modeSubscription:
		return invalid("mode", "The sandbox knows the modes `payment` and `subscription`.")
	case p.Customer != "" && p.Email != "":
		return invalid("customer_email", "You may only specify one of these parameters: customer, customer_email.")
	case len(p.Lines) == 0 || len(p.Lines) > maxSessionLines:
		return invalid("line_items", "Between 1 and %d line items are needed.", maxSessionLines)
	case p.Success == "":
		return missingParam("success_url")
	case !isWebURL(p.Success):
		return invalid("success_url", "Not a valid URL").withCode("url_invalid")
	case p.Cancel != "" && !isWebURL(p.Cancel):
		return invalid("cancel_url", "Not a valid URL").withCode("url_invalid")
	case p.Collects == "if_required" && p.Mode != modeSubscription:
		return invalid("payment_method_collection", "You can only set `payment_method_collection` if there are recurring prices.")
	case p.Mode != modeSubscription && p.SubscriptionMetadata != nil:
		return invalid("subscription_data", "You can not pass `subscription_data` in `payment` mode.")
	case p.Mode != modePayment && p.IntentMetadata != nil:
		return invalid("payment_intent_data", "You can not pass `payment_intent_data` in `subscription` mode.")
	}
	if p.Expires != nil && (*p.Expires < env.Now+shortestSession || *p.Expires > env.Now+longestSession) {
		return invalid("expires_at", "The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation and at most 24 hours.")
	}
	if err := checkReference("client_reference_id", p.Reference); err != nil {
		return err
	}
	if p.Email != "" {
		return checkEmail("customer_email", p.Email)
	}
	if p.Customer == "" {
		return nil
	}
	_, err := a.customer(p.Customer)
	return err
}

func (a *Account) addLine(env Env, session *Session, n int, want NewSessionLine) error {
	param := fmt.Sprintf("line_items[%d]", n)
	price, err := a.linePrice(env, param, want)
	if err != nil {
		return err
	}
	switch {
	case session.Mode == modePayment && price.Recurring():
		return invalid(param+"[price]", "You specified `payment` mode but passed a recurring price. Either switch to `subscription` mode or use only one-time prices.")
	case session.Mode == modeSubscription && !price.Recurring():
		return invalid(param+"[price]", "The sandbox takes recurring prices only in `subscription` mode.")
	case session.Currency != "" && session.Currency != price.Currency:
		return invalid(param, "All line items must have the same currency.")
	}
	quantity := int64(1)
	set(&quantity, want.Quantity)
	if quantity < 1 {
		return invalid(param+"[quantity]", "Quantity must be greater than or equal to 1.").withCode("parameter_invalid_integer")
	}
	session.Currency = price.Currency
	session.Total += price.Amount * quantity
	session.Lines = append(session.Lines, SessionLine{
		ID: env.token("li_", idLength), Price: price.ID, Quantity: quantity, Description: a.Products.Get(price.Product).Name,
	})
	return nil
}

// linePrice finds or creates the price of a line item. An inline price and its product
// are created archived, as at Stripe.
func (a *Account) linePrice(env Env, param string, want NewSessionLine) (*Price, error) {
	if want.Inline == nil {
		price, err := find(a.Prices, "price", param+"[price]", want.Price)
		if err == nil {
			err = a.checkActive(price, param+"[price]")
		}
		return price, err
	}
	inline, archived := want.Inline, false
	if err := checkAmount(inline.Amount, inline.Currency); err != nil {
		return nil, err
	}
	product := inline.Product
	if product == "" {
		made, err := a.CreateProduct(env, "", ProductFields{Name: &inline.Name, Active: &archived})
		if err != nil {
			return nil, err
		}
		product = made.ID
	}
	return a.CreatePrice(env, NewPrice{Product: product, Currency: inline.Currency, Amount: inline.Amount, Active: &archived})
}

// checkOrder validates the line items together.
func (a *Account) checkOrder(session *Session) error {
	if customer := a.Customers.Get(session.Customer); session.Mode == modeSubscription {
		if customer != nil && customer.Currency != "" && customer.Currency != session.Currency {
			return errMixed(customer.Currency)
		}
		return a.checkItems(session.items())
	}
	if session.Total > maxAmount {
		return invalid("line_items", "The Checkout Session's total amount must be at most %d.", maxAmount).withCode("amount_too_large")
	}
	if least := minimum(session.Currency); session.Total < least {
		return invalid("line_items", "The Checkout Session's total amount must be at least %d in the smallest unit of %s.", least, session.Currency).withCode("amount_too_small")
	}
	return nil
}

// items are the items of the subscription that the session starts.
func (s *Session) items() []Item {
	var items []Item
	for _, line := range s.Lines {
		items = append(items, Item{Price: line.Price, Quantity: line.Quantity})
	}
	return items
}

// ExpireSession expires an open checkout session.
func (a *Account) ExpireSession(env Env, id string) (*Session, error) {
	session, err := Get(a.Sessions, "checkout.session", id)
	if err != nil {
		return nil, err
	}
	if session.Status != open {
		return nil, invalid("", "Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of `%s`.", session.Status)
	}
	a.expireSession(env, session)
	return session, nil
}

func (a *Account) sessionExpires(env Env, session *Session) {
	if session.Status == open {
		a.expireSession(env, session)
	}
}

func (a *Account) expireSession(env Env, session *Session) {
	session.Status = expired
	a.dropChallenges(session.ID)
	a.emit(env, "checkout.session.expired", session)
}

// SessionOf finds a checkout session by its id or, newest first, by its
// client_reference_id.
func (a *Account) SessionOf(reference string) (*Session, error) {
	if session := a.Sessions.Get(reference); session != nil {
		return session, nil
	}
	sessions := a.Sessions.By(persist.ByAlias, reference)
	if len(sessions) == 0 {
		return nil, NotFound("checkout", reference)
	}
	return sessions[len(sessions)-1], nil
}
