package sandbox

import "purser/payments/sandbox/engine"

func listInvoiceLines(c *call) (engine.Doc, error) {
	page, err := c.page()
	if err != nil {
		return nil, err
	}
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	return c.account.InvoiceLines(c.id(), page)
}

func listInvoices(c *call) (engine.Doc, error) {
	customer, subscription, within := c.params.Text("customer"), c.params.Text("subscription"), c.timeRange("created")
	status := c.params.OneOf("status", "draft", "open", "paid", "uncollectible", "void")
	return list(c, c.account.Invoices, engine.Filter[engine.Invoice]{Customer: customer, Parent: subscription, Keep: func(i *engine.Invoice) bool {
		return matches(status, i.Status) && within.Contains(i.Created)
	}})
}

func upcomingInvoice(c *call) (engine.Doc, error) {
	subscription, customer := c.params.Text("subscription"), c.params.Text("customer")
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	return c.account.Upcoming(c.env, subscription, customer)
}

func payInvoice(c *call) (engine.Doc, error) {
	method, offSession := c.params.Text("payment_method"), isTrue(c.params.Bool("off_session"))
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	invoice, err := c.account.PayInvoice(c.env, c.id(), method, offSession)
	return show(c, invoice, err)
}

func finalizeInvoice(c *call) (engine.Doc, error) {
	return applyTo(c, c.account.FinalizeInvoice, c.params.Bool("auto_advance"))
}

func voidInvoice(c *call) (engine.Doc, error) {
	return apply(c, c.account.VoidInvoice, c.id())
}

func getIntent(c *call) (engine.Doc, error) {
	c.params.Text("client_secret")
	return one(c, c.account.Intents, "payment_intent")
}

func listIntents(c *call) (engine.Doc, error) {
	customer, within := c.params.Text("customer"), c.timeRange("created")
	return list(c, c.account.Intents, engine.Filter[engine.Intent]{Customer: customer, Keep: func(p *engine.Intent) bool { return within.Contains(p.Created) }})
}

func listCharges(c *call) (engine.Doc, error) {
	customer, intent, within := c.params.Text("customer"), c.params.Text("payment_intent"), c.timeRange("created")
	return list(c, c.account.Charges, engine.Filter[engine.Charge]{Customer: customer, Parent: intent, Keep: func(o *engine.Charge) bool { return within.Contains(o.Created) }})
}

func createRefund(c *call) (engine.Doc, error) {
	p := engine.NewRefund{
		Charge: c.params.Text("charge"), Intent: c.params.Text("payment_intent"), Amount: c.params.Int("amount"), Metadata: c.params.Pairs("metadata"),
		Reason: c.params.OneOf("reason", "duplicate", "fraudulent", "requested_by_customer"),
	}
	return apply(c, c.account.CreateRefund, p)
}

func listRefunds(c *call) (engine.Doc, error) {
	charge, intent, within := c.params.Text("charge"), c.params.Text("payment_intent"), c.timeRange("created")
	return list(c, c.account.Refunds, engine.Filter[engine.Refund]{Parent: c.account.ChargeParent(charge, intent), Keep: func(r *engine.Refund) bool {
		return matches(intent, r.Intent) && within.Contains(r.Created)
	}})
}

func listDisputes(c *call) (engine.Doc, error) {
	charge, intent, within := c.params.Text("charge"), c.params.Text("payment_intent"), c.timeRange("created")
	return list(c, c.account.Disputes, engine.Filter[engine.Dispute]{Parent: c.account.ChargeParent(charge, intent), Keep: func(d *engine.Dispute) bool {
		return matches(intent, d.Intent) && within.Contains(d.Created)
	}})
}
