package sandbox

import "purser/payments/sandbox/engine"

func createCustomer(c *call) (engine.Doc, error) {
	fields := customerFields(c)
	fields.Attach, fields.TestClock = c.params.Text("payment_method"), c.params.Text("test_clock")
	return apply(c, c.account.CreateCustomer, fields)
}

func updateCustomer(c *call) (engine.Doc, error) {
	return applyTo(c, c.account.UpdateCustomer, customerFields(c))
}

func customerFields(c *call) engine.CustomerFields {
	return engine.CustomerFields{
		Email: c.params.MaybeText("email"), Name: c.params.MaybeText("name"), Description: c.params.MaybeText("description"),
		Metadata: c.params.Pairs("metadata"), Method: c.params.Group("invoice_settings").MaybeText("default_payment_method"),
	}
}

func deleteCustomer(c *call) (engine.Doc, error) {
	return apply(c, c.account.DeleteCustomer, c.id())
}

func searchCustomers(c *call) (engine.Doc, error) {
	query := c.params.Text("query")
	page, err := c.page()
	if err != nil {
		return nil, err
	}
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	found, more, err := c.account.SearchCustomers(query, page.Limit)
	if err != nil {
		return nil, err
	}
	docs := make([]engine.Doc, 0, len(found))
	for _, customer := range found {
		docs = append(docs, c.account.Render(customer))
	}
	result := engine.Listed("/v1/customers/search", docs, more)
	result["object"], result["next_page"] = "search_result", nil
	return result, nil
}

func listCustomers(c *call) (engine.Doc, error) {
	email, clock, within := c.params.Text("email"), c.params.Text("test_clock"), c.timeRange("created")
	return list(c, c.account.Customers, engine.Filter[engine.Customer]{Keep: func(o *engine.Customer) bool {
		return !o.Deleted && matches(email, o.Email) && matches(clock, o.TestClock) && within.Contains(o.Created)
	}})
}

func createBalanceTransaction(c *call) (engine.Doc, error) {
	p := engine.NewBalanceTransaction{
		Customer: c.id(), Amount: c.params.Int("amount"), Currency: c.params.Text("currency"), Description: c.params.Text("description"),
		Metadata: c.params.Pairs("metadata"),
	}
	return apply(c, c.account.CreateBalanceTransaction, p)
}

func listBalanceTransactions(c *call) (engine.Doc, error) {
	customer := c.account.Customers.Get(c.id())
	if customer == nil || customer.Deleted {
		return nil, engine.NotFound("customer", c.id())
	}
	return list(c, c.account.BalanceTransactions, engine.Filter[engine.BalanceTransaction]{Customer: customer.ID})
}

func createMethod(c *call) (engine.Doc, error) {
	kind, token, metadata := c.params.OneOf("type", "card"), c.params.Group("card").Text("token"), c.params.Pairs("metadata")
	c.params.Ignore("billing_details", "allow_redisplay")
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	if kind == "" {
		return nil, badRequest("type", "Missing required param: type.")
	}
	method, err := c.account.CreateMethod(c.env, token, metadata)
	return show(c, method, err)
}

func attachMethod(c *call) (engine.Doc, error) {
	return applyTo(c, c.account.AttachMethod, c.params.Text("customer"))
}

func detachMethod(c *call) (engine.Doc, error) {
	return apply(c, c.account.DetachMethod, c.id())
}

func listMethods(c *call) (engine.Doc, error) { return methodsOf(c, c.params.Text("customer")) }

func listCustomersMethods(c *call) (engine.Doc, error) { return methodsOf(c, c.id()) }

func methodsOf(c *call, customer string) (engine.Doc, error) {
	kind := c.params.Text("type")
	return list(c, c.account.Methods, engine.Filter[engine.Method]{Customer: customer, Keep: func(p *engine.Method) bool {
		return customer != "" && (kind == "" || p.Bank() == (kind == "us_bank_account") && (kind == "card" || kind == "us_bank_account"))
	}})
}

func createPortal(c *call) (engine.Doc, error) {
	flow := c.params.Group("flow_data")
	flow.Ignore("after_completion")
	p := engine.Portal{
		Customer: c.params.Text("customer"), ReturnURL: c.params.Text("return_url"), Configuration: c.params.Text("configuration"), Flow: flow.Text("type"),
	}
	return apply(c, c.account.CreatePortal, p)
}

func createConfiguration(c *call) (engine.Doc, error) {
	profile, features := c.params.Group("business_profile"), c.params.Group("features")
	profile.Ignore("privacy_policy_url", "terms_of_service_url")
	enabled := func(feature string) bool {
		group := features.Group(feature)
		on := group.Bool("enabled")
		// The details of a feature apply to Stripe's own portal only.
		features.Ignore(feature)
		return isTrue(on)
	}
	p := engine.Configuration{
		Headline: profile.Text("headline"), ReturnURL: c.params.Text("default_return_url"), Metadata: c.params.Pairs("metadata"),
		ChangesCard: enabled("payment_method_update"), ShowsInvoices: enabled("invoice_history"), CancelsOwn: enabled("subscription_cancel"),
		ChangesOwn: enabled("subscription_update"), ChangesAddress: enabled("customer_update"),
	}
	c.params.Ignore("login_page")
	return apply(c, c.account.CreateConfiguration, p)
}
