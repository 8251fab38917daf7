package sandbox

import "purser/billing/sandbox/engine"

func getInvoice(c *call) (engine.Doc, error) { return get(c, c.w.Invoices, "invoice") }

func listInvoices(c *call) (engine.Doc, error) {
	customer, subscription, within := c.in.Text("customer"), c.in.Text("subscription"), c.within("created")
	status := c.in.OneOf("status", "draft", "open", "paid", "uncollectible", "void")
	return list(c, c.w.Invoices, engine.Filter[engine.Invoice]{Customer: customer, Parent: subscription, Keep: func(i *engine.Invoice) bool {
		return matches(status, i.Status) && within.Holds(i.Created)
	}})
}

func upcomingInvoice(c *call) (engine.Doc, error) {
	subscription, customer := c.in.Text("subscription"), c.in.Text("customer")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	return c.w.Upcoming(c.m, subscription, customer)
}

func payInvoice(c *call) (engine.Doc, error) {
	method, offSession := c.in.Text("payment_method"), isTrue(c.in.Bool("off_session"))
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	invoice, err := c.w.PayInvoice(c.m, c.id(), method, offSession)
	return show(c, invoice, err)
}

func finalizeInvoice(c *call) (engine.Doc, error) {
	advances := c.in.Bool("auto_advance")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	invoice, err := c.w.FinalizeInvoice(c.m, c.id(), advances)
	return show(c, invoice, err)
}

func voidInvoice(c *call) (engine.Doc, error) {
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	invoice, err := c.w.VoidInvoice(c.m, c.id())
	return show(c, invoice, err)
}

func getIntent(c *call) (engine.Doc, error) {
	c.in.Text("client_secret")
	return get(c, c.w.Intents, "payment_intent")
}

func listIntents(c *call) (engine.Doc, error) {
	customer, within := c.in.Text("customer"), c.within("created")
	return list(c, c.w.Intents, engine.Filter[engine.Intent]{Customer: customer, Keep: func(p *engine.Intent) bool { return within.Holds(p.Created) }})
}

func listCharges(c *call) (engine.Doc, error) {
	customer, intent, within := c.in.Text("customer"), c.in.Text("payment_intent"), c.within("created")
	return list(c, c.w.Charges, engine.Filter[engine.Charge]{Customer: customer, Parent: intent, Keep: func(o *engine.Charge) bool { return within.Holds(o.Created) }})
}

func getCharge(c *call) (engine.Doc, error) { return get(c, c.w.Charges, "charge") }

func createRefund(c *call) (engine.Doc, error) {
	p := engine.NewRefund{
		Charge: c.in.Text("charge"), Intent: c.in.Text("payment_intent"), Amount: c.in.Int("amount"), Metadata: c.in.Pairs("metadata"),
		Reason: c.in.OneOf("reason", "duplicate", "fraudulent", "requested_by_customer"),
	}
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	refund, err := c.w.CreateRefund(c.m, p)
	return show(c, refund, err)
}

func getRefund(c *call) (engine.Doc, error) { return get(c, c.w.Refunds, "refund") }

func listRefunds(c *call) (engine.Doc, error) {
	charge, intent, within := c.in.Text("charge"), c.in.Text("payment_intent"), c.within("created")
	return list(c, c.w.Refunds, engine.Filter[engine.Refund]{Parent: c.w.ChargeParent(charge, intent), Keep: func(r *engine.Refund) bool {
		return matches(intent, r.Intent) && within.Holds(r.Created)
	}})
}

func getDispute(c *call) (engine.Doc, error) { return get(c, c.w.Disputes, "dispute") }

func listDisputes(c *call) (engine.Doc, error) {
	charge, intent, within := c.in.Text("charge"), c.in.Text("payment_intent"), c.within("created")
	return list(c, c.w.Disputes, engine.Filter[engine.Dispute]{Parent: c.w.ChargeParent(charge, intent), Keep: func(d *engine.Dispute) bool {
		return matches(intent, d.Intent) && within.Holds(d.Created)
	}})
}
