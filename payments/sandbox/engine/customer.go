package engine

import (
	"fmt"
	"strings"
)

type Customer struct {
	Head
	Email       string
	Name        string
	Description string
	Metadata    map[string]string
	Currency    string // of the first subscription; later ones must have the same
	Balance     int64  // applied to the next invoice; a positive balance is owed by the customer
	Method      string // the default payment method for invoices
	Prefix      string // of invoice numbers
	Invoices    int    // how many were numbered
	Deleted     bool
	TestClock   string
}

// CustomerFields holds the parameters of a customer; nil leaves a field unchanged.
type CustomerFields struct {
	Email       *string
	Name        *string
	Description *string
	Metadata    map[string]string
	Method      *string // invoice_settings.default_payment_method
	Attach      string  // a payment method to attach while creating
	TestClock   string
}

func (a *Account) CreateCustomer(env Env, p CustomerFields) (*Customer, error) {
	head := a.newHead(env, "cus_")
	customer := &Customer{Head: head, Prefix: strings.ToUpper(env.token("", 8))}
	a.Customers.Put(customer)
	if p.Attach != "" {
		method, err := a.attach(env, head.ID, "payment_method", p.Attach)
		if err != nil {
			return nil, err
		}
		// The same token refers to the method that was just created from it.
		if p.Method != nil && *p.Method == p.Attach {
			p.Method = &method.ID
		}
	}
	if err := a.setCustomer(env, customer, p); err != nil {
		return nil, err
	}
	a.emit(env, "customer.created", customer)
	return customer, nil
}

// UpdateCustomer changes the given fields.
func (a *Account) UpdateCustomer(env Env, id string, p CustomerFields) (*Customer, error) {
	customer, err := a.customer(id)
	if err != nil {
		return nil, NotFound("customer", id)
	}
	was := a.Render(customer)
	if err := a.setCustomer(env, customer, p); err != nil {
		return nil, err
	}
	a.emitChange(env, "customer.updated", was, customer)
	return customer, nil
}

func (a *Account) setCustomer(env Env, customer *Customer, p CustomerFields) error {
	if p.Email != nil && *p.Email != "" {
		if err := checkEmail("email", *p.Email); err != nil {
			return err
		}
	}
	set(&customer.Email, p.Email)
	set(&customer.Name, p.Name)
	set(&customer.Description, p.Description)
	if err := mergeMetadata(&customer.Metadata, p.Metadata); err != nil {
		return err
	}
	if p.TestClock != "" {
		if _, err := find(a.TestClocks, "test clock", "test_clock", p.TestClock); err != nil {
			return err
		}
		customer.TestClock = p.TestClock
	}
	if p.Method != nil {
		method, err := a.attach(env, customer.ID, "invoice_settings[default_payment_method]", *p.Method)
		if err != nil {
			return err
		}
		customer.Method = method.ID
	}
	return nil
}

// DeleteCustomer cancels the customer's subscriptions and marks the customer deleted.
// The id is still readable, as deleted.
func (a *Account) DeleteCustomer(env Env, id string) (*Customer, error) {
	customer, err := a.customer(id)
	if err != nil {
		return nil, NotFound("customer", id)
	}
	for _, s := range a.subscriptionsOf(id) {
		a.cancelNow(env, s, "cancellation_requested")
	}
	a.emit(env, "customer.deleted", customer)
	customer.Deleted = true
	return customer, nil
}

// maxEmail is Stripe's limit.
const maxEmail = 512

// checkEmail refuses text that cannot be an address: it needs a name, an @ and a
// domain with a dot.
func checkEmail(param, email string) error {
	name, domain, found := strings.Cut(email, "@")
	host, top, dotted := strings.Cut(domain, ".")
	if !found || name == "" || !dotted || host == "" || top == "" || len(email) > maxEmail ||
		strings.HasSuffix(domain, ".") || strings.ContainsAny(email, " \t\r\n,;<>()") || strings.Contains(domain, "@") {
		return invalid(param, "Invalid email address: %s", email).withCode("email_invalid")
	}
	return nil
}

// customer finds the customer that a parameter names, unless it is deleted.
func (a *Account) customer(id string) (*Customer, error) {
	customer := a.Customers.Get(id)
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
