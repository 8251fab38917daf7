package metering

import (
	"math/big"
	"strconv"
	"testing"

	"purser/ids"

	"pgregory.net/rapid"
)

// TestHistories drives the engine and the model through the same random
// histories. Run longer with -rapid.checks=2000 -rapid.steps=50.
func TestHistories(t *testing.T) {
	said := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, said)
		t.Repeat(map[string]func(*rapid.T){
			"":             w.holds,
			"batch":        w.batch,
			"check":        w.check,
			"deposit":      w.deposit,
			"take back":    w.takeBack,
			"time":         w.passTime,
			"catalog":      w.changeFeature,
			"subscription": w.changeSubscription,
			"billing":      w.setBillingPeriod,
		})
	})
	// A history that never gets somewhere proves nothing about it.
	for _, answer := range []string{
		"accepted", "duplicate", "deduplicated", "insufficient_balance", "feature_limit_exceeded",
		"subscription_inactive", "amount_required", "amount_not_accepted", "billing_period_missing", "charge_out_of_range",
	} {
		if said[answer] == 0 {
			t.Errorf("no history came to %s", answer)
		}
	}
	t.Logf("answers: %v", said)
}

// world is what a store would hold, row by row, beside the model. It writes down
// only what decisions say.
type world struct {
	said     map[string]int
	model    *model
	now      int64
	credits  []ids.ID
	features []*Feature
	wallets  []Wallet
	terms    []*Subscription // by wallet
	events   []Event
	billed   []map[BilledKey]ids.ID
	used     []map[CounterKey]int64
	deltas   []map[ids.ID]*big.Int // by wallet and credit: the sum of the journal
	nextID   int
}

func newWorld(t *rapid.T, said map[string]int) *world {
	w := &world{
		said:    said,
		now:     rapid.SampledFrom(moments).Draw(t, "start"),
		credits: []ids.ID{ids.New(), ids.New()},
	}
	for range 2 {
		w.wallets = append(w.wallets, Wallet{ID: ids.New()})
		w.terms = append(w.terms, nil)
		w.billed = append(w.billed, map[BilledKey]ids.ID{})
		w.used = append(w.used, map[CounterKey]int64{})
		w.deltas = append(w.deltas, map[ids.ID]*big.Int{})
	}
	for i := range 4 {
		f := &Feature{
			ID: ids.New(), Key: strconv.Itoa(i), CreditID: w.credits[i%2], Cost: Amount(i * 100), QuantityPerUnit: 1,
			PricingMode: Fixed, Deduplication: anyDeduplication.Draw(t, "deduplication"), Revision: 1,
		}
		if i == 3 {
			f.PricingMode = Callback
		}
		w.features = append(w.features, f)
	}
	w.model = newModel(w.wallets[0].ID, w.wallets[1].ID)
	w.model.now = w.now
	for range 4 {
		w.deposit(t)
	}
	return w
}

// moments lie on the edges of days, weeks, months and leap days.
var moments = func() []int64 {
	var all []int64
	for _, edge := range []int64{
		0,
		1706486400000, // Monday 29 January 2024
		1706659200000, // 31 January 2024
		1706745600000, // 1 February 2024
		1709164800000, // 29 February 2024
		1709251200000, // 1 March 2024
		1735689600000, // 1 January 2025
		maxMoment - 1,
	} {
		all = append(all, max(0, edge-1), edge, edge+1)
	}
	return all
}()

var (
	anyDeduplication = rapid.SampledFrom([]Deduplication{
		DeduplicateNone, DeduplicateNone, DeduplicateDay, DeduplicateWeek, DeduplicateMonth, DeduplicateBilling,
	})
	anyStatus = rapid.SampledFrom([]SubscriptionStatus{
		StatusActive, StatusActive, StatusActive, StatusTrialing, StatusPastDue, StatusUnpaid, StatusPaused,
		StatusIncomplete, StatusCanceled,
	})
	someAmount   = rapid.OneOf(rapid.Map(rapid.Uint64Range(0, 5000), func(n uint64) Amount { return Amount(n) }), anyAmount)
	someQuantity = rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 8), anyQuantity)
)

func (w *world) drawUse(t *rapid.T) Usage {
	u := Usage{
		Feature:  rapid.SampledFrom(w.features).Draw(t, "feature"),
		EntityID: rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "entity"),
		Quantity: someQuantity.Draw(t, "quantity"),
	}
	if rapid.IntRange(0, 2).Draw(t, "dated") == 0 {
		u.OccurredAt = to(rapid.SampledFrom(moments).Draw(t, "occurredAt"))
	}
	rightly := rapid.IntRange(0, 9).Draw(t, "rightly") > 0
	if rightly == (u.Feature.PricingMode == Callback) {
		u.Amount = to(someAmount.Draw(t, "amount"))
	}
	return u
}

func (w *world) check(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "wallet")
	u := w.drawUse(t)
	states := w.load([]int{i}, []Usage{u})
	w.compare(t, Decide(states[i], u), w.model.use(w.wallets[i].ID, u))
}

// batch decides uses of both wallets in turn, as the store does: everything is
// loaded first, by the keys alone, and written last, from the decisions alone.
func (w *world) batch(t *rapid.T) {
	var (
		whose     []int
		uses      []Usage
		decisions []Decision
	)
	for range rapid.IntRange(1, 6).Draw(t, "uses") {
		u := w.drawUse(t)
		u.TransactionID = ids.New()
		if w.nextID > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
			u.EventID = strconv.Itoa(rapid.IntRange(0, w.nextID-1).Draw(t, "event"))
		} else {
			u.EventID = strconv.Itoa(w.nextID)
			w.nextID++
		}
		whose = append(whose, rapid.IntRange(0, 1).Draw(t, "wallet"))
		uses = append(uses, u)
	}
	states := w.load(whose, uses)
	for n, u := range uses {
		asked := u
		asked.TransactionID, asked.EventID = ids.ID{}, ""
		check := Decide(states[whose[n]], asked)
		d := Decide(states[whose[n]], u)
		if d.Verdict != Duplicate && (check.New || check.Verdict != d.Verdict || check.Code != d.Code ||
			check.Event.Charge != d.Event.Charge || check.Allowance != d.Allowance || check.After != d.After) {
			t.Fatalf("the check says %+v, the use %+v", check, d)
		}
		states[whose[n]].Apply(d)
		decisions = append(decisions, d)
		w.compare(t, d, w.model.use(w.wallets[whose[n]].ID, u))
	}
	for n, d := range decisions {
		w.store(t, whose[n], uses[n].Feature, d)
	}
	w.commitReplyLost(t, whose, uses, decisions)
}

// commitReplyLost runs a stored batch again with the same transactions.
func (w *world) commitReplyLost(t *rapid.T, whose []int, uses []Usage, decisions []Decision) {
	states := w.load(whose, uses)
	for n, first := range decisions {
		again := Decide(states[whose[n]], uses[n])
		if first.New && (again.New || again.Verdict != first.Verdict || again.Event != first.Event) {
			t.Fatalf("the same transaction again: got %+v, first it was %+v", again, first)
		}
	}
}

func (w *world) load(whose []int, uses []Usage) map[int]*State {
	states := map[int]*State{}
	shared := map[string]*Event{}
	for n, u := range uses {
		i := whose[n]
		s := states[i]
		if s == nil {
			s = &State{
				Now: w.now, Wallet: w.wallets[i], Subscription: w.terms[i], Events: shared,
				Billed: map[BilledKey]ids.ID{}, Used: map[CounterKey]int64{},
			}
			s.Wallet.Balances = append([]Balance(nil), w.wallets[i].Balances...)
			states[i] = s
		}
		for e := range w.events {
			if w.events[e].EventID == u.EventID {
				shared[u.EventID] = &w.events[e]
			}
		}
		keys := s.Keys(u)
		if from, found := w.billed[i][keys.Billed]; found {
			s.Billed[keys.Billed] = from
		}
		if used, found := w.used[i][keys.Counter]; found {
			s.Used[keys.Counter] = used
		}
	}
	return states
}

func (w *world) store(t *rapid.T, i int, f *Feature, d Decision) {
	if !d.New {
		return
	}
	w.events = append(w.events, d.Event)
	if d.Verdict != Accepted {
		return
	}
	entry := d.Event.Entry()
	w.journal(i, entry.CreditID, entry.Delta)
	w.setBalance(i, d.After)
	w.wallets[i].Charged = true
	f.DeduplicationLocked = true
	if a := d.Event.Allowance; a.Limited() {
		if a.Overage == OverageBlock && d.Event.UsedAfter() > a.Limit {
			t.Fatalf("a blocking limit was passed: %+v", a)
		}
		w.used[i][CounterKey{d.Event.FeatureID, a.Period}] = d.Event.UsedAfter()
	}
	if !d.Event.Period.IsZero() {
		key := BilledKey{d.Event.FeatureID, d.Event.EntityID, d.Event.Period}
		if _, twice := w.billed[i][key]; twice {
			t.Fatalf("charged twice for %+v", key)
		}
		w.billed[i][key] = d.Event.TransactionID
	}
}

func (w *world) setBalance(i int, b Balance) {
	for n := range w.wallets[i].Balances {
		if w.wallets[i].Balances[n].CreditID == b.CreditID {
			w.wallets[i].Balances[n] = b
			return
		}
	}
	if b.Amount > 0 || b.Debt > 0 {
		w.wallets[i].Balances = append(w.wallets[i].Balances, b)
	}
}

func (w *world) journal(i int, credit ids.ID, delta Delta) {
	if w.deltas[i][credit] == nil {
		w.deltas[i][credit] = new(big.Int)
	}
	if sum := w.deltas[i][credit]; delta.Out {
		sum.Sub(sum, bigOf(delta.Amount))
	} else {
		sum.Add(sum, bigOf(delta.Amount))
	}
}
