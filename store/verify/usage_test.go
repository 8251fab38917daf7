package verify

import (
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
)

func TestAFullPassKeepsDays(t *testing.T) {
	t.Parallel()
	const day = 20_000 * 24 * rollup.Hour
	feature, other, key := ids.New(), ids.New(), ids.New()
	sums := func(n int64) rollup.Sums {
		return rollup.Sums{Events: n, Quantity: metering.TotalOf(0, uint64(2*n)), Charged: metering.TotalOf(uint64(n), 3)}
	}
	p := &verifyPass{usage: usageState{all: newAllUsage()}}
	for range 2 { // wallets
		wallet := usageSums{}
		for hour := range int64(24) {
			for _, f := range []ids.ID{feature, other} {
				wallet.add(usageKey{wallet: ids.New(), feature: f, key: key, hour: day + hour*rollup.Hour}, sums(hour+1))
			}
		}
		p.collectUsage([]verifyRange{{proof: &walletProof{done: true, usage: wallet}}})
	}
	u := &p.usage.all
	days := u.days[windowOf(day)]
	if len(u.days) != 1 || len(days) != 2 || days[usageKey{feature: feature, key: key, hour: day}].Events != 2*300 {
		t.Errorf("it keeps %d windows and %d sums of the first", len(u.days), len(days))
	}
	hour := usageKey{feature: feature, key: key, hour: day + 4*rollup.Hour}
	same := hour
	same.feature = other
	whole := sums(5).Add(sums(5))
	if got := u.hours[hour.hour]; got != u.digest(hour, whole)+u.digest(same, whole) {
		t.Error("an hour differs from the sums over its wallets")
	} else if got == u.digest(hour, whole.Add(sums(1)))+u.digest(same, sums(9)) {
		t.Error("an hour does not depend on the feature")
	}
}
