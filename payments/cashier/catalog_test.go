package cashier_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store/queue"
	"purser/store/reports"
)

func (r *harness) readPlan(key string) billing.Plan {
	r.Helper()
	return must[billing.Plan](r)(r.store.App(r.scope).Plan(r.Context(), key))
}

func (r *harness) patchPlan(key string, patch billing.PlanPatch) billing.Plan {
	r.Helper()
	return must[billing.Plan](r)(r.store.App(r.scope).UpdatePlan(r.Context(), key, patch))
}

func TestScenario01_ANewPlanIsToldToTheProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	if made := r.draft("basic", 1000); made.Sync.Status != billing.SyncPending {
		t.Errorf("a new plan is %s", made.Sync.Status)
	}
	r.settle()
	plan := r.readPlan("basic")
	if plan.Sync.Status != billing.SyncDone || plan.Sync.ProductID != plan.ProductReference() || plan.Sync.PriceID == "" {
		t.Errorf("sync is %+v", plan.Sync)
	}
}

func TestScenario02_ANewAmountIsANewPrice(t *testing.T) {
	r := shop(t)
	before := r.readPlan("basic")
	r.subscribe("basic", cardPays)
	raised := int64(1200)
	if changed := r.patchPlan("basic", billing.PlanPatch{AmountCents: &raised}); changed.Sync.Status != billing.SyncPending {
		t.Errorf("a changed plan is %s", changed.Sync.Status)
	}
	r.settle()
	after := r.readPlan("basic")
	if after.Sync.Status != billing.SyncDone || after.Sync.PriceID == before.Sync.PriceID || after.Sync.ProductID != before.Sync.ProductID {
		t.Errorf("sync went from %+v to %+v", before.Sync, after.Sync)
	}
	archived := func() int { return len(r.callsTo("POST /v1/prices/" + before.Sync.PriceID)) }
	r.advance(24 * time.Hour)
	if archived() != 0 {
		t.Error("the old price was archived while a page could still sell it")
	}
	r.advance(2 * time.Hour)
	if archived() != 1 {
		t.Errorf("the old price was archived %d times", archived())
	}
	r.advance(month)
	if s := r.wantOn("basic", metering.StatusActive); s.Terms.AmountCents != 1000 || s.Terms.PriceID != before.Sync.PriceID {
		t.Errorf("the subscriber pays %d for %s", s.Terms.AmountCents, s.Terms.PriceID)
	}
	r.wantTokens(20*million, 0)
}

func TestScenario03_ACrashBetweenProductAndPriceMakesNothingTwice(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.plan("other", 500)
	before := len(r.callsTo("POST /v1/products"))
	r.draft("basic", 1000)
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/prices"})
	r.settle()
	if plan := r.readPlan("basic"); plan.Sync.Status != billing.SyncFailed {
		t.Fatalf("the plan is %s", plan.Sync.Status)
	}
	r.advance(time.Minute)
	if plan := r.readPlan("basic"); plan.Sync.Status != billing.SyncDone {
		t.Errorf("the plan is %s: %s", plan.Sync.Status, plan.Sync.Error)
	}
	if made := len(r.callsTo("POST /v1/products")) - before; made != 1 {
		t.Errorf("%d products were made", made)
	}
	if made := len(r.callsTo("POST /v1/prices")); made != 3 {
		t.Errorf("a price was asked for %d times, with the other plan's", made)
	}
}

func TestScenario04_AProviderThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.plan("other", 500)
	r.draft("basic", 1000)
	r.inject(sandbox.Fault{Kind: sandbox.Fail, Times: 1, Only: "POST /v1/products"})
	r.settle()
	plan := r.readPlan("basic")
	if plan.Sync.Status != billing.SyncFailed || !strings.Contains(plan.Sync.Error, "unknown error") {
		t.Errorf("sync is %+v", plan.Sync)
	}
	t.Run("when a person retries it", func(t *testing.T) {
		r.check(r.cashier.RetrySync(t.Context(), r.scope, "basic"))
		r.settle()
		if plan := r.readPlan("basic"); plan.Sync.Status != billing.SyncDone || plan.Sync.Error != "" {
			t.Errorf("sync is %+v", plan.Sync)
		}
	})
}

func TestScenario05_AmountsGoAsTheyAre(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.plan("yen", 500, in("jpy"))
	r.plan("nothing", 0)
	if sent := r.callsTo("POST /v1/prices")[0].Get("unit_amount"); sent != "500" {
		t.Errorf("500 yen were sent as %s", sent)
	}
	for _, wrong := range []struct {
		cents    int64
		currency string
	}{{30, "usd"}, {1001, "kwd"}} {
		draft := billing.PlanDraft{Key: "wrong", Name: "Wrong", Price: billing.Price{AmountCents: wrong.cents, Currency: wrong.currency, Interval: billing.Month}}
		_, err := billing.NewPlan(r.app.ID, draft, billing.Catalog{}, 0)
		if !fault.Is(err, fault.AmountTooSmall) && !fault.Is(err, fault.AmountNotChargeable) {
			t.Errorf("%d %s: %v", wrong.cents, wrong.currency, err)
		}
	}
}

func TestScenario06_TwoWorkersMakeOnePrice(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.draft("basic", 1000)
	other := r.newCashier()
	var both sync.WaitGroup
	for _, node := range []*cashier.Cashier{r.cashier, other} {
		both.Go(func() {
			if err := node.DrainAll(t.Context(), r.app.ID); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if plan := r.readPlan("basic"); plan.Sync.Status != billing.SyncDone {
		t.Errorf("the plan is %s", plan.Sync.Status)
	}
	if products, prices := len(r.callsTo("POST /v1/products")), len(r.callsTo("POST /v1/prices")); products != 1 || prices != 1 {
		t.Errorf("%d products and %d prices were made", products, prices)
	}
}

func TestAPlanIsPutRightAtTheProvider(t *testing.T) {
	r := shop(t)
	name := "Renamed"
	off := false
	r.patchPlan("basic", billing.PlanPatch{Name: &name, Active: &off})
	r.settle()
	updates := r.callsTo("POST /v1/products/" + r.readPlan("basic").ProductReference())
	if len(updates) != 1 || updates[0].Get("name") != name || updates[0].Get("active") != "true" {
		t.Errorf("the provider was told %v", updates)
	}
	_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), newKey())
	wantFault(t, err, fault.PlanInactive)
}

func TestASubscriberOfARetiredPlanCanDowngrade(t *testing.T) {
	t.Parallel()
	// retired is ada on a plan that is no longer sold.
	retired := func(t *testing.T) (r *harness, product string) {
		r = shop(t)
		r.subscribe("pro", cardPays)
		off := false
		r.patchPlan("pro", billing.PlanPatch{Active: &off})
		r.settle()
		return r, "/v1/products/" + r.readPlan("pro").ProductReference()
	}
	wantDowngrade := func(r *harness) {
		r.Helper()
		r.changed("basic")
		r.advance(32 * 24 * time.Hour)
		r.wantOn("basic", metering.StatusActive)
		r.wantCollected(2900 + 1000)
	}
	deactivated := url.Values{"active": {"false"}}
	t.Run("and renews on the cheaper plan", func(t *testing.T) {
		r, _ := retired(t)
		wantDowngrade(r)
	})
	t.Run("when an earlier release has deactivated the product", func(t *testing.T) {
		r, product := retired(t)
		r.provider(product, deactivated)
		wantDowngrade(r)
	})
	t.Run("and the daily sync activates its product", func(t *testing.T) {
		r, product := retired(t)
		r.provider(product, deactivated)
		r.advance(25 * time.Hour)
		if got := r.askProvider(http.MethodGet, product, nil); got["active"] != true {
			t.Errorf("the product is %v", got)
		}
	})
}

func TestAPlanIsSoldAtItsOwnAmount(t *testing.T) {
	// priceAt makes a price at the provider that has the lookup key.
	priceAt := func(r *harness, key string, cents, months int64) {
		r.Helper()
		r.provider("/v1/prices", url.Values{
			"product": {r.readPlan("basic").ProductReference()}, "currency": {"usd"}, "unit_amount": {strconv.FormatInt(cents, 10)},
			"recurring[interval]": {"month"}, "recurring[interval_count]": {strconv.FormatInt(months, 10)},
			"lookup_key": {key}, "transfer_lookup_key": {"true"},
		})
	}
	wantPrice := func(r *harness, cents int64) (id string) {
		r.Helper()
		plan := r.readPlan("basic")
		if plan.Sync.Status != billing.SyncDone {
			r.Fatalf("the plan is %s: %s", plan.Sync.Status, plan.Sync.Error)
		}
		price := r.askProvider(http.MethodGet, "/v1/prices/"+plan.Sync.PriceID, nil)
		if count := price["recurring"].(map[string]any)["interval_count"]; price["unit_amount"] != float64(cents) || count != 1.0 {
			r.Errorf("the plan is sold at %v cents every %v months, want %d every month", price["unit_amount"], count, cents)
		}
		return plan.Sync.PriceID
	}
	raised := int64(3000)
	t.Run("when a restored database uses a lookup key again", func(t *testing.T) {
		for claim, c := range map[string]struct{ cents, months int64 }{"for another amount": {2000, 1}, "for another interval": {raised, 3}} {
			t.Run(claim, func(t *testing.T) {
				r := shop(t)
				plan := r.readPlan("basic")
				plan.Sync.PriceNumber++
				priceAt(r, plan.PriceReference(), c.cents, c.months)
				r.patchPlan("basic", billing.PlanPatch{AmountCents: &raised})
				r.settle()
				wantPrice(r, raised)
				r.subscribe("basic", cardPays)
				r.wantCollected(raised)
			})
		}
	})
	t.Run("when its lookup key was moved at the provider", func(t *testing.T) {
		r := shop(t)
		before := r.readPlan("basic")
		priceAt(r, before.PriceReference(), 500, 1)
		name := "Renamed"
		r.patchPlan("basic", billing.PlanPatch{Name: &name})
		r.settle()
		if id := wantPrice(r, 1000); id != before.Sync.PriceID {
			t.Errorf("the plan's price was %s and is %s", before.Sync.PriceID, id)
		}
	})
}

// deletedPrice answers as Stripe does after a price was deleted.
type deletedPrice struct {
	id       string
	archived atomic.Int32 // calls to archive it
}

func (d *deletedPrice) RoundTrip(req *http.Request) (*http.Response, error) {
	missing := deletedObjects{http.StatusNotFound, `{"error": {"type": "invalid_request_error", "code": "resource_missing", "param": "price", "message": "No such price"}}`}
	if strings.HasSuffix(req.URL.Path, "/v1/prices/"+d.id) {
		if req.Method == http.MethodPost {
			d.archived.Add(1)
		}
		return missing.answer(req), nil
	}
	response, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/v1/prices") {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if strings.Contains(string(body), d.id) {
		body = []byte(`{"object": "list", "data": [], "has_more": false, "url": "/v1/prices"}`)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

func TestAPlanWhosePriceWasDeletedIsSyncedAgain(t *testing.T) {
	r := shop(t)
	before := r.subscribe("basic", cardPays)
	deleted := &deletedPrice{id: r.readPlan("basic").Sync.PriceID}
	r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = deleted })
	name := "Renamed"
	r.patchPlan("basic", billing.PlanPatch{Name: &name})
	r.settle()
	r.wantNothingFailing()
	plan := r.readPlan("basic")
	if plan.Sync.Status != billing.SyncDone || plan.Sync.PriceID == "" || plan.Sync.PriceID == deleted.id {
		t.Fatalf("the plan is %+v", plan.Sync)
	}
	if first := r.callsTo("POST /v1/prices"); len(first) == 0 || first[len(first)-1].Get("unit_amount") != "1000" {
		t.Errorf("the prices are made by %v", first)
	}
	// Its subscribers keep what they bought, and the deleted price is archived like others.
	r.advanceTo(before.Period.End + (2 * time.Hour).Milliseconds())
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(20*million, 0)
	if calls := deleted.archived.Load(); calls != 1 {
		t.Errorf("the deleted price was archived %d times", calls)
	}
	r.wantNothingFailing()
	r.wantAlerts()
	if again := r.readPlan("basic"); again.Sync.PriceID != plan.Sync.PriceID {
		t.Errorf("the daily sync has replaced the price %s by %s", plan.Sync.PriceID, again.Sync.PriceID)
	}
}

func TestWhatTheProviderRefusesIsNotTriedAgainByItself(t *testing.T) {
	r := shop(t)
	r.draft("north", 1000, in("kpw")) // a currency that the provider does not charge in
	r.settle()
	wantTries := func(tries int) {
		t.Helper()
		failing := must[[]queue.Job](r)(r.store.Queue(r.scope).FailingJobs(t.Context(), 10))
		if len(failing) != 1 || failing[0].Kind != queue.JobPlan || failing[0].Tries != tries || !failing[0].Stopped() || failing[0].FailingSince == 0 {
			t.Errorf("the jobs that fail are %+v, want one that was stopped after %d tries", failing, tries)
		}
	}
	wantTries(1)
	if plan := r.readPlan("north"); plan.Sync.Status != billing.SyncFailed || plan.Sync.Error == "" {
		t.Errorf("the plan is %s: %q", plan.Sync.Status, plan.Sync.Error)
	}
	r.advance(3 * 24 * time.Hour)
	wantTries(1)
	queues := must[[]queue.JobQueue](r)(r.store.Queues().JobQueues(t.Context()))
	if at := slices.IndexFunc(queues, func(q queue.JobQueue) bool { return q.Kind == "billing" }); at < 0 || queues[at].Failing < 1 || queues[at].FailingSince == 0 {
		t.Errorf("metrics have the queues %+v", queues)
	}
	if n := must[reports.Attention](r)(r.store.Reports(r.scope).Attention(t.Context(), r.now())); n.Jobs != 1 {
		t.Errorf("%d jobs need attention", n.Jobs)
	}

	id := r.readPlan("north").ID.String()
	r.check(r.store.Queue(r.scope).RetryJobNow(t.Context(), queue.JobPlan, id, r.now()))
	r.settle()
	wantTries(2)
	dollars := "usd"
	r.patchPlan("north", billing.PlanPatch{Currency: &dollars})
	r.settle()
	r.wantNothingFailing()
}
