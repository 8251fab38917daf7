package engine

import (
	"fmt"
	"strings"
)

// Customer is who pays.
type Customer struct {
	Head
	Email       string
	Name        string
	Description string
	Metadata    map[string]string
	Currency    string // of the first subscription; others are refused from then on
	Balance     int64  // carried to the next invoice; above zero is owed
	Method      string // the default payment method for invoices
	Prefix      string // of invoice numbers
	Invoices    int    // how many were numbered
	Deleted     bool
	TestClock   string
}

// CustomerFields is what a caller may set; nil leaves a field as it is.
type CustomerFields struct {
	Email       *string
	Name        *string
	Description *string
	Metadata    map[string]string
	Method      *string // invoice_settings.default_payment_method
	Attach      string  // a payment method to attach while creating
	TestClock   string
}

// CreateCustomer makes a customer.
func (w *Account) CreateCustomer(m Clock, p CustomerFields) (*Customer, error) {
	head := w.newHead(m, "cus_")
	customer := &Customer{Head: head, Prefix: strings.ToUpper(m.token("", 8))}
	w.Customers.Put(customer)
	if p.Attach != "" {
		method, err := w.attach(m, head.ID, "payment_method", p.Attach)
		if err != nil {
			return nil, err
		}
		// The same token names the method that was just made from it.
		if p.Method != nil && *p.Method == p.Attach {
			p.Method = &method.ID
		}
	}
	if err := w.setCustomer(m, customer, p); err != nil {
		return nil, err
	}
	w.emit(m, "customer.created", customer)
	return customer, nil
}

// UpdateCustomer changes what is given.
func (w *Account) UpdateCustomer(m Clock, id string, p CustomerFields) (*Customer, error) {
	customer, err := w.customer(id)
	if err != nil {
		return nil, NotFound("customer", id)
	}
	was := w.Render(customer)
	if err := w.setCustomer(m, customer, p); err != nil {
		return nil, err
	}
	w.emitChange(m, "customer.updated", was, customer)
	return customer, nil
}

func (w *Account) setCustomer(m Clock, customer *Customer, p CustomerFields) error {
	if p.Email != nil && *p.Email != "" {
		if err := checkEmail("email", *p.Email); err != nil {
			return err
		}
	}
	set(&customer.Email, p.Email)
	set(&customer.Name, p.Name)
	set(&customer.Description, p.Description)
	if err := merge(&customer.Metadata, p.Metadata); err != nil {
		return err
	}
	if p.TestClock != "" {
		if _, err := find(w.TestClocks, "test clock", "test_clock", p.TestClock); err != nil {
			return err
		}
		customer.TestClock = p.TestClock
	}
	if p.Method != nil {
		method, err := w.attach(m, customer.ID, "invoice_settings[default_payment_method]", *p.Method)
		if err != nil {
			return err
		}
		customer.Method = method.ID
	}
	return nil
}

// DeleteCustomer ends the customer's subscriptions and takes the customer away.
// Its id still answers, as deleted.
func (w *Account) DeleteCustomer(m Clock, id string) (*Customer, error) {
	customer, err := w.customer(id)
	if err != nil {
		return nil, NotFound("customer", id)
	}
	for _, s := range w.subscriptionsOf(id) {
		w.end(m, s, "cancellation_requested")
	}
	w.emit(m, "customer.deleted", customer)
	customer.Deleted = true
	return customer, nil
}

// maxEmail is Stripe's limit.
const maxEmail = 512

// checkEmail refuses what cannot be an address: it wants a name, an @ and a domain
// with a dot.
func checkEmail(param, email string) error {
	name, domain, found := strings.Cut(email, "@")
	host, top, dotted := strings.Cut(domain, ".")
	if !found || name == "" || !dotted || host == "" || top == "" || len(email) > maxEmail ||
		strings.HasSuffix(domain, ".") || strings.ContainsAny(email, " \t\r\n,;<>()") || strings.Contains(domain, "@") {
		return invalid(param, "Invalid email address: %s", email).withCode("email_invalid")
	}
	return nil
}

// customer finds one that a parameter names and that is not deleted.
func (w *Account) customer(id string) (*Customer, error) {
	customer := w.Customers.Get(id)
	if customer == nil || customer.Deleted {
		return nil, missing("customer", "customer", id)
	}
	return customer, nil
}

// nextNumber is the number of the customer's next invoice.
func (c *Customer) nextNumber() string {
	c.Invoices++
	return fmt.Sprintf("%s-%04d", c.Prefix, c.Invoices)
}
