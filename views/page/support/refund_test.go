package support

import (
	"strings"
	"testing"

	"purser/billing"
	"purser/views/component"
)

func TestARefundIsShownAsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	const progress, failed = "Refund in progress", "The last refund did not go through"
	for _, c := range []struct {
		name       string
		state      billing.OperationState
		confirming bool
		refunded   int64
		want       string
	}{
		{"it was not requested", "", false, 0, ""},
		{"it is requested", billing.OperationRunning, false, 0, progress},
		{"it is sent and not confirmed", billing.OperationDone, true, 0, progress},
		{"it is confirmed", billing.OperationDone, false, 500, ""},
		{"the bank sent it back", billing.OperationDone, false, 0, failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var page strings.Builder
			facts := PaymentFacts{
				Paid: component.Sum{AmountCents: 500, Currency: "usd"}, Refunded: component.Sum{AmountCents: c.refunded, Currency: "usd"},
				State: c.state, Confirming: c.confirming,
			}
			if err := paymentFacts(facts).Render(t.Context(), &page); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{progress, failed} {
				if strings.Contains(page.String(), text) != (text == c.want) {
					t.Errorf("%q is shown: %t", text, text != c.want)
				}
			}
		})
	}
}
