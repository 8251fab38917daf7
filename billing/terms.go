package billing

import (
	"slices"

	"purser/ids"
	"purser/metering"
)

// Terms are what a subscription copies from its plan. Later changes of the plan do not
// affect them.
type Terms struct {
	PlanID  ids.ID
	PlanKey string
	Price
	PriceID       string // the provider's; empty when it was not sold there
	Limits        []metering.Limit
	Grants        []Grant
	Multipliers   []metering.Multiplier
	TopupsEnabled bool
}

// Grant is an amount of one credit.
type Grant struct {
	CreditID  ids.ID
	CreditKey string
	Amount    metering.Amount
}

// Terms copies the plan's current terms.
func (p Plan) Terms() Terms {
	return Terms{
		PlanID:        p.ID,
		PlanKey:       p.Key,
		Price:         p.Price,
		PriceID:       p.Sync.PriceID,
		Limits:        slices.Clone(p.Limits),
		Grants:        slices.Clone(p.Grants),
		Multipliers:   slices.Clone(p.Multipliers),
		TopupsEnabled: p.TopupsEnabled,
	}
}

// Metering is the part of the terms that usage is priced and limited by.
func (t Terms) Metering() metering.Terms {
	return metering.Terms{Limits: t.Limits, Multipliers: t.Multipliers}
}

// credits are the grants above zero.
func (t Terms) credits() []Grant {
	var credits []Grant
	for _, g := range t.Grants {
		if g.Amount > 0 {
			credits = append(credits, g)
		}
	}
	return credits
}
