package sandbox

import (
	"purser/billing/sandbox/engine"
	"purser/billing/sandbox/form"
)

func createSession(c *call) (engine.Doc, error) {
	p := engine.NewSession{
		Mode: c.in.OneOf("mode", "payment", "subscription"), Customer: c.in.Text("customer"), Email: c.in.Text("customer_email"),
		Reference: c.in.Text("client_reference_id"), Metadata: c.in.Pairs("metadata"), Success: c.in.Text("success_url"),
		Cancel: c.in.Text("cancel_url"), Expires: instant(c.in.Int("expires_at")),
		Collects:             c.in.OneOf("payment_method_collection", "always", "if_required"),
		SubscriptionMetadata: c.in.Group("subscription_data").Pairs("metadata"),
		IntentMetadata:       c.in.Group("payment_intent_data").Pairs("metadata"),
	}
	for _, line := range c.in.List("line_items") {
		p.Lines = append(p.Lines, sessionLine(line))
	}
	c.in.Texts("payment_method_types")
	c.in.OneOf("ui_mode", "hosted")
	c.in.Text("locale")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	session, err := c.w.CreateSession(c.m, p)
	return show(c, session, err)
}

func sessionLine(in *form.Fields) engine.NewSessionLine {
	line := engine.NewSessionLine{Price: in.Text("price"), Quantity: in.Int("quantity")}
	if in.Has("price_data") {
		data := in.Group("price_data")
		product := data.Group("product_data")
		product.Ignore("description", "metadata")
		line.Inline = &engine.InlinePrice{
			Currency: data.Text("currency"), Amount: data.Int("unit_amount"), Product: data.Text("product"), Name: product.Text("name"),
		}
	}
	return line
}

func getSession(c *call) (engine.Doc, error) { return get(c, c.w.Sessions, "checkout.session") }

func expireSession(c *call) (engine.Doc, error) {
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	session, err := c.w.ExpireSession(c.m, c.id())
	return show(c, session, err)
}

func listSessions(c *call) (engine.Doc, error) {
	customer, subscription, intent := c.in.Text("customer"), c.in.Text("subscription"), c.in.Text("payment_intent")
	status, within := c.in.OneOf("status", "open", "complete", "expired"), c.within("created")
	filter := engine.Filter[engine.Session]{Customer: customer, Keep: func(s *engine.Session) bool {
		return matches(subscription, s.Subscription) && matches(intent, s.Intent) &&
			matches(status, s.Status) && within.Holds(s.Created)
	}}
	if filter.Parent = subscription; subscription == "" {
		filter.Parent = intent
	}
	return list(c, c.w.Sessions, filter)
}
