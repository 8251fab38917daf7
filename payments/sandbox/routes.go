package sandbox

import (
	"net/http"

	"purser/payments/sandbox/engine"
)

// StripePath is the path of the API on this server.
const StripePath = "/sandbox/stripe"

// APIVersion is the only supported version of the API.
const APIVersion = engine.APIVersion

const (
	stripePrefix = StripePath
	v1           = stripePrefix + "/v1/"
)

// stripeRoutes registers the supported part of Stripe's API.
func (s *Server) stripeRoutes(mux *http.ServeMux) {
	get := func(path string, op operation) { mux.HandleFunc("GET "+v1+path, s.stripeHandler(op)) }
	post := func(path string, op operation) { mux.HandleFunc("POST "+v1+path, s.stripeHandler(op)) }
	remove := func(path string, op operation) { mux.HandleFunc("DELETE "+v1+path, s.stripeHandler(op)) }

	post("products", createProduct)
	get("products", listProducts)
	get("products/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Products, "product") })
	post("products/{id}", updateProduct)

	post("prices", createPrice)
	get("prices", listPrices)
	get("prices/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Prices, "price") })
	post("prices/{id}", updatePrice)

	post("customers", createCustomer)
	get("customers", listCustomers)
	get("customers/search", searchCustomers)
	get("customers/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Customers, "customer") })
	post("customers/{id}", updateCustomer)
	remove("customers/{id}", deleteCustomer)

	post("checkout/sessions", createSession)
	get("checkout/sessions", listSessions)
	get("checkout/sessions/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Sessions, "checkout.session") })
	post("checkout/sessions/{id}/expire", expireSession)

	post("subscriptions", createSubscription)
	get("subscriptions", listSubscriptions)
	get("subscriptions/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Subscriptions, "subscription") })
	post("subscriptions/{id}", updateSubscription)
	remove("subscriptions/{id}", cancelSubscription)

	post("subscription_schedules", createSchedule)
	get("subscription_schedules/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Schedules, "subscription schedule") })
	post("subscription_schedules/{id}", updateSchedule)
	post("subscription_schedules/{id}/release", releaseSchedule)

	get("invoices", listInvoices)
	get("invoices/upcoming", upcomingInvoice)
	get("invoices/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Invoices, "invoice") })
	get("invoices/{id}/lines", listInvoiceLines)
	post("invoices/{id}/pay", payInvoice)
	post("invoices/{id}/finalize", finalizeInvoice)
	post("invoices/{id}/void", voidInvoice)

	post("payment_methods", createMethod)
	get("payment_methods", listMethods)
	get("payment_methods/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Methods, "PaymentMethod") })
	post("payment_methods/{id}/attach", attachMethod)
	post("payment_methods/{id}/detach", detachMethod)
	get("customers/{id}/payment_methods", listCustomersMethods)
	post("customers/{id}/balance_transactions", createBalanceTransaction)
	get("customers/{id}/balance_transactions", listBalanceTransactions)
	get("payment_intents", listIntents)
	get("payment_intents/{id}", getIntent)
	get("charges", listCharges)
	get("charges/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Charges, "charge") })
	post("refunds", createRefund)
	get("refunds", listRefunds)
	get("refunds/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Refunds, "refund") })
	get("disputes", listDisputes)
	get("disputes/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Disputes, "dispute") })

	get("events", listEvents)
	get("events/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.Events, "event") })
	post("billing_portal/sessions", createPortal)
	post("billing_portal/configurations", createConfiguration)
	get("account", getAccount)
	post("webhook_endpoints", s.createEndpoint)
	remove("webhook_endpoints/{id}", deleteEndpoint)
	get("webhook_endpoints", listEndpoints)

	post("test_helpers/test_clocks", s.createTestClock)
	get("test_helpers/test_clocks/{id}", func(c *call) (engine.Doc, error) { return one(c, c.account.TestClocks, "test clock") })
	post("test_helpers/test_clocks/{id}/advance", s.advanceTestClock)

	mux.HandleFunc("/sandbox/stripe/", s.stripeHandler(s.unknownPath))
}

// page reads the pagination parameters.
func (c *call) page() (engine.Page, error) {
	const defaultLimit, maxLimit = 10, 100
	page := engine.Page{Limit: defaultLimit, After: c.params.Text("starting_after"), Before: c.params.Text("ending_before")}
	if limit := c.params.Int("limit"); limit != nil {
		if *limit < 1 || *limit > maxLimit {
			return page, badRequest("limit", "Invalid integer: the limit must be between 1 and 100.")
		}
		page.Limit = int(*limit)
	}
	if page.After != "" && page.Before != "" {
		return page, badRequest("ending_before", "You may only specify one of these parameters: starting_after, ending_before.")
	}
	return page, nil
}

// timeRange reads a time filter: created=n, or created[gte]=n and the like.
func (c *call) timeRange(name string) engine.TimeRange {
	if c.params.IsLeaf(name) {
		at := instant(c.params.Int(name))
		return engine.TimeRange{From: at, To: at}
	}
	group := c.params.Group(name)
	return engine.TimeRange{After: instant(group.Int("gt")), From: instant(group.Int("gte")), Before: instant(group.Int("lt")), To: instant(group.Int("lte"))}
}

func instant(seconds *int64) *engine.Time {
	if seconds == nil {
		return nil
	}
	return new(engine.Time(*seconds))
}

// list renders a page of the objects that match the filter. It reads the last
// parameters, so it also refuses unknown ones.
func list[O any](c *call, all *engine.Table[O], filter engine.Filter[O]) (engine.Doc, error) {
	page, err := c.page()
	if err != nil {
		return nil, err
	}
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	found, more, err := engine.List(all, page, filter)
	if err != nil {
		return nil, err
	}
	docs := make([]engine.Doc, 0, len(found))
	for _, o := range found {
		docs = append(docs, c.account.Render(any(o).(engine.Object)))
	}
	return engine.Listed("/v1/"+c.URL.Path[len(v1):], docs, more), nil
}

// one renders the object that the path names.
func one[O any](c *call, all *engine.Table[O], kind string) (engine.Doc, error) {
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	o, err := engine.Get(all, kind, c.id())
	if err != nil {
		return nil, err
	}
	return c.account.Render(any(o).(engine.Object)), nil
}

// apply refuses unknown parameters, makes a change and renders its result. All
// parameters have been read by then.
func apply[P any, O engine.Object](c *call, change func(engine.Env, P) (O, error), p P) (engine.Doc, error) {
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	o, err := change(c.env, p)
	return show(c, o, err)
}

// applyTo is apply for a change to the object that the path names.
func applyTo[P any, O engine.Object](c *call, change func(engine.Env, string, P) (O, error), p P) (engine.Doc, error) {
	return apply(c, func(env engine.Env, p P) (O, error) { return change(env, c.id(), p) }, p)
}

// show renders the result of a change.
func show[T engine.Object](c *call, o T, err error) (engine.Doc, error) {
	if err != nil {
		return nil, err
	}
	return c.account.Render(o), nil
}

// matches reports whether the value matches a filter; the empty filter matches all.
func matches(filter, value string) bool { return filter == "" || filter == value }
