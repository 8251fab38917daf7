package metering

import (
	"testing"

	"purser/fault"
	"purser/ids"
)

func TestFeaturePatch(t *testing.T) {
	gold, silver := ids.New(), ids.New()
	render := Feature{
		ID: ids.New(), Key: "render", Name: "Render", Unit: "frame", CreditID: gold, CreditKey: "gold",
		Cost: 1000, QuantityPerUnit: 100, PricingMode: Fixed, Deduplication: DeduplicateDay, Revision: 3,
	}
	priced, used := render, render
	priced.PlanPricingLocked = true
	used.DeduplicationLocked = true

	for name, c := range map[string]struct {
		from  Feature
		patch FeaturePatch
		code  fault.Code
	}{
		"a stale revision":                  {render, FeaturePatch{ExpectedRevision: to(int64(2)), Name: to("x")}, fault.RevisionConflict},
		"another cost under a plan":         {priced, FeaturePatch{Cost: to(Amount(1))}, fault.PricingLocked},
		"another quantity under a plan":     {priced, FeaturePatch{QuantityPerUnit: to(int64(1))}, fault.PricingLocked},
		"another mode under a plan":         {priced, FeaturePatch{PricingMode: to(Callback)}, fault.PricingLocked},
		"another credit under a plan":       {priced, FeaturePatch{CreditID: &silver, CreditKey: to("silver")}, fault.PricingLocked},
		"another deduplication once used":   {used, FeaturePatch{Deduplication: to(DeduplicateWeek)}, fault.DeduplicationLocked},
		"a name and a locked cost together": {priced, FeaturePatch{Name: to("x"), Cost: to(Amount(1))}, fault.PricingLocked},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			next, err := c.from.Patch(c.patch)
			if !fault.Is(err, c.code) || next != c.from {
				t.Errorf("got %+v, %v", next, err)
			}
		})
	}

	both := priced
	both.DeduplicationLocked = true
	for name, c := range map[string]struct {
		from  Feature
		patch FeaturePatch
	}{
		"a new price while no plan names it":  {used, FeaturePatch{Cost: to(Amount(5)), CreditID: &silver, CreditKey: to("silver")}},
		"a new deduplication before any use":  {priced, FeaturePatch{Deduplication: to(DeduplicateNone)}},
		"a new name behind both locks":        {both, FeaturePatch{Name: to("Rendering"), Cost: to(Amount(1000))}},
		"a new unit at the expected revision": {render, FeaturePatch{Unit: to("picture"), ExpectedRevision: to(int64(3))}},
	} {
		t.Run("takes "+name, func(t *testing.T) {
			next, err := c.from.Patch(c.patch)
			if err != nil || next.Revision != 4 {
				t.Errorf("got %+v, %v", next, err)
			}
		})
	}

	t.Run("setting what is there is no change, locked or not", func(t *testing.T) {
		next, err := both.Patch(FeaturePatch{
			Name: to("Render"), Unit: to("frame"), CreditID: &gold, CreditKey: to("gold"), Cost: to(Amount(1000)),
			QuantityPerUnit: to(int64(100)), PricingMode: to(Fixed), Deduplication: to(DeduplicateDay),
		})
		if err != nil || next != both {
			t.Errorf("got %+v, %v", next, err)
		}
	})
}
