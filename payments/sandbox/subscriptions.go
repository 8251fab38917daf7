package sandbox

import (
	"cmp"
	"slices"

	"purser/payments/sandbox/engine"
	"purser/payments/sandbox/form"
)

var paymentBehaviors = []string{"allow_incomplete", "default_incomplete", "error_if_incomplete", "pending_if_incomplete"}

var prorationBehaviors = []string{"always_invoice", "create_prorations", "none"}

func createSubscription(c *call) (engine.Doc, error) {
	p := engine.NewSubscription{
		Customer: c.params.Text("customer"), Items: itemChanges(c.params), Metadata: c.params.Pairs("metadata"), Method: c.params.Text("default_payment_method"),
		SavesMethod: c.params.Group("payment_settings").OneOf("save_default_payment_method", "off", "on_subscription"),
		Behavior:    c.params.OneOf("payment_behavior", paymentBehaviors...), OffSession: isTrue(c.params.Bool("off_session")),
	}
	c.params.OneOf("proration_behavior", prorationBehaviors...)
	c.params.OneOf("collection_method", "charge_automatically")
	return apply(c, c.account.CreateSubscription, p)
}

// itemChanges reads items[0][id], items[0][price] and the like.
func itemChanges(in *form.Fields) []engine.ItemChange {
	var changes []engine.ItemChange
	for _, item := range in.List("items") {
		changes = append(changes, engine.ItemChange{
			ID: item.Text("id"), Price: item.Text("price"), Quantity: item.Int("quantity"),
			Deleted: isTrue(item.Bool("deleted")), Metadata: item.Pairs("metadata"),
		})
	}
	return changes
}

func updateSubscription(c *call) (engine.Doc, error) {
	p := engine.SubscriptionChange{
		Items: itemChanges(c.params), Behavior: c.params.OneOf("payment_behavior", paymentBehaviors...),
		Proration: c.params.OneOf("proration_behavior", prorationBehaviors...), ProrationDate: instant(c.params.Int("proration_date")),
		Anchor: c.params.OneOf("billing_cycle_anchor", "now", "unchanged"), CancelAtPeriodEnd: c.params.Bool("cancel_at_period_end"),
		CancelAt: instant(c.params.Int("cancel_at")), Metadata: c.params.Pairs("metadata"), Method: c.params.MaybeText("default_payment_method"),
		SavesMethod: c.params.Group("payment_settings").MaybeText("save_default_payment_method"), OffSession: c.params.Bool("off_session"),
	}
	return applyTo(c, c.account.UpdateSubscription, p)
}

func cancelSubscription(c *call) (engine.Doc, error) {
	// Accepted and ignored: the sandbox does not prorate cancellations.
	c.params.Ignore("cancellation_details")
	now, prorate := c.params.Bool("invoice_now"), c.params.Bool("prorate")
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	if isTrue(now) || isTrue(prorate) {
		return nil, badRequest("prorate", "The sandbox cancels without a last invoice: leave invoice_now and prorate out, or false.")
	}
	s, err := c.account.CancelSubscription(c.env, c.id())
	return show(c, s, err)
}

func listSubscriptions(c *call) (engine.Doc, error) {
	customer, price, within := c.params.Text("customer"), c.params.Text("price"), c.timeRange("created")
	status := c.params.OneOf("status", "active", "all", "canceled", "ended", "incomplete", "incomplete_expired", "past_due", "paused", "trialing", "unpaid")
	return list(c, c.account.Subscriptions, engine.Filter[engine.Subscription]{Customer: customer, Keep: func(s *engine.Subscription) bool {
		return s.HasStatus(status) && within.Contains(s.Created) && (price == "" || s.HasPrice(price))
	}})
}

func createSchedule(c *call) (engine.Doc, error) {
	from := c.params.Text("from_subscription")
	// Stripe refuses other parameters together with from_subscription.
	if from != "" && hasOther(c.params) {
		return nil, badRequest("from_subscription", "You cannot set any other parameter together with `from_subscription`.")
	}
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	if from == "" {
		return nil, badRequest("from_subscription", "The sandbox makes schedules from a subscription: set `from_subscription`.")
	}
	schedule, err := c.account.CreateSchedule(c.env, from)
	return show(c, schedule, err)
}

func hasOther(in *form.Fields) bool {
	return slices.ContainsFunc([]string{"customer", "default_settings", "end_behavior", "metadata", "phases", "start_date"}, in.Has)
}

func updateSchedule(c *call) (engine.Doc, error) {
	p := engine.ScheduleChange{EndBehavior: c.params.OneOf("end_behavior", "release", "cancel"), Metadata: c.params.Pairs("metadata")}
	usual := c.params.OneOf("proration_behavior", prorationBehaviors...)
	for _, phase := range c.params.List("phases") {
		p.Phases = append(p.Phases, newPhase(phase, usual))
	}
	return applyTo(c, c.account.UpdateSchedule, p)
}

func newPhase(in *form.Fields, usual string) engine.NewPhase {
	phase := engine.NewPhase{
		Start: instant(in.Int("start_date")), End: instant(in.Int("end_date")), Iterations: in.Int("iterations"), Items: itemChanges(in),
		Proration: in.OneOf("proration_behavior", prorationBehaviors...),
		Anchors:   in.OneOf("billing_cycle_anchor", "automatic", "phase_start") == "phase_start",
	}
	phase.Proration = cmp.Or(phase.Proration, usual, "create_prorations")
	return phase
}

func releaseSchedule(c *call) (engine.Doc, error) {
	c.params.Bool("preserve_cancel_date")
	return apply(c, c.account.ReleaseSchedule, c.id())
}
