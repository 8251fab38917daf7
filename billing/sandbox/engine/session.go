package engine

import (
	"fmt"

	"purser/billing/sandbox/persist"
)

// Session is a checkout at a hosted page.
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
	Failure      string // why the last attempt did not work, for the page
}

// SessionLine is one position of an order.
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

// NewSession is what a session is made from.
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

// NewSessionLine orders a price that exists, or one that is made for the order.
type NewSessionLine struct {
	Price    string
	Quantity *int64
	Inline   *InlinePrice
}

// InlinePrice is a price for one order, with its product.
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

// CreateSession opens a checkout.
func (w *Account) CreateSession(m Clock, p NewSession) (*Session, error) {
	if err := w.checkSession(m, p); err != nil {
		return nil, err
	}
	head := w.numbered(m, m.token("cs_test_", sessionLength))
	session := &Session{
		Head: head, Mode: p.Mode, Status: open, Payment: unpaid, Customer: p.Customer, Email: p.Email,
		Reference: p.Reference, Success: p.Success, Cancel: p.Cancel, Collects: p.Collects,
		Expires: m.Now + longestSession,
	}
	for into, given := range map[*map[string]string]map[string]string{
		&session.Metadata: p.Metadata, &session.SubscriptionMetadata: p.SubscriptionMetadata, &session.IntentMetadata: p.IntentMetadata,
	} {
		if err := merge(into, given); err != nil {
			return nil, err
		}
	}
	set(&session.Expires, p.Expires)
	for n, want := range p.Lines {
		if err := w.addLine(m, session, n, want); err != nil {
			return nil, err
		}
	}
	if err := w.checkOrder(session); err != nil {
		return nil, err
	}
	w.Sessions.Put(session)
	w.setTimer(session.Expires, sessionExpires, session)
	return session, nil
}

func (w *Account) checkSession(m Clock, p NewSession) error {
	switch {
	case p.Mode != modePayment && p.Mode != modeSubscription:
		return invalid("mode", "The sandbox knows the modes `payment` and `subscription`.")
	case p.Customer != "" && p.Email != "":
		return invalid("customer_email", "You may only specify one of these parameters: customer, customer_email.")
	case len(p.Lines) == 0 || len(p.Lines) > maxSessionLines:
		return invalid("line_items", "Between 1 and %d line items are needed.", maxSessionLines)
	case p.Success == "":
		return absent("success_url")
	case !webAddress(p.Success):
		return invalid("success_url", "Not a valid URL").withCode("url_invalid")
	case p.Cancel != "" && !webAddress(p.Cancel):
		return invalid("cancel_url", "Not a valid URL").withCode("url_invalid")
	case p.Collects == "if_required" && p.Mode != modeSubscription:
		return invalid("payment_method_collection", "You can only set `payment_method_collection` if there are recurring prices.")
	case p.Mode != modeSubscription && p.SubscriptionMetadata != nil:
		return invalid("subscription_data", "You can not pass `subscription_data` in `payment` mode.")
	case p.Mode != modePayment && p.IntentMetadata != nil:
		return invalid("payment_intent_data", "You can not pass `payment_intent_data` in `subscription` mode.")
	}
	if p.Expires != nil && (*p.Expires < m.Now+shortestSession || *p.Expires > m.Now+longestSession) {
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
	_, err := w.customer(p.Customer)
	return err
}

func (w *Account) addLine(m Clock, session *Session, n int, want NewSessionLine) error {
	param := fmt.Sprintf("line_items[%d]", n)
	price, err := w.linePrice(m, param, want)
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
		ID: m.token("li_", idLength), Price: price.ID, Quantity: quantity, Description: w.Products.Get(price.Product).Name,
	})
	return nil
}

// linePrice finds the price of a line, or makes it: an inline price and its
// product are archived from the start, as at Stripe.
func (w *Account) linePrice(m Clock, param string, want NewSessionLine) (*Price, error) {
	if want.Inline == nil {
		price, err := find(w.Prices, "price", param+"[price]", want.Price)
		if err == nil && !price.Active {
			err = invalid(param+"[price]", "The price specified is inactive. This field only accepts active prices.")
		}
		return price, err
	}
	inline, archived := want.Inline, false
	if err := checkAmount(inline.Amount, inline.Currency); err != nil {
		return nil, err
	}
	product := inline.Product
	if product == "" {
		made, err := w.CreateProduct(m, "", ProductFields{Name: &inline.Name, Active: &archived})
		if err != nil {
			return nil, err
		}
		product = made.ID
	}
	return w.CreatePrice(m, NewPrice{Product: product, Currency: inline.Currency, Amount: inline.Amount, Active: &archived})
}

// checkOrder holds what must be true of the whole order.
func (w *Account) checkOrder(session *Session) error {
	if customer := w.Customers.Get(session.Customer); session.Mode == modeSubscription {
		if customer != nil && customer.Currency != "" && customer.Currency != session.Currency {
			return errMixed(customer.Currency)
		}
		return w.checkItems(session.items())
	}
	if session.Total > maxAmount {
		return invalid("line_items", "The Checkout Session's total amount must be at most %d.", maxAmount).withCode("amount_too_large")
	}
	if least := minimum(session.Currency); session.Total < least {
		return invalid("line_items", "The Checkout Session's total amount must be at least %d in the smallest unit of %s.", least, session.Currency).withCode("amount_too_small")
	}
	return nil
}

// items are those of the subscription that the session would start.
func (s *Session) items() []Item {
	var items []Item
	for _, line := range s.Lines {
		items = append(items, Item{Price: line.Price, Quantity: line.Quantity})
	}
	return items
}

// ExpireSession closes an open checkout.
func (w *Account) ExpireSession(m Clock, id string) (*Session, error) {
	session, err := Get(w.Sessions, "checkout.session", id)
	if err != nil {
		return nil, err
	}
	if session.Status != open {
		return nil, invalid("", "Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of `%s`.", session.Status)
	}
	w.expireSession(m, session)
	return session, nil
}

func (w *Account) sessionExpires(m Clock, session *Session) {
	if session.Status == open {
		w.expireSession(m, session)
	}
}

func (w *Account) expireSession(m Clock, session *Session) {
	session.Status = expired
	w.dropChallenges(session.ID)
	w.emit(m, "checkout.session.expired", session)
}

// SessionOf finds a checkout by its id or by the caller's reference to it, the
// newest first.
func (w *Account) SessionOf(reference string) (*Session, error) {
	if session := w.Sessions.Get(reference); session != nil {
		return session, nil
	}
	sessions := w.Sessions.By(persist.ByAlias, reference)
	if len(sessions) == 0 {
		return nil, NotFound("checkout", reference)
	}
	return sessions[len(sessions)-1], nil
}
