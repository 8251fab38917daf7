package support

import (
	"testing"

	"purser/metering"
)

func TestTheDepositThatIsMissingIsExact(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ debt, need, have metering.Amount }{
		"Deposit at least 1 token.":                                       {0, 2 * metering.PerCredit, metering.PerCredit},
		"Deposit at least 2.5 tokens. This includes the debt of 1 token.": {metering.PerCredit, 3 * metering.PerCredit / 2, 0},
		"Deposit at least 19,999,999,999.999999998 tokens. This includes the debt of 9,999,999,999.999999999 tokens.": {metering.MaxAmount, metering.MaxAmount, 0},
	} {
		d := &metering.Decision{Before: metering.Balance{CreditKey: "tokens", Amount: c.have, Debt: c.debt}}
		line := gateLine(metering.GateResult{Gate: metering.GateBalance, Outcome: metering.GateFailed, Need: uint64(c.need), Have: uint64(c.have)}, d)
		if line.Fix != want {
			t.Errorf("%q, expected %q", line.Fix, want)
		}
	}
}
