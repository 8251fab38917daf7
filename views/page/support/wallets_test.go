package support

import (
	"strings"
	"testing"

	"purser/metering"
)

func TestADebtStandsBesideTheBalance(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	row := WalletRow{Identity: "ann", Balances: []metering.Balance{{CreditKey: "tokens", Debt: 80 * metering.PerCredit}}}
	if err := walletRow(row).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	_, balance, _ := strings.Cut(page.String(), `data-label="Balance"`)
	for _, want := range []string{`value="0"`, "debt ", `value="80000000000"`, "In debt"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(balance, "−") {
		t.Errorf("the balance is below zero: %s", balance)
	}
}

func TestAnEndedSubscriptionIsNotToBeCancelled(t *testing.T) {
	t.Parallel()
	for endedAt, want := range map[int64]bool{0: true, day: false} {
		var state strings.Builder
		row := SubscriptionRow{CancelAtPeriodEnd: true, Period: metering.Period{End: day}, EndedAt: endedAt}
		if err := subscriptionState(row).Render(t.Context(), &state); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(state.String(), "Cancels 2 Jan"); got != want {
			t.Errorf("ended at %d: %s", endedAt, &state)
		}
	}
}
