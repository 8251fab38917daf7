package metering

// Gate is one of the checks that usage has to pass.
type Gate string

const (
	GateEventID       Gate = "event_id"      // is the event id new?
	GateAmount        Gate = "amount"        // is an amount sent exactly when the pricing requires one?
	GateDeduplication Gate = "deduplication" // is the period still unbilled?
	GateSubscription  Gate = "subscription"  // is the subscription that limits the feature in force?
	GateAllowance     Gate = "allowance"     // does it fit, or may the rest be paid?
	GatePrice         Gate = "price"         // does the charge fit into 19 digits?
	GateBalance       Gate = "balance"       // does the balance cover the charge?
)

// gates are in the order in which Decide evaluates them.
var gates = [...]Gate{
	GateEventID, GateAmount, GateDeduplication, GateSubscription, GateAllowance, GatePrice, GateBalance,
}

type Outcome string

// The outcomes. Settled means that the answer was found here and costs nothing.
const (
	GatePassed    Outcome = "passed"
	GateFailed    Outcome = "failed"
	GateSettled   Outcome = "settled"
	GateUnreached Outcome = "unreached"
)

// GateResult is the result of a gate, with the numbers that were compared:
// quantities at the allowance, nanocredits at the price and the balance. Both
// are zero where nothing was compared.
type GateResult struct {
	Gate    Gate
	Outcome Outcome
	Need    uint64
	Have    uint64
}

// Gates explains the decision, gate by gate. It reads the answer off the
// decision itself, so the two cannot disagree.
func (d *Decision) Gates() []GateResult {
	results := make([]GateResult, len(gates))
	outcome := GatePassed
	for i, gate := range gates {
		if gate == d.Gate {
			outcome = GateSettled
			if !d.Allowed() {
				outcome = GateFailed
			}
		}
		results[i] = GateResult{Gate: gate, Outcome: outcome}
		if outcome != GateUnreached {
			results[i].Need, results[i].Have = d.compared(gate)
		}
		if gate == d.Gate {
			outcome = GateUnreached
		}
	}
	return results
}

func (d *Decision) compared(gate Gate) (need, have uint64) {
	switch gate {
	case GateAllowance:
		if d.Allowance.Limited() {
			return uint64(d.Event.Quantity), uint64(d.Allowance.Remaining())
		}
	case GatePrice:
		if d.Gate == GatePrice { // the charge has no amount that fits
			break
		}
		return uint64(d.Event.Charge.Amount), uint64(MaxAmount)
	case GateBalance:
		return uint64(d.Event.Charge.Amount), uint64(d.Before.Amount)
	}
	return 0, 0
}
