package metering

import (
	"slices"
	"testing"
)

func TestGates(t *testing.T) {
	expect := func(t *testing.T, d Decision, want ...GateResult) {
		t.Helper()
		got := d.Gates()
		for len(want) < len(gates) {
			want = append(want, GateResult{Gate: gates[len(want)], Outcome: GateUnreached})
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
	passed := func(g Gate) GateResult { return GateResult{Gate: g, Outcome: GatePassed} }

	t.Run("an accepted use passes them all, with its numbers", func(t *testing.T) {
		state, f := busy()
		expect(t, Decide(state, track(f, "a", 110)),
			passed(GateEventID), passed(GateAmount), passed(GateDeduplication), passed(GateSubscription),
			GateResult{GateAllowance, GatePassed, 110, 10},
			GateResult{GatePrice, GatePassed, 500, uint64(MaxAmount)},
			GateResult{GateBalance, GatePassed, 500, 5000})
	})
	t.Run("a use that the balance does not cover fails at the last", func(t *testing.T) {
		state, f := busy()
		expect(t, Decide(state, track(f, "a", 2010)),
			passed(GateEventID), passed(GateAmount), passed(GateDeduplication), passed(GateSubscription),
			GateResult{GateAllowance, GatePassed, 2010, 10},
			GateResult{GatePrice, GatePassed, 10_000, uint64(MaxAmount)},
			GateResult{GateBalance, GateFailed, 10_000, 5000})
	})
	t.Run("a blocked use fails at the allowance and gets no further", func(t *testing.T) {
		state, f := busy()
		state.Subscription.Terms.Limits[0].Overage = OverageBlock
		expect(t, Decide(state, track(f, "a", 11)),
			passed(GateEventID), passed(GateAmount), passed(GateDeduplication), passed(GateSubscription),
			GateResult{GateAllowance, GateFailed, 11, 10})
	})
	t.Run("a resting subscription fails a limited feature", func(t *testing.T) {
		state, f := busy()
		state.Subscription.Status = StatusUnpaid
		expect(t, Decide(state, track(f, "a", 1)),
			passed(GateEventID), passed(GateAmount), passed(GateDeduplication),
			GateResult{Gate: GateSubscription, Outcome: GateFailed})
	})
	t.Run("a billed period settles the use", func(t *testing.T) {
		state, f := busy()
		state.Apply(Decide(state, track(f, "a", 1)))
		expect(t, Decide(state, track(f, "b", 1)),
			passed(GateEventID), passed(GateAmount), GateResult{Gate: GateDeduplication, Outcome: GateSettled})
	})
	t.Run("a duplicate is settled at once", func(t *testing.T) {
		state, f := busy()
		state.Apply(Decide(state, track(f, "a", 1)))
		expect(t, Decide(state, track(f, "a", 1)), GateResult{Gate: GateEventID, Outcome: GateSettled})
	})
	t.Run("a missing amount fails", func(t *testing.T) {
		state, f := busy()
		f.PricingMode = Callback
		expect(t, Decide(state, track(f, "a", 1)),
			passed(GateEventID), GateResult{Gate: GateAmount, Outcome: GateFailed})
	})
	t.Run("a charge past 19 digits fails at the price", func(t *testing.T) {
		state, f := busy()
		f.Cost = MaxAmount
		got := Decide(state, track(f, "a", MaxQuantity))
		results := got.Gates()
		if results[5] != (GateResult{Gate: GatePrice, Outcome: GateFailed}) || results[6].Outcome != GateUnreached {
			t.Errorf("got %v", results)
		}
	})
}
