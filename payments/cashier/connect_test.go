package cashier_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/store/payments"
	"purser/store/people"
	"purser/tenancy"
)

// asStripe leads what is meant for Stripe to the sandbox.
type asStripe struct{ r *harness }

const stripeKey = "sk_test_madeupfortests"

func (s asStripe) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != "api.stripe.com" || req.Header.Get("Authorization") != "Bearer "+stripeKey {
		return nil, http.ErrNotSupported
	}
	to, err := url.Parse(s.r.sandbox.StripeURL() + req.URL.Path)
	if err != nil {
		return nil, err
	}
	to.RawQuery = req.URL.RawQuery
	led := req.Clone(req.Context())
	led.URL, led.Host = to, to.Host
	led.Header.Set("Authorization", "Bearer "+s.r.sandbox.Key(s.r.app.ID))
	return http.DefaultTransport.RoundTrip(led)
}

func TestAnAccountAtStripeIsConnected(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.credit("tokens")
	r.cashier = r.newCashier(func(o *cashier.Options) { o.StripeTransport = asStripe{r} })
	connected, err := r.cashier.Connect(t.Context(), r.scope, cashier.Account{APIKey: stripeKey})
	r.check(err)
	if connected.Mode != payments.StripeConnection || connected.Live || connected.KeyLastFour != "ests" || !connected.Webhooks || connected.AccountID == "" {
		t.Errorf("connected: %+v", connected)
	}
	kept, err := r.store.PaymentAccounts(r.scope).Connection(t.Context())
	r.check(err)
	if strings.Contains(string(kept.SealedKey), "madeup") || len(kept.Secrets) != 1 || strings.Contains(string(kept.Secrets[0].Sealed), "whsec") {
		t.Error("a secret is kept in the open")
	}

	t.Run("and everything goes through it", func(t *testing.T) {
		r.plan("basic", 1000, grants("tokens", 10*million))
		r.subscribe("basic", cardPays)
		r.wantOn("basic", metering.StatusActive)
		r.wantTokens(10*million, 0)
	})
	t.Run("its key can be replaced, and the connection stays", func(t *testing.T) {
		_, err := r.cashier.Connect(t.Context(), r.scope, cashier.Account{APIKey: stripeKey, WebhookSecret: "whsec_made_by_hand"})
		r.check(err)
		again, err := r.store.PaymentAccounts(r.scope).Connection(t.Context())
		r.check(err)
		if again.ID != kept.ID || len(again.Secrets) != 2 || again.Secrets[1].Until == 0 {
			t.Errorf("the connection is %+v", again)
		}
		r.changedOnPlan(t)
	})
}

func (r *harness) changedOnPlan(t *testing.T) {
	t.Helper()
	r.plan("pro", 2900, grants("tokens", 100*million))
	if got := r.changed("pro"); got.Terms.PlanKey != "pro" {
		t.Errorf("the answer is on %s", got.Terms.PlanKey)
	}
}

func TestKeysThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, key := range []string{"sk_live_1234", "rk_live_1234", "pk_test_1234", "", "hello"} {
		_, err := r.cashier.Connect(t.Context(), r.scope, cashier.Account{APIKey: key})
		wantFault(t, err, fault.InvalidRequest)
	}
	live := r.liveApp()
	_, err := r.cashier.Connect(t.Context(), live, cashier.Account{APIKey: stripeKey})
	wantFault(t, err, fault.InvalidRequest)
}

// liveApp is an application about real money, which has no account yet.
func (r *harness) liveApp() tenancy.Scope {
	r.Helper()
	org := must[tenancy.Organization](r)(tenancy.NewOrganization(ids.New(), "Live "+ids.New().String(), r.now()))
	app := must[tenancy.Application](r)(tenancy.NewApplication(ids.New(), org, "App", true, r.now()))
	return must[tenancy.Application](r)(r.store.Directory().ProvisionIn(r.Context(), people.OrgRef{Name: org.Name}, org, app)).Scope()
}

func TestALiveApplicationNeedsAnAccount(t *testing.T) {
	t.Parallel()
	r := start(t)
	live := r.liveApp()
	app := r.store.App(live)
	draft := billing.PlanDraft{Key: "basic", Name: "Basic", Active: true, Price: billing.Price{AmountCents: 1000, Currency: "usd", Interval: billing.Month}}
	_, err := app.CreatePlan(t.Context(), draft, func(c billing.Catalog) (billing.Plan, error) { return billing.NewPlan(ids.New(), draft, c, r.now()) })
	r.check(err)
	r.check(r.cashier.DrainAll(t.Context(), live.AppID))
	plan, err := app.Plan(t.Context(), "basic")
	r.check(err)
	if plan.Sync.Status != billing.SyncFailed || plan.Sync.Error == "" {
		t.Errorf("the plan is %+v", plan.Sync)
	}
	_, err = r.cashier.SubscriptionCheckout(t.Context(), live, r.checkoutRequest("basic"), newKey())
	wantFault(t, err, fault.PaymentsNotConfigured)
	_, err = r.cashier.Portal(t.Context(), live, "ada", "http://shop.test")
	wantFault(t, err, fault.PaymentsNotConfigured)

	t.Run("but a free plan needs no provider", func(t *testing.T) {
		draft := draft
		draft.Key, draft.AmountCents = "free", 0
		_, err := app.CreatePlan(t.Context(), draft, func(c billing.Catalog) (billing.Plan, error) { return billing.NewPlan(ids.New(), draft, c, r.now()) })
		r.check(err)
		got, err := r.cashier.Change(t.Context(), live, billing.ChangeRequest{Identity: "ada", PlanKey: "free"}, newKey())
		r.check(err)
		if got.Status != metering.StatusActive {
			t.Errorf("the subscription is %s", got.Status)
		}
	})
	t.Run("also to leave a free plan for a paid one, which is never synced", func(t *testing.T) {
		change := billing.ChangeRequest{Identity: "ada", PlanKey: "basic"}
		_, err := r.cashier.Change(t.Context(), live, change, newKey())
		wantFault(t, err, fault.PaymentsNotConfigured)
		preview, err := r.cashier.PreviewChange(t.Context(), live, change)
		r.check(err)
		if preview.RefusedBy != fault.PaymentsNotConfigured {
			t.Errorf("the preview is refused by %q", preview.RefusedBy)
		}
	})
}

func TestRunDoesWhatIsDue(t *testing.T) {
	t.Parallel()
	r, _ := startAlone(t) // a node runs the jobs of all applications
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.cashier.Run(ctx) }()
	r.draft("basic", 1000)
	r.cashier.Wake(r.scope)
	r.eventually("the plan is synced", func() bool { return r.readPlan("basic").Sync.Status == billing.SyncDone })
	// And a job that no notification came for.
	r.draft("pro", 2900)
	r.eventually("the other plan is synced too", func() bool { return r.readPlan("pro").Sync.Status == billing.SyncDone })
	stop()
	if err := <-ended; err == nil || ctx.Err() == nil {
		t.Errorf("it ended with %v", err)
	}
}
