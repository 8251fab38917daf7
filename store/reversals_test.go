package store_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/store/verify"
)

func reversalOf(eventID string, amount *metering.Amount) store.Reversal {
	return store.Reversal{
		ID: ids.New(), EventID: eventID, Requested: amount, Reason: "the answer was empty", IdempotencyKey: freshID(), CreatedAt: moment,
	}
}

// TestConcurrentReversalsReturnExactlyTheCharge sends a thousand reversals of one charge
// to three nodes, a third of them twice.
func TestConcurrentReversalsReturnExactlyTheCharge(t *testing.T) {
	t.Parallel()
	const calls, keys, charge = 1000, 700, 1000
	url := storetest.URL(t)
	s := newShop(t, url, 3)
	f := featureOf("answer", "tokens")
	f.PricingMode = metering.Callback
	s.newFeature(t, f)
	s.credit(t, "ann", charge+messagePrice)
	use := s.useOf("answer", "ann", "the answer")
	use.Amount = amountOf(charge)
	mustAccept(t, s.nodes[0], use)
	requests := make([]store.Reversal, keys)
	for i := range requests {
		requests[i] = reversalOf("the answer", amountOf(2))
	}
	var made, repeated, tooLarge atomic.Int64
	atOnce(calls, func(i int) {
		request := requests[i%keys]
		request.ID = ids.New()
		_, duplicate, err := s.on(s.nodes[i%3]).Reverse(context.WithoutCancel(t.Context()), request)
		switch {
		case err == nil && duplicate:
			repeated.Add(1)
		case err == nil:
			made.Add(1)
		case fault.Is(err, fault.ReversalTooLarge):
			tooLarge.Add(1)
		default:
			t.Error(err)
		}
	})
	if made.Load() != charge/2 || made.Load()+repeated.Load()+tooLarge.Load() != calls {
		t.Errorf("%d were made, %d repeated, %d too large", made.Load(), repeated.Load(), tooLarge.Load())
	}
	if left := s.balance(t, "ann"); left != charge+messagePrice {
		t.Errorf("the balance is %s", left)
	}
	for _, n := range s.nodes { // each has the wallet in its cache, or reads it
		if d, err := n.usage.Check(s.message("ann", "")); err != nil || d.Before.Amount != charge+messagePrice {
			t.Errorf("a check sees %s, %v", d.Before.Amount, err)
		}
	}
	soundBooks(t, url, s.tenant)
}

// What was returned is summed before the wallet is locked; what another reversal returns
// in between counts too.
func TestReversalsAreSummedBeforeTheWalletIsLocked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between, requested *metering.Amount
		refused            fault.Code
	}{
		"a part":       {amountOf(3), amountOf(2), ""},
		"too much":     {amountOf(messagePrice - 1), amountOf(2), fault.ReversalTooLarge},
		"all":          {nil, nil, fault.EventNotReversible},
		"what is left": {amountOf(3), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := newShop(t, url, 1)
			s.credit(t, "ann", messagePrice)
			mustAccept(t, s.nodes[0], s.message("ann", "event"))
			_, _, err := s.Reverse(t.Context(), reversalOf("event", amountOf(1)))
			noError(t, err)
			proxy, err := startProxy(url)
			noError(t, err)
			t.Cleanup(proxy.Close)
			met := false
			proxy.Before("SELECT r.amount, r.whole, w.last_seq", func() {
				proxy.Before("FOR NO KEY UPDATE", func() {
					met = true
					if _, _, err := s.Reverse(context.Background(), reversalOf("event", c.between)); err != nil {
						t.Error(err)
					}
				})
			})
			_, _, err = openStore(t, proxy.URL()).App(s.application.Scope()).Reverse(t.Context(), reversalOf("event", c.requested))
			if wantFault(t, err, c.refused); !met {
				t.Error("the wallet is locked while its reversals are summed")
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

// TestFullReversalReturnsTheAllowanceAndThePeriod has one node remember the wallet, and
// another reverse the charge.
func TestFullReversalReturnsTheAllowanceAndThePeriod(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	daily := featureOf("daily", "tokens")
	daily.Cost, daily.Deduplication = 10, metering.DeduplicateDay
	feature := s.newFeature(t, daily)
	s.credit(t, "ann", 1000)
	s.limit(t, "ann", feature, 3, metering.OverageCredits)
	track := func(event string, quantity int64) metering.Decision {
		t.Helper()
		use := s.useOf("daily", "ann", event)
		use.Quantity = quantity
		d, err := s.nodes[0].usage.Track(use)
		noError(t, err)
		return d
	}
	first := track("first", 5) // 3 are covered, 2 are charged
	if first.Event.Charge.Amount != 20 {
		t.Fatalf("charged %s", first.Event.Charge.Amount)
	}
	if d := track("second", 1); d.Verdict != metering.Deduplicated {
		t.Fatalf("the second is %s", d.Verdict)
	}
	if !s.nodes[0].usage.IsCached(s.application.ID, "ann") {
		t.Fatal("the node does not remember the wallet")
	}
	t.Run("a partial one returns only credits", func(t *testing.T) {
		r, _, err := s.on(s.nodes[1]).Reverse(t.Context(), reversalOf("first", amountOf(5)))
		if err != nil || r.Full || r.Amount != 5 {
			t.Fatalf("got %+v, %v", r, err)
		}
		if d := track("third", 1); d.Verdict != metering.Deduplicated {
			t.Errorf("the third is %s", d.Verdict)
		}
	})
	t.Run("a full one makes the next use a first one", func(t *testing.T) {
		r, _, err := s.on(s.nodes[1]).Reverse(t.Context(), reversalOf("first", nil))
		if err != nil || !r.Full || r.Amount != 15 {
			t.Fatalf("got %+v, %v", r, err)
		}
		d := track("fourth", 4)
		if d.Verdict != metering.Accepted || d.Event.Allowance.Used != 0 || d.Event.Charge.Amount != 10 {
			t.Errorf("the fourth is %s from %d used, and costs %s", d.Verdict, d.Event.Allowance.Used, d.Event.Charge.Amount)
		}
		if d := track("fifth", 1); d.Verdict != metering.Deduplicated || d.Event.DeduplicatedFrom == first.Event.TransactionID {
			t.Errorf("the fifth is %s from %s", d.Verdict, d.Event.DeduplicatedFrom)
		}
	})
	t.Run("a repeated event is a duplicate still", func(t *testing.T) {
		if d := track("first", 5); d.Verdict != metering.Duplicate || d.Event.TransactionID != first.Event.TransactionID {
			t.Errorf("got %s", d.Verdict)
		}
	})
	for event, code := range map[string]fault.Code{"first": fault.EventNotReversible, "second": fault.EventNotReversible, "none": fault.EventNotFound} {
		t.Run("of "+event+" is refused", func(t *testing.T) {
			if _, _, err := s.Reverse(t.Context(), reversalOf(event, nil)); !fault.Is(err, code) {
				t.Errorf("got %v, want %s", err, code)
			}
		})
	}
	if left := s.balance(t, "ann"); left != 990 {
		t.Errorf("the balance is %s", left)
	}
	soundBooks(t, url, s.tenant)
}

// An event that an allowance covered returns its allowance, also to a wallet that holds as
// many credits as it can.
func TestReversalWithoutAChargeNeedsNoBalance(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]int{"below the limit": 1, "at the limit": metering.MaxBalances} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := newShop(t, url, 1)
			s.newCredit(t, "covered")
			feature := s.newFeature(t, featureOf("included", "covered"))
			s.credit(t, "ann", 1)
			for i := range held - 1 {
				s.newCredit(t, numbered("credit", i))
				s.deposit(t, depositOf("ann", numbered("credit", i), 1, freshID()))
			}
			s.limit(t, "ann", feature, 3, metering.OverageCredits)
			mustAccept(t, s.nodes[0], s.useOf("included", "ann", "event"))
			r, _, err := s.Reverse(t.Context(), reversalOf("event", nil))
			if err != nil || !r.Full || r.Amount != 0 {
				t.Fatalf("got %+v, %v", r, err)
			}
			if w, err := s.Wallet(t.Context(), "ann"); err != nil || len(w.Balances) != held {
				t.Errorf("the wallet has %d balances, %v", len(w.Balances), err)
			}
			if d, err := s.nodes[0].usage.Track(s.useOf("included", "ann", "next")); err != nil || d.Event.Allowance.Used != 0 {
				t.Errorf("the next use starts from %d used, %v", d.Event.Allowance.Used, err)
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

// TestVerifyOfNewEntriesFollowsReversals seals in between, so that each pass continues
// from sealed counters and billed periods.
func TestVerifyOfNewEntriesFollowsReversals(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	daily := featureOf("daily", "tokens")
	daily.Cost, daily.Deduplication = 10, metering.DeduplicateDay
	feature := s.newFeature(t, daily)
	s.credit(t, "ann", 1000)
	s.limit(t, "ann", feature, 3, metering.OverageCredits)
	recomputed := func(o verify.Options) {
		t.Helper()
		o.Now = moment
		v, err := s.Verification().Verify(t.Context(), o)
		noError(t, err)
		if len(v.Differences) > 0 {
			t.Fatalf("sound books differ: %v", v.Differences)
		}
	}
	for i := range 3 {
		mustAccept(t, s.nodes[0], s.useOf("daily", "ann", numbered("event", i)))
		again := s.useOf("daily", "ann", numbered("again", i))
		if d, err := s.nodes[0].usage.Track(again); err != nil || d.Verdict != metering.Deduplicated {
			t.Fatalf("%s, %v", d.Verdict, err)
		}
		recomputed(verify.Options{New: true, Record: true})
		_, _, err := s.Reverse(t.Context(), reversalOf(numbered("event", i), nil))
		noError(t, err)
		recomputed(verify.Options{New: i == 1, Record: i != 1})
	}
	recomputed(verify.Options{Since: time.UnixMilli(1)})
	recomputed(verify.Options{})
	t.Run("and finds a counter that did not follow", func(t *testing.T) {
		_, _, err := s.Reverse(t.Context(), reversalOf("event 2", nil))
		if !fault.Is(err, fault.EventNotReversible) {
			t.Fatal(err)
		}
		mustAccept(t, s.nodes[0], s.useOf("daily", "ann", "last"))
		_, _, err = s.Reverse(t.Context(), reversalOf("last", nil))
		noError(t, err)
		conn := connect(t, storetest.URL(t))
		exec(t, conn, `UPDATE counters SET used = used + 1 WHERE app_id = $1`, s.application.ID)
		v, err := s.Verification().Verify(t.Context(), verify.Options{New: true})
		noError(t, err)
		if len(v.Differences) != 1 {
			t.Errorf("found %v", v.Differences)
		}
	})
}

// limit gives a wallet a plan that limits a feature.
func (s shop) limit(tb testing.TB, identity string, f metering.Feature, limit int64, overage metering.Overage) {
	tb.Helper()
	noError(tb, s.PutSubscription(tb.Context(), identity, metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment),
		Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: f.ID, FeatureKey: f.Key, Limit: limit, Period: metering.LimitMonth, Overage: overage}}},
	}))
}

func TestReversalPaysDebtFirst(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", messagePrice)
	mustAccept(t, s.nodes[0], s.message("ann", "event"))
	conn := connect(t, url)
	exec(t, conn, `UPDATE balances SET debt_nanocredits = 4 WHERE app_id = $1`, s.application.ID)
	exec(t, conn, `INSERT INTO debtors SELECT app_id, wallet_id, credit_id, org_id FROM balances WHERE app_id = $1`, s.application.ID)
	_, _, err := s.Reverse(t.Context(), reversalOf("event", nil))
	noError(t, err)
	w, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	if b := w.Balances[0]; b.Amount != messagePrice-4 || b.Debt != 0 {
		t.Errorf("the balance is %s with a debt of %s", b.Amount, b.Debt)
	}
}

func TestReversalThatDoesNotFitChangesNothing(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", metering.MaxAmount)
	mustAccept(t, s.nodes[0], s.message("ann", "event"))
	s.credit(t, "ann", 1)
	if _, _, err := s.Reverse(t.Context(), reversalOf("event", nil)); !fault.Is(err, fault.BalanceOverflow) {
		t.Errorf("got %v", err)
	}
	soundBooks(t, url, s.tenant)
	if r, _, err := s.Reverse(t.Context(), reversalOf("event", amountOf(messagePrice-1))); err != nil || r.Full {
		t.Errorf("got %+v, %v", r, err)
	}
	if left := s.balance(t, "ann"); left != metering.MaxAmount {
		t.Errorf("the balance is %s", left)
	}
}

func TestReversalOfACoveredUseReturnsTheAllowanceAlone(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 5) // less than a message
	message, err := s.Feature(t.Context(), "message")
	noError(t, err)
	s.limit(t, "ann", message, 1, metering.OverageBlock)
	mustAccept(t, s.nodes[0], s.message("ann", "covered"))
	if d, err := s.nodes[0].usage.Track(s.message("ann", "past the limit")); answer(d, err) != string(fault.FeatureLimitExceeded) {
		t.Fatalf("got %s", answer(d, err))
	}
	r, _, err := s.Reverse(t.Context(), reversalOf("covered", nil))
	if err != nil || !r.Full || r.Amount != 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
	mustAccept(t, s.nodes[0], s.message("ann", "covered again"))
	if _, _, err := s.Reverse(t.Context(), reversalOf("covered", nil)); !fault.Is(err, fault.EventNotReversible) {
		t.Errorf("got %v", err)
	}
	soundBooks(t, url, s.tenant)
}

func TestRepeatedReversal(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 100)
	mustAccept(t, s.nodes[0], s.message("ann", "event"))
	mustAccept(t, s.nodes[0], s.message("ann", "other"))
	first := reversalOf("event", amountOf(3))
	made, duplicate, err := s.Reverse(t.Context(), first)
	if err != nil || duplicate {
		t.Fatalf("%t, %v", duplicate, err)
	}
	t.Run("returns the first", func(t *testing.T) {
		again := first
		again.ID, again.CreatedAt = ids.New(), moment+5
		got, duplicate, err := s.Reverse(t.Context(), again)
		if err != nil || !duplicate || got.ID != made.ID || got.Amount != 3 || got.CreatedAt != moment {
			t.Errorf("got %+v, %t, %v", got, duplicate, err)
		}
	})
	for name, change := range map[string]func(*store.Reversal){
		"another amount": func(r *store.Reversal) { r.Requested = amountOf(4) },
		"no amount":      func(r *store.Reversal) { r.Requested = nil },
		"another reason": func(r *store.Reversal) { r.Reason = "another" },
		"another event":  func(r *store.Reversal) { r.EventID = "other" },
	} {
		t.Run("with "+name+" is refused", func(t *testing.T) {
			again := first
			again.ID = ids.New()
			change(&again)
			if _, _, err := s.Reverse(t.Context(), again); !fault.Is(err, fault.IdempotencyConflict) {
				t.Errorf("got %v", err)
			}
		})
	}
	if left := s.balance(t, "ann"); left != 100-2*messagePrice+3 {
		t.Errorf("the balance is %s", left)
	}
	t.Run("belongs to its application", func(t *testing.T) {
		other := newShop(t, url, 1)
		if _, _, err := other.Reverse(t.Context(), reversalOf("event", nil)); !fault.Is(err, fault.EventNotFound) {
			t.Errorf("got %v", err)
		}
		other.credit(t, "ann", 100)
		mustAccept(t, other.nodes[0], other.message("ann", "event"))
		same := first
		same.ID = ids.New()
		if _, duplicate, err := other.Reverse(t.Context(), same); err != nil || duplicate {
			t.Errorf("%t, %v", duplicate, err)
		}
	})
	soundBooks(t, url, s.tenant)
}

func TestReversalsAreListedInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	s.credit(t, "ann", 100)
	var keys []store.EventKey
	var want []string
	for i := range 2 {
		d := mustAccept(t, s.nodes[0], s.message("ann", numbered("event", i)))
		keys = append(keys, store.EventKey{WalletID: d.Event.WalletID, TransactionID: d.Event.TransactionID})
		for amount := range 3 {
			_, _, err := s.Reverse(t.Context(), reversalOf(numbered("event", i), amountOf(metering.Amount(amount+1))))
			noError(t, err)
			want = append(want, fmt.Sprint(numbered("event", i), " ", amount+1))
		}
	}
	found, err := s.Reversals(t.Context(), keys)
	noError(t, err)
	var got []string
	for _, key := range keys {
		for _, r := range found[key.TransactionID] {
			got = append(got, fmt.Sprint(r.EventID, " ", r.Amount))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTheOldestReversalsAreListed writes the oldest reversals last, as a node whose
// requests had to wait.
func TestTheOldestReversalsAreListed(t *testing.T) {
	t.Parallel()
	const listed, made = 100, 105
	s := newShop(t, storetest.URL(t), 1)
	f := featureOf("answer", "tokens")
	f.PricingMode = metering.Callback
	s.newFeature(t, f)
	s.credit(t, "ann", made)
	use := s.useOf("answer", "ann", "the answer")
	use.Amount = amountOf(made)
	event := mustAccept(t, s.nodes[0], use).Event
	requests := make([]store.Reversal, made)
	for i := range requests {
		requests[i] = reversalOf("the answer", amountOf(1))
	}
	for _, r := range slices.Backward(requests) {
		_, _, err := s.Reverse(t.Context(), r)
		noError(t, err)
	}
	key := store.EventKey{WalletID: event.WalletID, TransactionID: event.TransactionID}
	found, err := s.Reversals(t.Context(), []store.EventKey{key})
	noError(t, err)
	got := found[event.TransactionID]
	if len(got) != listed {
		t.Fatalf("%d of %d are listed", len(got), made)
	}
	for i, r := range got {
		if r.ID != requests[i].ID {
			t.Fatalf("reversal %d is %s, want %s", i, r.ID, requests[i].ID)
		}
	}
	if returned, err := s.Reversed(t.Context(), key); err != nil || returned != (metering.Reversed{Amount: made, Full: true}) {
		t.Errorf("all of them returned %+v, %v", returned, err)
	}
}

// reverse returns a part or all of any charge, on any node.
func (h *history) reverse(rt *rapid.T) {
	if h.sent == 0 {
		return
	}
	event := "event " + strconv.Itoa(rapid.IntRange(1, h.sent).Draw(rt, "event"))
	var amount *metering.Amount
	if rapid.Bool().Draw(rt, "partial") {
		amount = amountOf(metering.Amount(rapid.Uint64Range(0, 40).Draw(rt, "amount")))
	}
	got, duplicate, err := h.on(h.nodes[anyNode.Draw(rt, "node")]).Reverse(h.t.Context(), reversalOf(event, amount))
	want, code := h.model.reverse(event, amount)
	if code != "" {
		h.said[string(code)]++
		if !fault.Is(err, code) {
			rt.Fatalf("the reversal of %q: %v, the model says %s", event, err, code)
		}
		return
	}
	h.said["reversed"]++
	if err != nil || duplicate || got.Amount != want {
		rt.Fatalf("the reversal of %q: %+v, %t, %v, the model says %s", event, got, duplicate, err, want)
	}
}

// reversedEvent is a charge of the fixture that was returned in part.
const reversedEvent = "returned event"

func (h fixture) reversed(tb testing.TB, usage *store.Engine) {
	tb.Helper()
	h.tenant.deposit(tb, depositOf("returned@example.com", h.credit.Key, 1_000, "deposit to return"))
	use := labelled(h.useOf("messages", reversedEvent), "large")
	use.Identity = "returned@example.com"
	decision, err := usage.Track(use)
	noError(tb, err)
	noError(tb, decision.Err())
	reversal := reversalOf(reversedEvent, amountOf(1))
	reversal.IdempotencyKey = "first reversal"
	_, _, err = h.Reverse(tb.Context(), reversal)
	noError(tb, err)
}

func init() { appCalls = append(appCalls, reversalCalls...) }

var reversalCalls = []call[store.App]{
	{"Reverse", "", fault.EventNotFound, "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		_, _, err := a.Reverse(ctx, reversalOf(reversedEvent, amountOf(1)))
		return nil, err
	}},
	{"Reverse", "its idempotency key", fault.EventNotFound, fault.IdempotencyConflict, fault.IdempotencyConflict, func(ctx context.Context, a store.App, _ fixture) (any, error) {
		requested := reversalOf(reversedEvent, amountOf(2))
		requested.IdempotencyKey = "first reversal"
		_, _, err := a.Reverse(ctx, requested)
		return nil, err
	}},
	{"Reversals", "", "", "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		found, _, err := h.db.Reports(h.application.Scope()).Events(ctx, reports.EventQuery{EventID: reversedEvent})
		if err != nil {
			return nil, err
		}
		return a.Reversals(ctx, []store.EventKey{{WalletID: found[0].WalletID, TransactionID: found[0].TransactionID}})
	}},
	{"Reversed", "", "", "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		found, _, err := h.db.Reports(h.application.Scope()).Events(ctx, reports.EventQuery{EventID: reversedEvent})
		if err != nil {
			return nil, err
		}
		returned, err := a.Reversed(ctx, store.EventKey{WalletID: found[0].WalletID, TransactionID: found[0].TransactionID})
		if err != nil || returned.Amount == 0 {
			return nil, err
		}
		return returned, nil
	}},
}
