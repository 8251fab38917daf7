package support

import (
	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// maxAllowances is how many limited features a wallet's page shows. Each costs a read.
const maxAllowances = 12

// walletPlan reads what an identity's subscription gives and changes to: nil without
// one, and for members without the permission.
func (s *Pages) walletPlan(req *site.Request, identity string) (*supportpage.WalletPlan, error) {
	if !req.May(tenancy.SubscriptionsRead) {
		return nil, nil
	}
	sub, err := req.Payments().Subscription(req.Context, identity)
	if fault.Is(err, fault.SubscriptionNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan := &supportpage.WalletPlan{Price: sub.Terms.Price, Grants: sub.Terms.Grants, Suspended: sub.Status.Suspended()}
	if next := sub.Scheduled; next != nil {
		name, err := planTitle(req, next.Target)
		if err != nil {
			return nil, err
		}
		plan.Scheduled = &supportpage.PlanChange{PlanName: name, At: next.EffectiveAt, Price: next.Target.Price}
	}
	if pending := sub.PendingAt(req.Now()); pending != nil {
		name, err := planTitle(req, pending.Target)
		if err != nil {
			return nil, err
		}
		plan.Pending = &supportpage.PendingChange{PlanName: name, Price: pending.Target.Price, ExpiresAt: pending.ExpiresAt, PaymentURL: pending.PaymentURL}
	}
	plan.NoTopUps = sub.Status.InForce() && !sub.Terms.TopupsEnabled
	plan.MoreAllowances = len(sub.Terms.Limits) > maxAllowances
	plan.Allowances, err = s.allowances(req, identity, sub.Terms.Limits)
	return plan, err
}

// planTitle is the name of the plan that terms were copied from, or its key if the plan
// no longer exists.
func planTitle(req *site.Request, terms billing.Terms) (string, error) {
	plan, err := req.Tenant().Plan(req.Context, terms.PlanKey)
	if fault.Is(err, fault.PlanNotFound) {
		return terms.PlanKey, nil
	}
	return plan.Name, err
}

// allowances reads how much of each limited feature is used, by the decision that the
// next usage would get.
func (s *Pages) allowances(req *site.Request, identity string, limits []metering.Limit) (list []supportpage.Allowance, err error) {
	for _, limit := range limits[:min(len(limits), maxAllowances)] {
		usage := store.Usage{Scope: req.Scope(), Identity: identity, FeatureKey: limit.FeatureKey, Usage: metering.Usage{Quantity: 1}}
		d, err := s.usage.Explain(usage)
		if err == nil && d.Code == fault.AmountRequired { // decided before the allowance
			usage.Amount = new(metering.Amount)
			d, err = s.usage.Explain(usage)
		}
		if fault.Is(err, fault.FeatureNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d.Allowance.Limited() {
			list = append(list, supportpage.Allowance{FeatureKey: limit.FeatureKey, Allowance: d.Allowance})
		}
	}
	return list, nil
}
