package metering

import (
	"math"

	"purser/fault"
)

// Decide decides usage against a snapshot of state, which it does not change. The order
// of the gates is part of the contract: the first gate that settles the usage gives the
// decision.
func Decide(state *State, usage Usage) Decision {
	c := consideration{state: state, usage: usage}
	c.Before = state.Wallet.Balance(usage.Feature.CreditID)
	c.Before.CreditKey = usage.Feature.CreditKey
	c.After = c.Before
	switch {
	case c.eventID(), c.amount(), c.deduplication(), c.subscription(), c.allowance(), c.price(), c.balance():
	default:
		c.accept()
	}
	return c.Decision
}

// consideration is a decision in progress. Each gate computes its numbers and reports
// whether it settled the usage.
type consideration struct {
	Decision
	state *State
	usage Usage
}

func (c *consideration) settle(gate Gate, verdict Verdict, code fault.Code) bool {
	c.Gate, c.Verdict, c.Code = gate, verdict, code
	return true
}

// eventID answers a repeated event id with the first record, before any other field of
// the repeat is read.
func (c *consideration) eventID() bool {
	if c.usage.EventID == "" {
		return false
	}
	first, known := c.state.Events[c.usage.EventID]
	if !known {
		return false
	}
	c.Event = *first
	switch {
	case first.TransactionID != c.usage.TransactionID:
		c.Differs = !first.describes(c.state.Wallet.ID, &c.usage)
		return c.settle(GateEventID, Duplicate, "")
	case first.DeduplicatedFrom.IsZero():
		return c.settle(GateEventID, Accepted, "")
	default:
		return c.settle(GateEventID, Deduplicated, "")
	}
}

// amount comes before the gates that depend on state: usage without a required amount is
// invalid in every period, rather than free in some.
func (c *consideration) amount() bool {
	callback := c.usage.Feature.PricingMode == Callback
	switch {
	case callback && c.usage.Amount == nil:
		return c.settle(GateAmount, Unprocessable, fault.AmountRequired)
	case !callback && c.usage.Amount != nil:
		return c.settle(GateAmount, Unprocessable, fault.AmountNotAccepted)
	}
	return false
}

func (c *consideration) deduplication() bool {
	keys := c.draft()
	if keys.PeriodMissing {
		return c.settle(GateDeduplication, Unprocessable, fault.BillingPeriodMissing)
	}
	if keys.Billed.Period.IsZero() {
		return false
	}
	charged, billed := c.state.Billed[keys.Billed]
	if !billed {
		return false
	}
	c.New = c.usage.EventID != ""
	c.Event.DeduplicatedFrom = charged
	c.Event.Charge.Billable = 0
	return c.settle(GateDeduplication, Deduplicated, "")
}

// draft fills in the fields that every record has, and the limit of the terms, whether
// or not a gate will need it.
func (c *consideration) draft() Keys {
	keys, limit, limited := c.state.keys(&c.usage)
	feature := c.usage.Feature
	c.Event = Event{
		TransactionID: c.usage.TransactionID,
		EventID:       c.usage.EventID,
		WalletID:      c.state.Wallet.ID,
		FeatureID:     feature.ID,
		CreditID:      feature.CreditID,
		EntityID:      c.usage.EntityID,
		Quantity:      c.usage.Quantity,
		Quoted:        c.usage.Amount,
		Properties:    c.usage.Properties,
		OccurredAt:    c.usage.occurredAt(c.state.Now),
		CreatedAt:     c.state.Now,
		Period:        keys.Billed.Period,
		Charge: Charge{
			PricingMode:     feature.PricingMode,
			Cost:            feature.Cost,
			QuantityPerUnit: feature.QuantityPerUnit,
			BasisPoints:     ListPrice,
			Billable:        c.usage.Quantity,
			FeatureRevision: feature.Revision,
		},
		BalanceAfter: c.Before.Amount,
		DebtAfter:    c.Before.Debt,
	}
	if limited {
		c.Allowance = Allowance{
			Limit:   limit.Limit,
			Used:    c.state.Used[keys.Counter],
			Period:  keys.Counter.Period,
			Overage: limit.Overage,
		}
	}
	return keys
}

func (c *consideration) subscription() bool {
	if !c.Allowance.Limited() || c.state.Subscription.Status.InForce() {
		return false
	}
	return c.settle(GateSubscription, Refused, fault.SubscriptionInactive)
}

func (c *consideration) allowance() bool {
	a := &c.Allowance
	if !a.Limited() {
		return false
	}
	covered := min(a.Remaining(), c.usage.Quantity)
	if covered < c.usage.Quantity && a.Overage == OverageBlock {
		return c.settle(GateAllowance, Refused, fault.FeatureLimitExceeded)
	}
	// Only paid overage reaches this: about a thousand events of MaxQuantity in one
	// period. The counter must stay exact, so an overflow is refused.
	if a.Used > math.MaxInt64-c.usage.Quantity {
		return c.settle(GateAllowance, Unprocessable, fault.UsageOutOfRange)
	}
	a.Covered = covered
	c.Event.Allowance = *a
	c.Event.Charge.Billable -= covered
	return false
}

func (c *consideration) price() bool {
	charge := &c.Event.Charge
	if charge.PricingMode == Callback {
		charge.Amount = portion(*c.usage.Amount, charge.Billable, c.usage.Quantity)
		return false
	}
	if s := c.state.Subscription; s != nil && s.Status.InForce() {
		charge.BasisPoints = s.Terms.BasisPoints(c.usage.Feature.ID)
	}
	amount, ok := Price(charge.Cost, charge.QuantityPerUnit, charge.Billable, charge.BasisPoints)
	if !ok {
		return c.settle(GatePrice, Unprocessable, fault.ChargeOutOfRange)
	}
	charge.Amount = amount
	return false
}

func (c *consideration) balance() bool {
	after, ok := c.Before.Spend(c.Event.Charge.Amount)
	if !ok {
		return c.settle(GateBalance, Refused, fault.InsufficientBalance)
	}
	c.After = after
	c.Event.BalanceAfter, c.Event.DebtAfter = after.Amount, after.Debt
	return false
}

func (c *consideration) accept() {
	c.Verdict = Accepted
	c.New = c.usage.EventID != ""
	c.LocksDeduplication = !c.usage.Feature.DeduplicationLocked
}
