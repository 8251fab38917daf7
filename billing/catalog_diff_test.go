package billing

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// counting makes ids that differ.
func counting() func() ids.ID {
	var n uint64
	return func() (id ids.ID) {
		n++
		binary.BigEndian.PutUint64(id[8:], n)
		return id
	}
}

// after is the state that applying a comparison leaves.
func (d CatalogDiff) after(s CatalogState) (next CatalogState) {
	next.Credits = leave(s.Credits, d.Credits, func(c metering.Credit) string { return c.Key })
	next.Features = leave(s.Features, d.Features, func(f metering.Feature) string { return f.Key })
	next.Plans = leave(s.Plans, d.Plans, func(p Plan) string { return p.Key })
	for i := range next.Features { // as the store finds them
		f := &next.Features[i]
		f.PlanPricingLocked, f.Multiplied = false, false
		for _, p := range next.Plans {
			f.Multiplied = f.Multiplied || multiplies(p.Terms(), f.ID)
			f.PlanPricingLocked = f.PlanPricingLocked || f.Multiplied || limitOf(p.Terms(), f.ID) != nil
		}
	}
	return next
}

func leave[T any](stored []T, items []CatalogItem[T], key func(T) string) (all []T) {
	changed := map[string]T{}
	for _, item := range items {
		changed[item.Key] = item.After
		if item.Action == CatalogCreate {
			all = append(all, item.After)
		}
	}
	for _, was := range stored {
		if now, found := changed[key(was)]; found {
			was = now
		}
		all = append(all, was)
	}
	return all
}

// drawDraft draws a catalog whose references are mostly of itself.
func drawDraft(t *rapid.T) (d CatalogDraft) {
	key := func(prefix string) string { return prefix + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "key") }
	some := func(prefix string) (keys []string) {
		for _, n := range []string{"1", "2", "3"} {
			if rapid.Bool().Draw(t, "has "+prefix+n) {
				keys = append(keys, prefix+n)
			}
		}
		return keys
	}
	name := rapid.SampledFrom([]string{"A", "B"})
	for _, k := range some("c") {
		d.Credits = append(d.Credits, metering.Credit{Key: k, Name: name.Draw(t, "name"), Unit: "u"})
	}
	for _, k := range some("f") {
		d.Features = append(d.Features, metering.Feature{
			Key: k, Name: name.Draw(t, "name"), Unit: "u", CreditKey: key("c"), Cost: metering.Amount(rapid.IntRange(0, 2).Draw(t, "cost")), QuantityPerUnit: 1,
			PricingMode: rapid.SampledFrom([]metering.PricingMode{metering.Fixed, metering.Callback}).Draw(t, "mode"),
		})
	}
	for _, k := range some("p") {
		plan := PlanDraft{Key: k, Name: name.Draw(t, "name"), Price: Price{int64(rapid.SampledFrom([]int{0, 1, 2900}).Draw(t, "cents")), "usd", Month}, Active: rapid.Bool().Draw(t, "active")}
		if rapid.Bool().Draw(t, "limits") {
			plan.Limits = []metering.Limit{{FeatureKey: key("f"), Limit: 1, Period: metering.LimitMonth, Overage: metering.OverageBlock}}
		}
		if rapid.Bool().Draw(t, "grants") {
			plan.Grants = []Grant{{CreditKey: key("c"), Amount: 1}}
		}
		if rapid.Bool().Draw(t, "multiplies") {
			plan.Multipliers = []metering.Multiplier{{FeatureKey: key("f"), BasisPoints: 5000}}
		}
		d.Plans = append(d.Plans, plan)
	}
	return d
}

// TestApplyingACatalogTwiceChangesNothing: what a comparison leaves compares as the draft,
// has every item of the draft, and can be copied to an empty application.
func TestApplyingACatalogTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := CatalogOptions{NewID: counting(), Now: 7, ArchiveMissing: rapid.Bool().Draw(t, "archive")}
		var state CatalogState
		for range 3 {
			draft := drawDraft(t)
			diff, err := state.Compare(draft, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff.Refusal() != nil {
				if diff.Count(CatalogBlocked) == 0 {
					t.Fatal("a refusal without a blocked item")
				}
				continue
			}
			next := diff.after(state)
			again, err := next.Compare(draft, o)
			if err != nil || again.Count(CatalogNone) != len(again.Changes()) {
				t.Fatalf("applied again it would do %+v, %v", again.Changes(), err)
			}
			if changed := diff.Count(CatalogNone) != len(diff.Changes()); changed != (next.Version() != state.Version()) {
				t.Fatalf("changed is %v, and the versions are %s and %s", changed, state.Version(), next.Version())
			}
			for _, p := range state.Plans {
				if _, kept := find(next.Plans, p.Key); !kept {
					t.Fatalf("the plan %s is gone", p.Key)
				}
			}
			state = next
		}
		copied, err := CatalogState{}.Compare(state.Draft(), o)
		if err != nil || copied.Refusal() != nil {
			t.Fatalf("a copy is refused: %v, %v", err, copied.Refusal())
		}
		if copied.Count(CatalogCreate) != len(state.Credits)+len(state.Features)+len(state.Plans) {
			t.Fatalf("a copy has %d items", copied.Count(CatalogCreate))
		}
	})
}

func find(plans []Plan, key string) (Plan, bool) {
	for _, p := range plans {
		if p.Key == key {
			return p, true
		}
	}
	return Plan{}, false
}

func TestALockedPriceBlocksTheCatalog(t *testing.T) {
	t.Parallel()
	feature := metering.Feature{ID: named("calls"), Key: "calls", Name: "Calls", Unit: "call", CreditID: named("tokens"), CreditKey: "tokens", Cost: 1, QuantityPerUnit: 1, PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, PlanPricingLocked: true}
	state := CatalogState{Credits: []metering.Credit{{ID: named("tokens"), Key: "tokens", Name: "T", Unit: "t", Revision: 1}}, Features: []metering.Feature{feature}}
	draft := state.Draft()
	draft.Features = []metering.Feature{feature}
	draft.Features[0].Cost = 2
	diff, err := state.Compare(draft, CatalogOptions{NewID: counting()})
	if err != nil {
		t.Fatal(err)
	}
	refusal := diff.Refusal()
	wantFault(t, refusal, fault.PricingLocked)
	if !strings.Contains(refusal.Error(), `feature "calls"`) {
		t.Errorf("%q does not name the feature", refusal)
	}
	if diff.Features[0].After.Cost != 1 {
		t.Error("a blocked item has the new price")
	}
}

func TestCatalogSize(t *testing.T) {
	t.Parallel()
	var draft CatalogDraft
	name := counting()
	for range MaxCatalogItems {
		draft.Credits = append(draft.Credits, metering.Credit{Key: name().String()[:36], Name: "A", Unit: "a"})
	}
	diff, err := CatalogState{}.Compare(draft, CatalogOptions{NewID: name})
	if err != nil || diff.Refusal() != nil {
		t.Fatalf("%d credits are refused: %v, %v", MaxCatalogItems, err, diff.Refusal())
	}
	full := diff.after(CatalogState{})
	wantFault(t, full.CheckSize(), "")
	_, err = full.Compare(CatalogDraft{Credits: []metering.Credit{{Key: "more", Name: "A", Unit: "a"}}}, CatalogOptions{NewID: name})
	wantFault(t, err, fault.CatalogTooLarge)
	full.Credits = append(full.Credits, metering.Credit{Key: "more"})
	wantFault(t, full.CheckSize(), fault.CatalogTooLarge)
}

// TestCatalogTerms fills the plans of a catalog up to the most terms that are read as a whole.
func TestCatalogTerms(t *testing.T) {
	t.Parallel()
	state := CatalogState{
		Credits:  []metering.Credit{{ID: named("tokens"), Key: "tokens", Name: "T", Unit: "t", Revision: 1}},
		Features: []metering.Feature{{ID: named("calls"), Key: "calls", Name: "Calls", Unit: "call", CreditID: named("tokens"), CreditKey: "tokens", Cost: 1, QuantityPerUnit: 1, PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1}},
	}
	full := make([]metering.Multiplier, MaxPlanItems)
	for i := range MaxCatalogTerms / MaxPlanItems {
		state.Plans = append(state.Plans, Plan{Key: "p" + strconv.Itoa(i), Name: "P", Price: Price{0, "usd", Month}, Multipliers: full, Revision: 1})
	}
	wantFault(t, state.CheckSize(), "")
	one := PlanDraft{Key: "more", Name: "P", Price: Price{0, "usd", Month}, Multipliers: []metering.Multiplier{{FeatureKey: "calls", BasisPoints: 1}}}
	_, err := state.Compare(CatalogDraft{Plans: []PlanDraft{one}}, CatalogOptions{NewID: counting()})
	wantFault(t, err, fault.CatalogTooLarge)
	one.Multipliers = nil
	_, err = state.Compare(CatalogDraft{Plans: []PlanDraft{one}}, CatalogOptions{NewID: counting()})
	wantFault(t, err, "")
	smaller := PlanDraft{Key: "p0", Name: "P", Price: Price{0, "usd", Month}}
	one.Multipliers = []metering.Multiplier{{FeatureKey: "calls", BasisPoints: 1}}
	_, err = state.Compare(CatalogDraft{Plans: []PlanDraft{smaller, one}}, CatalogOptions{NewID: counting()})
	wantFault(t, err, "")
	draft := state.Draft()
	draft.Plans = append(draft.Plans, one)
	_, err = CatalogState{}.Compare(draft, CatalogOptions{NewID: counting()})
	wantFault(t, err, fault.CatalogTooLarge)
	state.Plans[0].Grants = []Grant{{CreditKey: "tokens"}}
	wantFault(t, state.CheckSize(), fault.CatalogTooLarge)
}
