package metering

import (
	"math/big"

	"purser/ids"

	"pgregory.net/rapid"
)

func (w *world) compare(t *rapid.T, d Decision, want modelAnswer) {
	t.Helper()
	w.said[want.said]++
	got := string(d.Verdict)
	if !d.Allowed() {
		got = string(d.Code)
	}
	if got != want.said {
		t.Fatalf("the engine says %s, the model %s", got, want.said)
	}
	if bigOf(d.Event.Charge.Amount).Cmp(want.amount) != 0 {
		t.Fatalf("%s: the engine charges %s, the model %s", got, d.Event.Charge.Amount, want.amount)
	}
	if d.Event.Period != want.period || d.Event.DeduplicatedFrom != want.from && d.Verdict != Duplicate {
		t.Fatalf("%s: the engine has %v from %s, the model %v from %s",
			got, d.Event.Period, d.Event.DeduplicatedFrom, want.period, want.from)
	}
	if d.Allowed() && d.Event.TransactionID != want.transaction {
		t.Fatalf("%s: the engine names %s, the model %s", got, d.Event.TransactionID, want.transaction)
	}
	if d.Allowance.Limited() != (want.limit != nil) {
		t.Fatalf("%s: the engine has the limit %+v, the model %+v", got, d.Allowance, want.limit)
	}
	if want.limit != nil && (big.NewInt(d.Allowance.Used).Cmp(want.used) != 0 || d.Allowance.Period != want.counts ||
		d.Allowance.Limit != want.limit.Limit || d.Allowance.Overage != want.limit.Overage) {
		t.Fatalf("%s: the engine has the limit %+v, the model %+v, %s in %v", got, d.Allowance, want.limit, want.used, want.counts)
	}
}

// holds is what must be true of every state that was stored.
func (w *world) holds(t *rapid.T) {
	for i, wallet := range w.wallets {
		for _, credit := range w.credits {
			b := wallet.Balance(credit)
			net := new(big.Int).Sub(bigOf(b.Amount), bigOf(b.Debt))
			if b.Amount > MaxAmount || b.Debt > MaxAmount || b.Amount > 0 && b.Debt > 0 {
				t.Fatalf("a balance of %+v", b)
			}
			if sum := w.deltas[i][credit]; sum != nil && sum.Cmp(net) != 0 || sum == nil && net.Sign() != 0 {
				t.Fatalf("the journal sums to %s, the balance is %s", sum, net)
			}
			if want := w.model.wallets[wallet.ID].netOf(credit); net.Cmp(want) != 0 {
				t.Fatalf("the balance is %s, in the model %s", net, want)
			}
		}
		for key, used := range w.used[i] {
			if want := w.model.used(wallet.ID, key.FeatureID, key.Period); big.NewInt(used).Cmp(want) != 0 {
				t.Fatalf("%d are counted in %v, in the model %s", used, key.Period, want)
			}
		}
	}
	if len(w.events) != len(w.model.history) {
		t.Fatalf("%d events are recorded, in the model %d", len(w.events), len(w.model.history))
	}
}

func (w *world) deposit(t *rapid.T) {
	w.move(t, Delta{Amount: someAmount.Draw(t, "amount")})
}

func (w *world) takeBack(t *rapid.T) {
	w.move(t, Delta{Amount: someAmount.Draw(t, "amount"), Out: true})
}

func (w *world) move(t *rapid.T, delta Delta) {
	i := rapid.IntRange(0, 1).Draw(t, "wallet")
	credit := rapid.SampledFrom(w.credits).Draw(t, "credit")
	change, inModel := Balance.Receive, w.model.wallets[w.wallets[i].ID].receive
	if delta.Out {
		change, inModel = takeBackAll, w.model.wallets[w.wallets[i].ID].takeBack
	}
	after, err := change(w.wallets[i].Balance(credit), delta.Amount)
	if done := inModel(credit, delta.Amount); done != (err == nil) {
		t.Fatalf("moving %+v: the engine says %v, the model did it: %t", delta, err, done)
	}
	if err == nil {
		w.setBalance(i, after)
		w.journal(i, credit, delta)
	}
}

// passTime goes to an edge, on or back: occurredAt and a sandbox's clock may do both.
func (w *world) passTime(t *rapid.T) {
	w.now = rapid.SampledFrom(moments).Draw(t, "now")
	w.model.now = w.now
}

// changeFeature requests any change; what is locked stays.
func (w *world) changeFeature(t *rapid.T) {
	f := rapid.SampledFrom(w.features).Draw(t, "feature")
	next, err := f.Patch(FeaturePatch{
		Cost:            to(someAmount.Draw(t, "cost")),
		QuantityPerUnit: to(rapid.OneOf(rapid.Int64Range(1, 4), anyQuantity).Draw(t, "quantityPerUnit")),
		PricingMode:     to(rapid.SampledFrom([]PricingMode{Fixed, Fixed, Callback}).Draw(t, "pricingMode")),
		CreditID:        to(rapid.SampledFrom(w.credits).Draw(t, "credit")),
		Deduplication:   to(anyDeduplication.Draw(t, "deduplication")),
	})
	if err == nil {
		*f = next
	}
}

func (w *world) changeSubscription(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "wallet")
	var s *Subscription
	if rapid.IntRange(0, 5).Draw(t, "none") > 0 {
		start := rapid.SampledFrom(moments).Draw(t, "start")
		s = &Subscription{
			ID: ids.New(), Status: anyStatus.Draw(t, "status"),
			Period: Period{start, start + rapid.SampledFrom([]int64{30, 365}).Draw(t, "days")*dayMillis},
		}
		for _, f := range w.features {
			if rapid.Bool().Draw(t, "limited") {
				s.Terms.Limits = append(s.Terms.Limits, Limit{
					FeatureID: f.ID, Limit: rapid.OneOf(rapid.Int64Range(0, 20), anyQuantity).Draw(t, "limit"),
					Period:  rapid.SampledFrom([]LimitPeriod{LimitMonth, LimitBilling}).Draw(t, "period"),
					Overage: rapid.SampledFrom([]Overage{OverageBlock, OverageCredits}).Draw(t, "overage"),
				})
			}
			if rapid.IntRange(0, 2).Draw(t, "multiplied") == 0 {
				s.Terms.Multipliers = append(s.Terms.Multipliers, Multiplier{
					FeatureID: f.ID, BasisPoints: rapid.SampledFrom([]int64{0, 1, 3333, 5000, 10_000, MaxBasisPoints}).Draw(t, "basisPoints"),
				})
			}
		}
	}
	w.terms[i] = s
	w.model.wallets[w.wallets[i].ID].subscription = s
}

func (w *world) setBillingPeriod(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "wallet")
	b := BillingPeriod{
		Interval: rapid.SampledFrom([]Interval{Day, Week, Month}).Draw(t, "interval"),
		Anchor:   rapid.SampledFrom(moments[:len(moments)-3]).Draw(t, "anchor"),
	}
	wallet, err := w.wallets[i].SetBillingPeriod(b)
	if err == nil {
		w.wallets[i] = wallet
		w.model.wallets[wallet.ID].billing = &b
	}
}
