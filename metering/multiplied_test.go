package metering

import (
	"testing"

	"purser/fault"
)

func TestMultipliedFeature(t *testing.T) {
	callback, fixed := Callback, Fixed
	f := Feature{PricingMode: Fixed, QuantityPerUnit: 1, Revision: 1, PlanPricingLocked: true, Multiplied: true}
	t.Run("cannot be priced by callback", func(t *testing.T) {
		if _, err := f.Patch(FeaturePatch{PricingMode: &callback}); !fault.Is(err, fault.CallbackMultiplier) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("may be set to the value that it has", func(t *testing.T) {
		if next, err := f.Patch(FeaturePatch{PricingMode: &fixed}); err != nil || next.Revision != 1 {
			t.Errorf("got revision %d, %v", next.Revision, err)
		}
	})
	t.Run("has its price locked for the plan's sake when only limited", func(t *testing.T) {
		limited := f
		limited.Multiplied = false
		if _, err := limited.Patch(FeaturePatch{PricingMode: &callback}); !fault.Is(err, fault.PricingLocked) {
			t.Errorf("got %v", err)
		}
	})
}
