package cashier_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/jobs"
	"purser/keys"
	"purser/metering"
	"purser/notify"
	"purser/notify/delivery"
	"purser/payments/sandbox"
	"purser/store"
	"purser/store/notifications"
	"purser/store/reports"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/vault"
)

// notifications are the notifications of the application so far, in order.
func (r *harness) notifications() []notify.Notification {
	r.Helper()
	app := r.store.Notifications(r.scope)
	must[int](r)(app.Number(r.Context(), r.now()))
	return must[notifications.Page](r)(app.Feed(r.Context(), notifications.Query{After: -1, Limit: notifications.MaxPage})).Notifications
}

func (r *harness) alertRule(rule metering.AlertRule) {
	r.Helper()
	rule.ID, rule.CreatedAt, rule.RearmPercent = ids.New(), r.now(), metering.DefaultRearmPercent
	must[metering.AlertRule](r)(r.store.App(r.scope).PutAlertRule(r.Context(), must[metering.AlertRule](r)(metering.NewAlertRule(rule))))
}

// producers make notifications of every type, each by what a caller, a customer, the
// provider or the clock does.
var producers = []struct {
	name  string
	types []notify.Type
	story func(*testing.T) *harness
}{
	{"credits that a caller gives and takes", []notify.Type{notify.DepositCreated, notify.AdjustmentCreated, notify.ChargeReversed}, func(t *testing.T) *harness {
		r := shop(t)
		r.deposit(10)
		r.feature("letters")
		r.check(r.use("letters", 3))
		wallet := must[metering.Wallet](r)(r.store.App(r.scope).Wallet(t.Context(), "ada"))
		r.check(r.store.App(r.scope).Adjust(t.Context(), store.Adjustment{
			ID: ids.New(), WalletID: wallet.ID, CreditKey: "tokens", Delta: metering.Delta{Amount: 1}, Reason: "Goodwill", By: ids.New(), Now: r.now(),
		}))
		events, _, err := r.store.Reports(r.scope).EventsOfWallet(t.Context(), reports.HistoryQuery{Identity: "ada", Limit: 1}, "letters")
		r.check(err)
		_, _, err = r.store.App(r.scope).Reverse(t.Context(), store.Reversal{ID: ids.New(), EventID: events[0].EventID, Reason: "It failed", IdempotencyKey: "once", CreatedAt: r.now()})
		r.check(err)
		return r
	}},
	{"a top-up that is spent, refunded and repaid", []notify.Type{notify.TopUpPaid, notify.RefundApplied, notify.DebtIncurred, notify.DebtCleared}, func(t *testing.T) *harness {
		r, page := paidTopUp(t, cardPays)
		r.spend(25 * million)
		r.refund(page, 3000)
		r.deposit(30 * million)
		return r
	}},
	{"a dispute that is won", []notify.Type{notify.DisputeOpened, notify.DisputeClosed}, func(t *testing.T) *harness {
		r, page := paidTopUp(t, cardPays)
		r.dispute(page, "open")
		r.dispute(page, "won")
		return r
	}},
	{"a dispute that is lost", []notify.Type{notify.DisputeOpened, notify.DisputeClosed}, func(t *testing.T) *harness {
		r, page := paidTopUp(t, cardPays)
		r.dispute(page, "open")
		r.dispute(page, "lost")
		r.advance(24 * time.Hour) // and is told once
		return r
	}},
	{"top-ups that are not paid", []notify.Type{notify.TopUpFailed, notify.TopUpExpired}, func(t *testing.T) *harness {
		r := shop(t)
		r.pay(r.topUp(3000).URL, bankFails)
		r.topUp(1000)
		r.advance(4 * 24 * time.Hour)
		return r
	}},
	{"a subscription from its start to its end", []notify.Type{
		notify.GrantCreated, notify.SubscriptionStarted, notify.SubscriptionRenewed, notify.SubscriptionUpdated, notify.SubscriptionPaymentFailed, notify.SubscriptionEnded,
	}, func(t *testing.T) *harness {
		r := shop(t)
		r.subscribe("pro", cardPays)
		r.advance(month)
		r.changed("basic") // with the next period
		r.swapCard(cardFailsLater)
		r.advance(month)
		r.advance(2 * month)
		return r
	}},
	{"plans that the provider accepts and rejects", []notify.Type{notify.PlanSynced, notify.PlanSyncFailed}, func(t *testing.T) *harness {
		r := shop(t)
		r.draft("late", 1000)
		r.inject(sandbox.Fault{Kind: sandbox.Fail, Times: 1, Only: "POST /v1/products"})
		r.settle()
		return r
	}},
	{"keys that expire and are revoked", []notify.Type{notify.KeyExpiring, notify.KeyRevoked}, func(t *testing.T) *harness {
		r := shop(t)
		now := r.clock().UnixMilli()
		key, _, err := keys.New(keys.Spec{ID: ids.New(), App: r.app, Name: "Server", Preset: keys.Ingestion, ExpiresAt: now + (30 * 24 * time.Hour).Milliseconds()},
			tenancy.AllPermissions(), now, rand.Reader)
		r.check(err)
		r.check(r.store.App(r.scope).CreateKey(t.Context(), key))
		for _, left := range []time.Duration{keys.ExpiryNotice + time.Second, keys.ExpiryNotice, time.Hour} { // announced once
			must[int](r)(r.store.App(r.scope).AnnounceExpiringKeys(t.Context(), key.ExpiresAt-left.Milliseconds()))
		}
		must[keys.APIKey](r)(r.store.App(r.scope).RevokeKey(t.Context(), key.ID, now))
		return r
	}},
	{"a balance and an allowance that are used up", []notify.Type{notify.BalanceLow, notify.BalanceExhausted, notify.BalanceRecovered, notify.AllowanceThreshold}, func(t *testing.T) *harness {
		r := shop(t)
		r.feature("letters")
		r.feature("reports")
		r.alertRule(metering.AlertRule{Key: "low", Kind: metering.AlertBalance, CreditKey: "tokens", Thresholds: []metering.Amount{100}})
		r.alertRule(metering.AlertRule{Key: "used", Kind: metering.AlertAllowance, FeatureKey: "reports", Percents: []int64{50}})
		r.plan("few", 1000, limits("reports", 2))
		r.subscribe("few", cardPays)
		r.deposit(200)
		r.check(r.use("reports", 1))
		r.check(r.use("letters", 150))
		wantFault(t, r.use("letters", 500), fault.InsufficientBalance)
		r.deposit(1000)
		return r
	}},
	{"an endpoint that is gone", []notify.Type{notify.WebhookPaused}, func(t *testing.T) *harness {
		r := shop(t)
		gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
		t.Cleanup(gone.Close)
		queue := jobs.New(jobs.Options{Store: r.store, Now: r.clock})
		sealed := must[*vault.Vault](r)(vault.New(rand.Reader, []byte("a secret for the webhooks of the tests of this package")))
		dispatcher := delivery.New(delivery.Options{Store: r.store, Vault: sealed, Jobs: queue, Now: r.clock, Timeout: 5 * time.Minute, Opened: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		_, _, err := dispatcher.Create(t.Context(), r.scope, audit.Actor{}, delivery.Draft{URL: gone.URL, Now: r.now()})
		r.check(err)
		r.deposit(1)
		r.check(queue.DrainLane(t.Context(), r.scope.AppID, delivery.Lane))
		return r
	}},
}

// Every type of notification has a producer, from one end to the other.
func TestEveryTypeOfNotificationIsMade(t *testing.T) {
	t.Parallel()
	var made []notify.Type
	for _, p := range producers {
		made = append(made, p.types...)
		t.Run(p.name, func(t *testing.T) {
			r := p.story(t)
			count := map[notify.Type]int{}
			for _, n := range r.notifications() {
				count[n.Type]++
			}
			for _, want := range p.types {
				if count[want] == 0 {
					t.Errorf("no %s was made, only %v", want, count)
				}
			}
			if n := count[notify.DisputeClosed] + count[notify.KeyExpiring] + count[notify.WebhookPaused]; n > 1 {
				t.Errorf("it was told %d times: %v", n, count)
			}
		})
	}
	for _, kind := range notify.Types() {
		if !slices.Contains(made, kind) {
			t.Errorf("no story makes %s", kind)
		}
	}
}
