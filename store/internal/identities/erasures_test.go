package identities

import (
	"slices"
	"testing"

	"purser/ids"
)

func TestOnlyLinesThatNameTheCustomerAreErased(t *testing.T) {
	t.Parallel()
	wallet, other := ids.New(), ids.New().Format(ids.Wallet)+` (customer "12"): broken rule: 1 and 11 differ`
	name := wallet.Format(ids.Wallet)
	lines := []string{name + ` (customer "1"): broken rule: 3`, other, `broken rule: chat by user "1" on the day 1`, `broken rule: 1 entry`}
	if !redactLines(lines, wallet, "1") {
		t.Error("nothing was erased")
	}
	const erased = "details were erased with the customer"
	if want := []string{name + ": " + erased, other, erased, `broken rule: 1 entry`}; !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}
