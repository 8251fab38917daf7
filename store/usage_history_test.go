package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// TestHistoriesEndAsTheModelSays drives two nodes and the model through the same
// random histories. Run longer with -rapid.checks=2000 -rapid.steps=50.
func TestHistoriesEndAsTheModelSays(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	var now atomic.Int64
	var nodes []node
	for range 2 {
		nodes = append(nodes, openNode(t, url, store.EngineOptions{Now: now.Load}))
	}
	conn := connect(t, url)
	remote := make(map[string]int)
	play := func(rt *rapid.T) {
		h := newHistory(rt, t, nodes, &now, remote)
		rt.Repeat(map[string]func(*rapid.T){
			"use":          h.use,
			"use again":    h.use,
			"uses at once": h.usesAtOnce,
			"batch":        h.batch,
			"group":        h.group,
			"check":        h.check,
			"deposit":      h.deposit,
			"reverse":      h.reverse,
			"transfer":     h.transfer,
			"rename":       h.rename,
			"erase":        h.erase,
			"price":        h.changePrice,
			"subscription": h.changeSubscription,
			"billing":      h.setBillingPeriod,
			"time":         h.passTime,
		})
		h.compareRows(rt, conn)
		for _, broken := range brokenInvariants(t, conn, h.tenant) {
			rt.Errorf("not so: %s", broken)
		}
	}
	// A history that never gets somewhere proves nothing about it. A few answers are rare, so
	// that in one of many runs no history comes to them: then more are played.
	missing := func() (answers []string) {
		for _, answer := range []string{
			"accepted", "duplicate", "deduplicated", "insufficient_balance", "feature_limit_exceeded", "subscription_inactive",
			"amount_required", "amount_not_accepted", "billing_period_missing", "charge_out_of_range", "group_conflict",
			"reversed", "reversal_too_large", "event_not_reversible", "event_not_found",
			"transferred", "transfer_to_self", "renamed", "identity_taken", "erased",
		} {
			if remote[answer] == 0 {
				answers = append(answers, answer)
			}
		}
		return answers
	}
	rapid.Check(t, play)
	for rounds := 1; len(missing()) > 0 && rounds < 8 && !t.Failed(); rounds++ {
		rapid.Check(t, play)
	}
	if answers := missing(); len(answers) > 0 {
		t.Errorf("no history came to %v", answers)
	}
	t.Logf("answers: %v, wrong by memory: %d and %d", remote, nodes[0].usage.Conflicts(), nodes[1].usage.Conflicts())
}

// history is an application on two nodes, beside the model of it.
type history struct {
	shop
	t     *testing.T
	model *model
	now   *atomic.Int64
	said  map[string]int
	sent  int             // event ids
	moved *store.Transfer // the last transfer

	erased []string // identities of erased wallets
}

var (
	identities = []string{"ann", "bob", "cid"}
	// moments lie on both sides of the edges of days, weeks, months and a leap day.
	moments = []int64{
		1706486400000 - 1, 1706486400000, // Monday 29 January 2024
		1706745600000 - 1, 1706745600000, // 1 February
		1709164800000,                    // 29 February
		1709251200000 - 1, 1709251200000, // 1 March
	}
	anyNode          = rapid.IntRange(0, 1)
	anyIdentity      = rapid.SampledFrom(identities)
	anyMoment        = rapid.SampledFrom(moments)
	anyDeduplication = rapid.SampledFrom([]metering.Deduplication{
		metering.DeduplicateNone, metering.DeduplicateNone, metering.DeduplicateDay, metering.DeduplicateWeek,
		metering.DeduplicateMonth, metering.DeduplicateBilling,
	})
	anyStatus = rapid.SampledFrom([]metering.SubscriptionStatus{
		metering.StatusActive, metering.StatusActive, metering.StatusTrialing, metering.StatusPastDue, metering.StatusUnpaid,
		metering.StatusPaused, metering.StatusIncomplete, metering.StatusCanceled,
	})
	someAmount = rapid.OneOf(
		rapid.Map(rapid.Uint64Range(0, 300), func(n uint64) metering.Amount { return metering.Amount(n) }),
		rapid.SampledFrom([]metering.Amount{metering.MaxAmount, metering.MaxAmount / 2, 10_000, 100_000_000, 9_999_999_999_999_990_000}))
	someQuantity = rapid.OneOf(rapid.Int64Range(1, 9), rapid.SampledFrom([]int64{1, 2, metering.MaxQuantity}))
)

func newHistory(rt *rapid.T, t *testing.T, nodes []node, now *atomic.Int64, remote map[string]int) *history {
	h := &history{shop: shop{nodes: nodes, tenant: newTenant(t, nodes[0].db)}, t: t, model: newModel(), now: now, said: remote}
	h.key, _ = h.newKey(t, keys.Ingestion)
	h.setTime(anyMoment.Draw(rt, "start"))
	for _, key := range []string{"tokens", "minutes"} {
		credit := h.newCredit(t, key)
		for _, identity := range identities[:2] { // the third has no wallet yet
			first := modelDeposit{credit: credit.ID, key: freshID(), amount: 1000}
			h.tenant.deposit(t, depositOf(identity, key, first.amount, first.key))
			w := h.model.wallet(identity)
			w.deposits = append(w.deposits, first)
		}
	}
	for i := range 5 {
		f := featureOf("feature "+strconv.Itoa(i), []string{"tokens", "minutes"}[i%2])
		f.Cost, f.QuantityPerUnit = metering.Amount(i*20), int64(1+i%3)
		f.Deduplication = anyDeduplication.Draw(rt, "deduplication")
		if i >= 3 {
			f.PricingMode = metering.Callback
		}
		made := h.newFeature(t, f)
		h.model.features[f.Key] = &made
	}
	return h
}

func (h *history) setTime(ms int64) {
	h.now.Store(ms)
	h.model.now = ms
}

func (h *history) passTime(rt *rapid.T) { h.setTime(anyMoment.Draw(rt, "now")) }

func (h *history) anyFeature(rt *rapid.T) *metering.Feature {
	return h.model.features[rapid.SampledFrom(slices.Sorted(maps.Keys(h.model.features))).Draw(rt, "feature")]
}

func (h *history) drawUse(rt *rapid.T, identity string) store.Usage {
	f := h.anyFeature(rt)
	use := h.useOf(f.Key, identity, "")
	use.EntityID = rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(rt, "entity")
	use.Quantity = someQuantity.Draw(rt, "quantity")
	if rapid.IntRange(0, 3).Draw(rt, "dated") == 0 {
		at := anyMoment.Draw(rt, "occurredAt")
		use.OccurredAt = &at
	}
	if rapid.IntRange(0, 3).Draw(rt, "labelled") == 0 {
		use = labelled(use, rapid.SampledFrom([]string{"large", "small"}).Draw(rt, "model"))
	}
	if rightly := rapid.IntRange(0, 9).Draw(rt, "rightly") > 0; rightly == (f.PricingMode == metering.Callback) {
		use.Amount = amountOf(someAmount.Draw(rt, "amount"))
	}
	return use
}

func (h *history) freshEvent() string {
	h.sent++
	return "event " + strconv.Itoa(h.sent)
}

func (h *history) use(rt *rapid.T) {
	use := h.drawUse(rt, anyIdentity.Draw(rt, "identity"))
	use.EventID = h.freshEvent()
	if h.sent > 1 && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
		use.EventID = "event " + strconv.Itoa(rapid.IntRange(1, h.sent-1).Draw(rt, "event"))
	}
	d, err := h.nodes[anyNode.Draw(rt, "node")].usage.Track(use)
	h.compare(rt, use, d, err, h.model.track(use.Identity, h.modelUse(use)))
}

// usesAtOnce sends a use for every wallet together. They have nothing in common,
// so whatever their order is, the answers are the same.
func (h *history) usesAtOnce(rt *rapid.T) {
	n := h.nodes[anyNode.Draw(rt, "node")]
	requests := make([]store.Usage, len(identities))
	outcomes := make([]outcome, len(identities))
	var done sync.WaitGroup
	for i, identity := range identities {
		requests[i] = h.drawUse(rt, identity)
		requests[i].EventID = h.freshEvent()
		done.Go(func() { outcomes[i] = trackOutcome(n, requests[i]) })
	}
	done.Wait()
	for i, o := range outcomes {
		h.compare(rt, requests[i], o.d, o.err, h.model.track(requests[i].Identity, h.modelUse(requests[i])))
	}
}

// drawEvent gives a use an event id: a new one, or sometimes one that was sent before.
func (h *history) drawEvent(rt *rapid.T) string {
	if h.sent > 0 && rapid.IntRange(0, 5).Draw(rt, "again") == 0 {
		return "event " + strconv.Itoa(rapid.IntRange(1, h.sent).Draw(rt, "event"))
	}
	return h.freshEvent()
}

// batch sends uses of all wallets together, with event ids that repeat. It means what
// the same uses mean one after the other.
func (h *history) batch(rt *rapid.T) {
	batch := make([]store.Usage, rapid.IntRange(1, 12).Draw(rt, "size"))
	for i := range batch {
		batch[i] = h.drawUse(rt, anyIdentity.Draw(rt, "identity"))
		batch[i].EventID = h.drawEvent(rt)
	}
	outcomes, err := h.nodes[anyNode.Draw(rt, "node")].usage.TrackBatch(batch)
	noError(h.t, err)
	for i, o := range outcomes {
		h.compare(rt, batch[i], o.Decision, o.Err, h.model.track(batch[i].Identity, h.modelUse(batch[i])))
	}
}

// group sends uses of one wallet that are recorded together or not at all.
func (h *history) group(rt *rapid.T) {
	identity := anyIdentity.Draw(rt, "identity")
	group := make([]store.Usage, rapid.IntRange(1, 4).Draw(rt, "size"))
	ids := make(map[string]bool)
	for i := range group {
		group[i] = h.drawUse(rt, identity)
		for group[i].EventID = h.drawEvent(rt); ids[group[i].EventID]; {
			group[i].EventID = h.freshEvent()
		}
		ids[group[i].EventID] = true
	}
	outcomes, refused, err := h.nodes[anyNode.Draw(rt, "node")].usage.TrackGroup(group)
	want, at := h.model.trackGroup(identity, group, h.modelUse)
	if at >= 0 {
		code := answer(want[at], nil)
		h.said[code]++
		if !fault.Is(err, fault.Code(code)) || refused != at {
			rt.Fatalf("the group of %s is refused at %d with %v, by the model at %d with %s", identity, refused, err, at, code)
		}
		return
	}
	noError(h.t, err)
	for i, o := range outcomes {
		h.compare(rt, group[i], o.Decision, o.Err, want[i])
	}
}

func (h *history) check(rt *rapid.T) {
	use := h.drawUse(rt, anyIdentity.Draw(rt, "identity"))
	use.TransactionID = ids.ID{}
	d, err := h.nodes[anyNode.Draw(rt, "node")].usage.Check(use)
	want := h.model.check(use.Identity, h.modelUse(use))
	h.compare(rt, use, d, err, want)
	if d.Before.Amount != want.Before.Amount {
		rt.Fatalf("a check sees a balance of %s, the model %s", d.Before.Amount, want.Before.Amount)
	}
}

func (h *history) modelUse(use store.Usage) metering.Usage {
	u := use.Usage
	u.Feature = h.model.features[use.FeatureKey]
	return u
}

func (h *history) compare(rt *rapid.T, use store.Usage, d metering.Decision, err error, want metering.Decision) {
	rt.Helper()
	if err != nil {
		rt.Fatalf("%q: %v", use.EventID, err)
	}
	remote := answer(want, nil)
	h.said[remote]++
	got := answer(d, nil)
	if got != remote || d.Event.Charge.Amount != want.Event.Charge.Amount || d.Event.Period != want.Event.Period ||
		d.Event.DeduplicatedFrom != want.Event.DeduplicatedFrom || d.Event.TransactionID != want.Event.TransactionID {
		rt.Fatalf("%q of %s: the node says %s %s %v, the model %s %s %v",
			use.EventID, use.Identity, got, d.Event.Charge.Amount, d.Event.Period, remote, want.Event.Charge.Amount, want.Event.Period)
	}
	if d.Verdict != metering.Duplicate && d.Allowance != want.Allowance {
		rt.Fatalf("%q of %s: the node has the allowance %+v, the model %+v", use.EventID, use.Identity, d.Allowance, want.Allowance)
	}
}

func (h *history) deposit(rt *rapid.T) {
	identity := anyIdentity.Draw(rt, "identity")
	w := h.model.wallet(identity)
	requested := depositOf(identity, rapid.SampledFrom([]string{"tokens", "minutes"}).Draw(rt, "credit"), someAmount.Draw(rt, "amount"), freshID())
	credit, err := h.Credit(h.t.Context(), requested.CreditKey)
	noError(h.t, err)
	if len(w.deposits) > 0 && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
		earlier := rapid.SampledFrom(w.deposits).Draw(rt, "deposit")
		requested.IdempotencyKey = &earlier.key
	}
	_, duplicate, err := h.on(h.nodes[anyNode.Draw(rt, "node")]).Deposit(h.t.Context(), requested)
	known := slices.ContainsFunc(w.deposits, func(d modelDeposit) bool { return d.key == *requested.IdempotencyKey })
	_, fits := h.model.balance(identity, credit.ID).Add(requested.Amount)
	switch {
	case known && (err != nil || !duplicate):
		rt.Fatalf("a deposit sent again: duplicate %t, %v", duplicate, err)
	case !known && fits && (err != nil || duplicate):
		rt.Fatalf("a deposit of %s: duplicate %t, %v", requested.Amount, duplicate, err)
	case !known && !fits && !fault.Is(err, fault.BalanceOverflow):
		rt.Fatalf("a deposit of %s to %s: %v", requested.Amount, h.model.balance(identity, credit.ID), err)
	case !known && fits:
		w.deposits = append(w.deposits, modelDeposit{credit.ID, *requested.IdempotencyKey, requested.Amount})
	}
}

func (h *history) changePrice(rt *rapid.T) {
	f := h.anyFeature(rt)
	cost, per := metering.Amount(rapid.Uint64Range(0, 60).Draw(rt, "cost")), rapid.Int64Range(1, 4).Draw(rt, "per")
	if rapid.IntRange(0, 9).Draw(rt, "expensive") == 0 {
		cost = metering.MaxAmount / 3
	}
	changed, err := h.on(h.nodes[anyNode.Draw(rt, "node")]).UpdateFeature(h.t.Context(), f.Key, metering.FeaturePatch{Cost: &cost, QuantityPerUnit: &per}, h.model.now)
	if fault.Is(err, fault.PricingLocked) && h.model.named(f.ID) {
		return
	}
	noError(h.t, err)
	h.model.features[f.Key] = &changed
}

func (h *history) changeSubscription(rt *rapid.T) {
	identity := anyIdentity.Draw(rt, "identity")
	s := metering.Subscription{ID: ids.New(), Status: anyStatus.Draw(rt, "status"), Period: metering.MonthOf(anyMoment.Draw(rt, "period"))}
	if w := h.model.wallets[identity]; w != nil && w.subscription != nil {
		s.ID = w.subscription.ID
	}
	for _, key := range slices.Sorted(maps.Keys(h.model.features)) {
		f := h.model.features[key]
		if rapid.IntRange(0, 2).Draw(rt, "limited") == 0 {
			s.Terms.Limits = append(s.Terms.Limits, metering.Limit{
				FeatureID: f.ID, FeatureKey: key, Limit: rapid.Int64Range(0, 12).Draw(rt, "limit"),
				Period:  rapid.SampledFrom([]metering.LimitPeriod{metering.LimitMonth, metering.LimitBilling}).Draw(rt, "limitPeriod"),
				Overage: rapid.SampledFrom([]metering.Overage{metering.OverageBlock, metering.OverageCredits}).Draw(rt, "overage"),
			})
		}
		if f.PricingMode == metering.Fixed && rapid.IntRange(0, 2).Draw(rt, "multiplied") == 0 {
			s.Terms.Multipliers = append(s.Terms.Multipliers, metering.Multiplier{
				FeatureID: f.ID, FeatureKey: key, BasisPoints: rapid.SampledFrom([]int64{0, 1, 3333, 10_000, 25_000}).Draw(rt, "points"),
			})
		}
	}
	err := h.on(h.nodes[anyNode.Draw(rt, "node")]).PutSubscription(h.t.Context(), identity, s)
	if h.hasWallet(identity) {
		noError(h.t, err)
		h.model.wallet(identity).subscription = &s
	} else if !fault.Is(err, fault.WalletNotFound) {
		rt.Fatalf("a subscription without a wallet: %v", err)
	}
}

// hasWallet reports whether anything has made one: a requested deposit that was
// refused has not.
func (h *history) hasWallet(identity string) bool {
	w := h.model.wallets[identity]
	return w != nil && (len(w.deposits) > 0 || h.model.charged(identity))
}

func (h *history) setBillingPeriod(rt *rapid.T) {
	identity := anyIdentity.Draw(rt, "identity")
	period := metering.BillingPeriod{
		Interval: rapid.SampledFrom([]metering.Interval{metering.Day, metering.Week, metering.Month}).Draw(rt, "interval"),
		Anchor:   anyMoment.Draw(rt, "anchor"),
	}
	_, err := h.on(h.nodes[anyNode.Draw(rt, "node")]).SetBillingPeriod(h.t.Context(), identity, period)
	switch {
	case !h.hasWallet(identity):
		if !fault.Is(err, fault.WalletNotFound) {
			rt.Fatalf("a billing period without a wallet: %v", err)
		}
	case h.model.charged(identity) && (h.model.wallet(identity).billing == nil || *h.model.wallet(identity).billing != period):
		if !fault.Is(err, fault.BillingPeriodLocked) {
			rt.Fatalf("another billing period after a charge: %v", err)
		}
	default:
		noError(h.t, err)
		h.model.wallet(identity).billing = &period
	}
}

// compareRows holds what is stored against what the model's history adds up to.
func (h *history) compareRows(rt *rapid.T, conn *pgx.Conn) {
	var want []string
	for _, identity := range slices.Concat(identities, h.erased) {
		w := h.model.wallets[identity]
		if w == nil {
			continue
		}
		for _, credit := range w.credits() {
			want = append(want, fmt.Sprintf("balance %s %s %s", identity, credit, h.model.balance(identity, credit)))
		}
		for key, used := range h.model.used(identity) {
			want = append(want, fmt.Sprintf("counter %s %s %d %d %d", identity, key.FeatureID, key.Period.Start, key.Period.End, used))
		}
		for key, transaction := range h.model.billed(identity) {
			want = append(want, fmt.Sprintf("billed %s %s %d %d %q %s", identity, key.FeatureID, key.Period.Start, key.Period.End, key.EntityID, transaction))
		}
	}
	for _, e := range h.model.events {
		if e.Properties != "" {
			want = append(want, fmt.Sprintf("properties %s %s", e.TransactionID, e.Properties.Values()["model"]))
		}
	}
	got := texts(h.t, conn, `
		SELECT format('properties %s %s', e.tx_id, x.properties ->> 'model')
		FROM event_properties x JOIN usage_events e ON e.app_id = x.app_id AND e.wallet_id = x.wallet_id AND e.seq = x.seq WHERE x.app_id = $1
		UNION ALL
		SELECT format('balance %s %s %s', w.identity, b.credit_id, b.amount_nanocredits)
		FROM balances b JOIN wallets w ON w.app_id = b.app_id AND w.id = b.wallet_id WHERE b.app_id = $1
		UNION ALL
		SELECT format('counter %s %s %s %s %s', w.identity, c.feature_id, c.period_start, c.period_end, c.used)
		FROM counters c JOIN wallets w ON w.app_id = c.app_id AND w.id = c.wallet_id WHERE c.app_id = $1
		UNION ALL
		SELECT format('billed %s %s %s %s "%s" %s', w.identity, p.feature_id, p.period_start, p.period_end, p.entity_id, p.tx_id)
		FROM billed_periods p JOIN wallets w ON w.app_id = p.app_id AND w.id = p.wallet_id WHERE p.app_id = $1`, h.application.ID)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		rt.Fatalf("stored are\n%v\nand by the model it should be\n%v", errors.Join(lines(got)...), errors.Join(lines(want)...))
	}
}

func lines(list []string) (all []error) {
	for _, line := range list {
		all = append(all, errors.New(line))
	}
	return all
}
