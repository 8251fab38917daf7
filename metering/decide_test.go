package metering

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"purser/fault"
	"purser/ids"
)

// busy is a state in which every rule has something to say.
func busy() (*State, *Feature) {
	f := &Feature{
		ID: ids.New(), Key: "render", CreditID: ids.New(), CreditKey: "gold", Cost: 1000, QuantityPerUnit: 100,
		PricingMode: Fixed, Deduplication: DeduplicateDay, Revision: 4,
	}
	return &State{
		Now: 1_707_566_400_000, // 10 February 2024, noon
		Wallet: Wallet{
			ID:       ids.New(),
			Balances: []Balance{{CreditID: ids.New(), Amount: 1}, {CreditID: f.CreditID, CreditKey: "gold", Amount: 5000}},
		},
		Subscription: &Subscription{
			ID: ids.New(), Status: StatusActive, Period: Period{1_706_745_600_000, 1_709_251_200_000},
			Terms: Terms{
				Limits:      []Limit{{FeatureID: f.ID, Limit: 10, Period: LimitMonth, Overage: OverageCredits}},
				Multipliers: []Multiplier{{FeatureID: f.ID, BasisPoints: 5000}},
			},
		},
	}, f
}

func track(f *Feature, event string, quantity int64) Usage {
	return Usage{TransactionID: ids.New(), EventID: event, Feature: f, EntityID: "x", Quantity: quantity}
}

func TestDecisionExplainsItsAmount(t *testing.T) {
	state, f := busy()
	usage := track(f, "a", 110)
	d := Decide(state, usage)

	wantCharge := Charge{
		Amount: 500, PricingMode: Fixed, Cost: 1000, QuantityPerUnit: 100, BasisPoints: 5000, Billable: 100, FeatureRevision: 4,
	}
	if d.Verdict != Accepted || !d.New || d.Event.Charge != wantCharge {
		t.Errorf("got %s with %+v", d.Verdict, d.Event.Charge)
	}
	wantAllowance := Allowance{Limit: 10, Covered: 10, Period: state.Subscription.Period, Overage: OverageCredits}
	if d.Allowance != wantAllowance || d.Event.Allowance != wantAllowance || d.Event.UsedAfter() != 110 {
		t.Errorf("got the allowance %+v, recorded %+v", d.Allowance, d.Event.Allowance)
	}
	if d.Before.Amount != 5000 || d.After.Amount != 4500 || d.After.CreditKey != "gold" {
		t.Errorf("the balance went from %+v to %+v", d.Before, d.After)
	}
	wantEntry := Entry{
		ID: usage.TransactionID, WalletID: state.Wallet.ID, Kind: EntryCharge, CreditID: f.CreditID,
		Delta: Delta{Amount: 500, Out: true}, BalanceAfter: 4500, CreatedAt: state.Now,
	}
	if got := d.Event.Entry(); got != wantEntry {
		t.Errorf("got the entry %+v, want %+v", got, wantEntry)
	}
}

func TestFirstAcceptedUseLocks(t *testing.T) {
	state, f := busy()
	d := Decide(state, track(f, "a", 1))
	if !d.LocksDeduplication {
		t.Error("the first use does not lock")
	}
	state.Apply(d)
	if !state.Wallet.BillingPeriodLocked() {
		t.Error("the wallet is not locked after its first use")
	}
	f.DeduplicationLocked = true
	usage := track(f, "b", 1)
	usage.EntityID = "y"
	if d = Decide(state, usage); d.Verdict != Accepted || d.LocksDeduplication {
		t.Errorf("the second use locks again: %+v", d)
	}
	for name, usage := range map[string]Usage{
		"a deduplicated use": track(f, "c", 1),
		"a duplicate":        track(f, "a", 1),
	} {
		fresh := *state
		fresh.Wallet.Charged = false
		f.DeduplicationLocked = false
		d := Decide(&fresh, usage)
		fresh.Apply(d)
		if d.LocksDeduplication || fresh.Wallet.BillingPeriodLocked() {
			t.Errorf("%s locks", name)
		}
	}
}

func TestDecideLeavesTheStateAlone(t *testing.T) {
	state, f := busy()
	state.Apply(Decide(state, track(f, "a", 1)))
	before := *state
	before.Wallet.Balances = slices.Clone(state.Wallet.Balances)
	before.Events, before.Billed, before.Used = maps.Clone(state.Events), maps.Clone(state.Billed), maps.Clone(state.Used)
	for _, event := range []string{"a", "b"} {
		usage := track(f, event, 50)
		Decide(state, usage)
		usage.EntityID = "y"
		Decide(state, usage)
	}
	if !reflect.DeepEqual(*state, before) {
		t.Errorf("the state became %+v", state)
	}
}

func TestLostCommitReply(t *testing.T) {
	state, f := busy()
	for name, usage := range map[string]Usage{"accepted": track(f, "a", 20), "deduplicated": track(f, "b", 20)} {
		usage.EntityID = name
		if name == "deduplicated" {
			earlier := track(f, "earlier", 1)
			earlier.EntityID = name
			state.Apply(Decide(state, earlier))
		}
		t.Run("the same transaction of an "+name+" use is answered as before and not stored again", func(t *testing.T) {
			first := Decide(state, usage)
			state.Apply(first)
			balance := state.Wallet.Balance(f.CreditID)
			again := Decide(state, usage)
			state.Apply(again)
			if again.New || again.Verdict != Verdict(name) || again.Verdict != first.Verdict || again.Event != first.Event {
				t.Errorf("got %+v, first it was %+v", again, first)
			}
			if got := state.Wallet.Balance(f.CreditID); got != balance {
				t.Errorf("the balance went from %+v to %+v", balance, got)
			}
		})
		t.Run("another transaction with the id of an "+name+" use is a duplicate", func(t *testing.T) {
			other := usage
			other.TransactionID = ids.New()
			if d := Decide(state, other); d.Verdict != Duplicate || d.Event.TransactionID != usage.TransactionID || d.New {
				t.Errorf("got %s of %s", d.Verdict, d.Event.TransactionID)
			}
		})
	}
}

func TestCounterStaysExact(t *testing.T) {
	state, f := busy()
	f.Cost = 0
	usage := track(f, "a", MaxQuantity)
	key := state.Keys(usage).Counter
	state.Used = map[CounterKey]int64{key: math.MaxInt64 - MaxQuantity}

	d := Decide(state, usage)
	if d.Verdict != Accepted || d.Event.UsedAfter() != math.MaxInt64 {
		t.Errorf("at the limit: got %s %s", d.Verdict, d.Code)
	}
	state.Used[key]++
	d = Decide(state, usage)
	if d.Verdict != Unprocessable || d.Code != fault.UsageOutOfRange || d.New || d.Gate != GateAllowance {
		t.Errorf("one past the limit: got %s %s", d.Verdict, d.Code)
	}
}

func TestErr(t *testing.T) {
	state, f := busy()
	d := Decide(state, track(f, "a", 1))
	if err := d.Err(); err != nil || !d.Allowed() {
		t.Errorf("an accepted use has the error %v", err)
	}
	state.Subscription.Status = StatusPaused
	d = Decide(state, track(f, "a", 1))
	if err := d.Err(); !fault.Is(err, fault.SubscriptionInactive) || d.Allowed() {
		t.Errorf("a refused use has the error %v", err)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	state, f := busy()
	usage := track(f, "a", 150)
	if n := testing.AllocsPerRun(100, func() { decided = Decide(state, usage) }); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}

var decided Decision
