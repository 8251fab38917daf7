package support

import (
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store/reports"
)

func TestASearchKeepsItsFilter(t *testing.T) {
	t.Parallel()
	plan := ids.New()
	on := func(status metering.SubscriptionStatus) reports.WalletFound {
		return reports.WalletFound{Subscription: &reports.SubscriptionFound{PlanID: plan, Status: status}}
	}
	debtor := reports.WalletFound{Wallet: metering.Wallet{Balances: []metering.Balance{{Amount: 1}, {Debt: 1}}}}
	for name, c := range map[string]struct {
		wallet reports.WalletFound
		of     []reports.WalletFilter
	}{
		"without anything": {reports.WalletFound{}, nil},
		"in debt":          {debtor, []reports.WalletFilter{reports.WalletsInDebt}},
		"active":           {on(metering.StatusActive), []reports.WalletFilter{reports.WalletsOfPlan}},
		"past due":         {on(metering.StatusPastDue), []reports.WalletFilter{reports.WalletsOfPlan, reports.WalletsOnHold}},
		"unpaid":           {on(metering.StatusUnpaid), []reports.WalletFilter{reports.WalletsOfPlan, reports.WalletsOnHold}},
	} {
		listed := map[reports.WalletFilter]bool{reports.AllWallets: true}
		for _, filter := range c.of {
			listed[filter] = true
		}
		for _, filter := range []reports.WalletFilter{reports.AllWallets, reports.WalletsInDebt, reports.WalletsOnHold, reports.WalletsOfPlan} {
			if got := isListed(c.wallet, reports.WalletQuery{Filter: filter, PlanID: plan}); got != listed[filter] {
				t.Errorf("a wallet %s in %q: %t", name, filter, got)
			}
		}
		if isListed(c.wallet, reports.WalletQuery{Filter: reports.WalletsOfPlan, PlanID: ids.New()}) {
			t.Errorf("a wallet %s is listed for another plan", name)
		}
	}
}
