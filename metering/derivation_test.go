package metering_test

import (
	"testing"

	"purser/ids"
	"purser/metering"
)

func TestDerivation(t *testing.T) {
	t.Parallel()
	quoted := metering.Amount(100)
	for name, c := range map[string]struct {
		event metering.Event
		want  metering.Derivation
	}{
		"of a fixed price": {
			metering.Event{Quantity: 3, Charge: metering.Charge{Amount: 21, PricingMode: metering.Fixed, Cost: 7, QuantityPerUnit: 1, BasisPoints: 10_000, Billable: 3}},
			metering.Derivation{Product: "210000", Divisor: "10000", Amount: 21, Holds: true},
		},
		"rounds up once, at the end": {
			metering.Event{Quantity: 1, Charge: metering.Charge{Amount: 1, PricingMode: metering.Fixed, Cost: 1, QuantityPerUnit: 1000, BasisPoints: 5_000, Billable: 1}},
			metering.Derivation{Product: "5000", Divisor: "10000000", Rounded: true, Amount: 1, Holds: true},
		},
		"has numbers longer than an amount": {
			metering.Event{Quantity: metering.MaxQuantity, Charge: metering.Charge{
				Amount: metering.MaxAmount, PricingMode: metering.Fixed, Cost: metering.MaxAmount, QuantityPerUnit: metering.MaxQuantity, BasisPoints: 10_000, Billable: metering.MaxQuantity}},
			metering.Derivation{Product: "900719925474099099909928007452590090000", Divisor: "90071992547409910000", Amount: metering.MaxAmount, Holds: true},
		},
		"of a callback that an allowance covers in part": {
			metering.Event{Quantity: 3, Quoted: &quoted, Charge: metering.Charge{Amount: 67, PricingMode: metering.Callback, Billable: 2}},
			metering.Derivation{Product: "200", Divisor: "3", Rounded: true, Amount: 67, Holds: true},
		},
		"of nothing, for a deduplicated use": {
			metering.Event{Quantity: 3, DeduplicatedFrom: ids.New(), Charge: metering.Charge{PricingMode: metering.Fixed, Cost: 7, QuantityPerUnit: 1, BasisPoints: 10_000}},
			metering.Derivation{Product: "0", Divisor: "1", Holds: true},
		},
		"shows an amount that does not follow": {
			metering.Event{Quantity: 3, Charge: metering.Charge{Amount: 22, PricingMode: metering.Fixed, Cost: 7, QuantityPerUnit: 1, BasisPoints: 10_000, Billable: 3}},
			metering.Derivation{Product: "210000", Divisor: "10000", Amount: 21},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.event.Derivation(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
