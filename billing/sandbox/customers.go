package sandbox

import "purser/billing/sandbox/engine"

func createCustomer(c *call) (engine.Doc, error) {
	fields := customerFields(c)
	fields.Attach, fields.TestClock = c.in.Text("payment_method"), c.in.Text("test_clock")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	customer, err := c.w.CreateCustomer(c.m, fields)
	return show(c, customer, err)
}

func getCustomer(c *call) (engine.Doc, error) { return get(c, c.w.Customers, "customer") }

func updateCustomer(c *call) (engine.Doc, error) {
	fields := customerFields(c)
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	customer, err := c.w.UpdateCustomer(c.m, c.id(), fields)
	return show(c, customer, err)
}

func customerFields(c *call) engine.CustomerFields {
	return engine.CustomerFields{
		Email: c.in.MaybeText("email"), Name: c.in.MaybeText("name"), Description: c.in.MaybeText("description"),
		Metadata: c.in.Pairs("metadata"), Method: c.in.Group("invoice_settings").MaybeText("default_payment_method"),
	}
}

func deleteCustomer(c *call) (engine.Doc, error) {
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	customer, err := c.w.DeleteCustomer(c.m, c.id())
	return show(c, customer, err)
}

func searchCustomers(c *call) (engine.Doc, error) {
	query := c.in.Text("query")
	page, err := c.page()
	if err != nil {
		return nil, err
	}
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	found, more, err := c.w.SearchCustomers(query, page.Limit)
	if err != nil {
		return nil, err
	}
	docs := make([]engine.Doc, 0, len(found))
	for _, customer := range found {
		docs = append(docs, c.w.Render(customer))
	}
	result := engine.Listed("/v1/customers/search", docs, more)
	result["object"], result["next_page"] = "search_result", nil
	return result, nil
}

func listCustomers(c *call) (engine.Doc, error) {
	email, clock, within := c.in.Text("email"), c.in.Text("test_clock"), c.within("created")
	return list(c, c.w.Customers, engine.Filter[engine.Customer]{Keep: func(o *engine.Customer) bool {
		return !o.Deleted && matches(email, o.Email) && matches(clock, o.TestClock) && within.Holds(o.Created)
	}})
}

func createBalanceTransaction(c *call) (engine.Doc, error) {
	p := engine.NewBalanceTransaction{
		Customer: c.id(), Amount: c.in.Int("amount"), Currency: c.in.Text("currency"), Description: c.in.Text("description"),
		Metadata: c.in.Pairs("metadata"),
	}
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	transaction, err := c.w.CreateBalanceTransaction(c.m, p)
	return show(c, transaction, err)
}

func listBalanceTransactions(c *call) (engine.Doc, error) {
	customer := c.w.Customers.Get(c.id())
	if customer == nil || customer.Deleted {
		return nil, engine.NotFound("customer", c.id())
	}
	return list(c, c.w.BalanceTransactions, engine.Filter[engine.BalanceTransaction]{Customer: customer.ID})
}

func createMethod(c *call) (engine.Doc, error) {
	kind, token, metadata := c.in.OneOf("type", "card"), c.in.Group("card").Text("token"), c.in.Pairs("metadata")
	c.in.Ignore("billing_details", "allow_redisplay")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	if kind == "" {
		return nil, badRequest("type", "Missing required param: type.")
	}
	method, err := c.w.CreateMethod(c.m, token, metadata)
	return show(c, method, err)
}

func attachMethod(c *call) (engine.Doc, error) {
	customer := c.in.Text("customer")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	method, err := c.w.AttachMethod(c.m, c.id(), customer)
	return show(c, method, err)
}

func detachMethod(c *call) (engine.Doc, error) {
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	method, err := c.w.DetachMethod(c.m, c.id())
	return show(c, method, err)
}

func listMethods(c *call) (engine.Doc, error) { return methodsOf(c, c.in.Text("customer")) }

func listCustomersMethods(c *call) (engine.Doc, error) { return methodsOf(c, c.id()) }

func methodsOf(c *call, customer string) (engine.Doc, error) {
	kind := c.in.Text("type")
	return list(c, c.w.Methods, engine.Filter[engine.Method]{Customer: customer, Keep: func(p *engine.Method) bool {
		return customer != "" && (kind == "" || p.Bank() == (kind == "us_bank_account") && (kind == "card" || kind == "us_bank_account"))
	}})
}

func getMethod(c *call) (engine.Doc, error) { return get(c, c.w.Methods, "PaymentMethod") }

func createPortal(c *call) (engine.Doc, error) {
	flow := c.in.Group("flow_data")
	flow.Ignore("after_completion")
	p := engine.Portal{
		Customer: c.in.Text("customer"), ReturnURL: c.in.Text("return_url"), Configuration: c.in.Text("configuration"), Flow: flow.Text("type"),
	}
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	portal, err := c.w.CreatePortal(c.m, p)
	return show(c, portal, err)
}

func createConfiguration(c *call) (engine.Doc, error) {
	profile, features := c.in.Group("business_profile"), c.in.Group("features")
	profile.Ignore("privacy_policy_url", "terms_of_service_url")
	enabled := func(feature string) bool {
		group := features.Group(feature)
		on := group.Bool("enabled")
		// How a feature works matters only to Stripe's own portal.
		features.Ignore(feature)
		return isTrue(on)
	}
	p := engine.Configuration{
		Headline: profile.Text("headline"), ReturnURL: c.in.Text("default_return_url"), Metadata: c.in.Pairs("metadata"),
		ChangesCard: enabled("payment_method_update"), ShowsInvoices: enabled("invoice_history"), CancelsOwn: enabled("subscription_cancel"),
		ChangesOwn: enabled("subscription_update"), ChangesAddress: enabled("customer_update"),
	}
	c.in.Ignore("login_page")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	configuration, err := c.w.CreateConfiguration(c.m, p)
	return show(c, configuration, err)
}
