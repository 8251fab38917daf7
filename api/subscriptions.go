package api

import (
	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy/audit"
)

type subscriptionReply struct {
	ID                 string                      `json:"id"`
	Identity           string                      `json:"identity"`
	PlanKey            string                      `json:"planKey"`
	Status             metering.SubscriptionStatus `json:"status"`
	PeriodStart        int64                       `json:"periodStart"`
	PeriodEnd          int64                       `json:"periodEnd"`
	CancelAtPeriodEnd  bool                        `json:"cancelAtPeriodEnd"`
	ScheduledChange    *scheduledReply             `json:"scheduledChange,omitzero"`
	PaymentHold        bool                        `json:"paymentHold"`
	CreditGrants       []grantTerm                 `json:"creditGrants"`
	TopupsEnabled      bool                        `json:"topupsEnabled"`
	FeatureMultipliers []multiplierTerm            `json:"featureMultipliers"`
	PendingChange      *pendingReply               `json:"pendingChange,omitzero"`
	FeatureLimits      []limitTerm                 `json:"featureLimits"`
}

type scheduledReply struct {
	PlanKey     string `json:"planKey"`
	EffectiveAt int64  `json:"effectiveAt"`
}

type pendingReply struct {
	PlanKey    string `json:"planKey"`
	ExpiresAt  int64  `json:"expiresAt"`
	PaymentURL string `json:"paymentUrl,omitzero"`
}

// showSubscription shows the current terms; a scheduled change brings its own.
func showSubscription(s billing.Subscription) subscriptionReply {
	shown := subscriptionReply{
		ID:                 s.ID.Format(ids.Subscription),
		Identity:           s.Identity,
		PlanKey:            s.Terms.PlanKey,
		Status:             s.Status,
		PeriodStart:        s.Period.Start,
		PeriodEnd:          s.Period.End,
		CancelAtPeriodEnd:  s.CancelAtPeriodEnd,
		PaymentHold:        s.PaymentHold(),
		CreditGrants:       showAll(s.Terms.Grants, showGrant),
		TopupsEnabled:      s.Terms.TopupsEnabled,
		FeatureMultipliers: showAll(s.Terms.Multipliers, showMultiplier),
		FeatureLimits:      showAll(s.Terms.Limits, showLimit),
	}
	if change := s.Scheduled; change != nil {
		shown.ScheduledChange = &scheduledReply{change.Target.PlanKey, change.EffectiveAt}
	}
	if change := s.Pending; change != nil {
		shown.PendingChange = &pendingReply{change.Target.PlanKey, change.ExpiresAt, change.PaymentURL}
	}
	return shown
}

// getSubscription returns null instead of 404 for an identity without a plan, as the API
// documents.
func (s *Server) getSubscription(c *call) (reply, error) {
	subscription, err := s.cashier.Subscription(c.ctx, c.scope, c.path["identity"])
	if fault.Is(err, fault.SubscriptionNotFound) {
		return ok(nil), nil
	}
	return okOr(showSubscription(subscription), err)
}

func (s *Server) changeSubscription(c *call) (reply, error) {
	request := billing.ChangeRequest{Identity: c.path["identity"], PlanKey: c.body.Text("planKey")}
	return s.recorded(c, "subscription.change", request.Identity, audit.Fields{"plan": request.PlanKey}, func() (reply, error) {
		subscription, err := s.cashier.Change(c.ctx, c.scope, request, c.body.Text("idempotencyKey"))
		return okOr(showSubscription(subscription), err)
	})
}

func (s *Server) cancelSubscription(c *call) (reply, error) {
	request, action := billing.CancelRequest{Identity: c.path["identity"], CancelAtPeriodEnd: c.body.Bool("cancelAtPeriodEnd")}, "subscription.undo-cancel"
	if request.CancelAtPeriodEnd {
		action = "subscription.cancel"
	}
	return s.recorded(c, action, request.Identity, nil, func() (reply, error) {
		subscription, err := s.cashier.Cancel(c.ctx, c.scope, request, c.body.Text("idempotencyKey"))
		return okOr(showSubscription(subscription), err)
	})
}
