package metering

import (
	"strconv"
	"testing"

	"purser/ids"
)

func BenchmarkDecide(b *testing.B) {
	plain, plainFeature := busy()
	plain.Subscription = nil
	listed := *plainFeature
	listed.Deduplication = DeduplicateNone

	full, feature := busy()
	full.Wallet.BillingPeriod = &BillingPeriod{Month, 1_706_695_200_000}
	monthly := *feature
	monthly.Deduplication = DeduplicateBilling

	crowded, crowdedFeature := busy()
	for range 99 {
		crowded.Subscription.Terms.Limits = append([]Limit{{FeatureID: ids.New()}}, crowded.Subscription.Terms.Limits...)
		crowded.Subscription.Terms.Multipliers = append([]Multiplier{{FeatureID: ids.New()}}, crowded.Subscription.Terms.Multipliers...)
	}

	seen, seenFeature := busy()
	seen.Apply(Decide(seen, track(seenFeature, "a", 1)))

	for _, c := range []struct {
		name  string
		state *State
		use   Usage
	}{
		{"list price", plain, track(&listed, "a", 150)},
		{"allowance, multiplier and monthly billing period", full, track(&monthly, "a", 150)},
		{"a plan of 100 limits and 100 multipliers", crowded, track(crowdedFeature, "a", 150)},
		{"refused", plain, track(&listed, "a", 1_000_000)},
		{"deduplicated", seen, track(seenFeature, "b", 150)},
		{"duplicate", seen, track(seenFeature, "a", 150)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decided = Decide(c.state, c.use)
			}
		})
	}
}

// BenchmarkBatch decides and applies 256 uses of one wallet, a full batch of the
// hottest kind. The figure is for one use.
func BenchmarkBatch(b *testing.B) {
	const size = 256
	base, f := busy()
	f.Cost = 1
	uses := make([]Usage, size)
	for i := range uses {
		uses[i] = track(f, strconv.Itoa(i), 1)
		uses[i].EntityID = strconv.Itoa(i % (size / 2))
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%size == 0 {
			base.Events, base.Billed, base.Used = nil, nil, nil
			base.Wallet.Balances[1].Amount = 5000
		}
		base.Apply(Decide(base, uses[n%size]))
	}
}

func BenchmarkPrice(b *testing.B) {
	for b.Loop() {
		Price(123_456_789, 1000, 777, 8_500)
	}
}

func BenchmarkMonthlyPeriod(b *testing.B) {
	period := BillingPeriod{Month, 1_706_695_200_000}
	for b.Loop() {
		period.Containing(1_707_566_400_000)
	}
}
