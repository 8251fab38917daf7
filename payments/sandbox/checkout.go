package sandbox

import (
	"purser/payments/sandbox/engine"
	"purser/payments/sandbox/form"
)

func createSession(c *call) (engine.Doc, error) {
	p := engine.NewSession{
		Mode: c.params.OneOf("mode", "payment", "subscription"), Customer: c.params.Text("customer"), Email: c.params.Text("customer_email"),
		Reference: c.params.Text("client_reference_id"), Metadata: c.params.Pairs("metadata"), Success: c.params.Text("success_url"),
		Cancel: c.params.Text("cancel_url"), Expires: instant(c.params.Int("expires_at")),
		Collects:             c.params.OneOf("payment_method_collection", "always", "if_required"),
		SubscriptionMetadata: c.params.Group("subscription_data").Pairs("metadata"),
		IntentMetadata:       c.params.Group("payment_intent_data").Pairs("metadata"),
	}
	for _, line := range c.params.List("line_items") {
		p.Lines = append(p.Lines, sessionLine(line))
	}
	c.params.Texts("payment_method_types")
	c.params.OneOf("ui_mode", "hosted")
	c.params.Text("locale")
	return apply(c, c.account.CreateSession, p)
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

func expireSession(c *call) (engine.Doc, error) {
	return apply(c, c.account.ExpireSession, c.id())
}

func listSessions(c *call) (engine.Doc, error) {
	customer, subscription, intent := c.params.Text("customer"), c.params.Text("subscription"), c.params.Text("payment_intent")
	status, within := c.params.OneOf("status", "open", "complete", "expired"), c.timeRange("created")
	filter := engine.Filter[engine.Session]{Customer: customer, Keep: func(s *engine.Session) bool {
		return matches(subscription, s.Subscription) && matches(intent, s.Intent) &&
			matches(status, s.Status) && within.Contains(s.Created)
	}}
	if filter.Parent = subscription; subscription == "" {
		filter.Parent = intent
	}
	return list(c, c.account.Sessions, filter)
}
