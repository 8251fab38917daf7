package cashier_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store/verify"
)

const days = 24 * time.Hour

// byBank is ada on basic, whose bank debit has gone through.
func byBank(t *testing.T) (*harness, billing.Subscription) {
	t.Helper()
	r := shop(t)
	r.subscribe("basic", bankSucceeds)
	r.advance(4 * days)
	return r, r.wantOn("basic", metering.StatusActive)
}

// wantPending is the change that waits, with or without a page to pay at.
func (r *harness) wantPending(plan string, page bool) *billing.PendingChange {
	r.Helper()
	pending := r.wantOn("basic", metering.StatusActive).Pending
	if pending == nil || pending.Target.PlanKey != plan || (pending.PaymentURL != "") != page || pending.ExpiresAt <= r.now() {
		r.Fatalf("what waits is %+v", pending)
	}
	return pending
}

func TestACustomerWhoPaysByBankDebitUpgradesOnAPage(t *testing.T) {
	r, _ := byBank(t)
	if got := r.changed("pro"); got.Terms.PlanKey != "basic" || got.Pending == nil {
		t.Fatalf("the answer is on %s, and %+v waits", got.Terms.PlanKey, got.Pending)
	}
	r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
	r.settle()
	r.wantPending("pro", false)
	r.advance(2 * days) // longer than a page is open
	r.wantPending("pro", false)
	r.wantTokens(10*million, 0)
	_, err := r.change("pro")
	wantFault(t, err, fault.OperationInProgress)
	r.advance(2 * days)
	if got := r.wantOn("pro", metering.StatusActive); got.Pending != nil {
		t.Errorf("%+v still waits", got.Pending)
	}
	r.wantTokens(110*million, 0)
	r.wantCollected(1000 + 2900)
	if live := r.askProvider(http.MethodGet, "/v1/subscriptions?status=active", nil)["data"].([]any); len(live) != 1 {
		t.Errorf("%d subscriptions go on", len(live))
	}
	r.advance(40 * days)
	r.wantCollected(1000 + 2900 + 2900)
	r.wantAlerts()
}

func TestADebitThatFailsLeavesThePlanOfBefore(t *testing.T) {
	r, _ := byBank(t)
	r.changed("pro")
	r.pay(r.wantPending("pro", true).PaymentURL, bankFails)
	r.advance(4 * days)
	if got := r.wantOn("basic", metering.StatusActive); got.Pending != nil {
		t.Errorf("%+v still waits", got.Pending)
	}
	r.wantCollected(1000)
	r.wantTokens(10*million, 0)
	if got := r.changed("pro"); got.Pending == nil {
		t.Error("it cannot be asked for again")
	}
}

func TestCancellingWhileAnUpgradeIsDebitedStopsTheRenewal(t *testing.T) {
	cancelled := func(t *testing.T, bank string) (*harness, billing.Subscription) {
		t.Helper()
		r, s := byBank(t)
		r.changed("pro")
		r.pay(r.wantPending("pro", true).PaymentURL, bank)
		r.settle()
		got := must[billing.Subscription](r)(r.cancel(true))
		if !got.CancelAtPeriodEnd || got.Terms.PlanKey != "basic" || got.Period != s.Period || got.Pending == nil || got.Pending.PaymentURL != "" {
			t.Fatalf("the answer is on %s for %v, cancelled %v, and %+v waits", got.Terms.PlanKey, got.Period, got.CancelAtPeriodEnd, got.Pending)
		}
		return r, s
	}
	t.Run("a debit that fails leaves the cancellation", func(t *testing.T) {
		r, s := cancelled(t, bankFails)
		r.advance(4 * days)
		if got := r.wantOn("basic", metering.StatusActive); !got.CancelAtPeriodEnd || got.Pending != nil {
			t.Errorf("cancelled %v, and %+v waits", got.CancelAtPeriodEnd, got.Pending)
		}
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
		r.wantNone()
		r.wantCollected(1000)
	})
	t.Run("a debit that succeeds starts the plan that it paid", func(t *testing.T) {
		r, _ := cancelled(t, bankSucceeds)
		r.advance(4 * days)
		if got := r.wantOn("pro", metering.StatusActive); got.CancelAtPeriodEnd {
			t.Error("what was paid after the cancellation is cancelled")
		}
		r.wantCollected(1000 + 2900)
		must[billing.Subscription](r)(r.cancel(true))
		r.advance(60 * days)
		r.wantNone()
		r.wantCollected(1000 + 2900)
	})
	t.Run("a free subscription is cancelled too", func(t *testing.T) {
		r := shop(t)
		r.plan("free", 0, grants("tokens", 3))
		r.changed("free")
		r.pay(r.changed("pro").Pending.PaymentURL, bankFails)
		r.settle()
		got := must[billing.Subscription](r)(r.cancel(true))
		if !got.CancelAtPeriodEnd || got.Pending == nil {
			t.Errorf("cancelled %v, and %+v waits", got.CancelAtPeriodEnd, got.Pending)
		}
		r.advance(40 * days)
		r.wantNone()
		r.wantCollected(0)
	})
}

func TestAPageWhoseDebitTimeIsLongOverIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	const expires, grace = 1_000_000, int64(24 * time.Hour / time.Millisecond)
	page := billing.Change{Kind: billing.Checkout, SessionID: "cs_1", ExpiresAt: expires}
	if got := cashier.OpenSessions([]billing.Change{page}, expires+grace-1); !slices.Equal(got, billing.SessionIDs{"cs_1"}) {
		t.Errorf("within a day of its expiry: %q", got)
	}
	if got := cashier.OpenSessions([]billing.Change{page}, expires+grace); len(got) != 0 {
		t.Errorf("a day after its expiry: %q", got)
	}
}

// The renewal is being debited when the upgrade is paid by card, so the provider does
// not void it; the debit fails three days later.
func TestARenewalWhoseDebitFailsAfterAnUpgradeIsVoided(t *testing.T) {
	r, _ := renewing(t, "basic", cardAsksAlways)
	page := r.changed("pro").Pending.PaymentURL
	r.advance(2 * time.Hour)
	r.wantOn("basic", metering.StatusPastDue)
	r.pay(r.openRenewal()["hosted_invoice_url"].(string), bankFails)
	r.pay(page, cardAsksAlways) // which no later try is paid with
	r.settle()
	r.wantOn("pro", metering.StatusPastDue)
	r.openRenewal() // which is not voided while the debit is under way
	r.advance(4 * days)
	r.wantOn("pro", metering.StatusActive)
	r.advance(8 * days)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
}

// A debit may end while the op that could not void its renewal still runs, so that no
// second op is started.
func TestARenewalThatIsBeingDebitedIsReadAgainWithoutAReport(t *testing.T) {
	r, _ := renewing(t, "basic", cardAsksAlways)
	page := r.changed("pro").Pending.PaymentURL
	r.advance(2 * time.Hour)
	renewal := r.openRenewal()
	r.pay(renewal["hosted_invoice_url"].(string), bankFails)
	r.pay(page, cardAsksAlways)
	r.settle()
	r.dropWebhooks.Store(true)
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "GET /v1/events", Times: 1 << 30})
	void := "POST /v1/invoices/" + renewal["id"].(string) + "/void"
	tried := len(r.callsTo(void))
	r.advance(7 * time.Hour)
	if again := len(r.callsTo(void)); tried == 0 || again <= tried {
		t.Errorf("the void was tried %d times, and %d times seven hours later", tried, again)
	}
	r.advance(3 * days)
	if status := r.askProvider(http.MethodGet, "/v1/invoices/"+renewal["id"].(string), nil)["status"]; status != "void" {
		t.Errorf("the renewal is %v after its debit has failed", status)
	}
	r.wantCollected(1000 + 2900)
}

// openRenewal is the one invoice of a renewal that waits to be paid.
func (r *harness) openRenewal() (invoice map[string]any) {
	r.Helper()
	for _, listed := range r.askProvider(http.MethodGet, "/v1/invoices?status=open&limit=100", nil)["data"].([]any) {
		if one := listed.(map[string]any); one["billing_reason"] == "subscription_cycle" {
			invoice = one
		}
	}
	if invoice == nil {
		r.Fatal("no renewal is open")
	}
	return invoice
}

// The renewal is being debited when the page is paid by card.
func TestARenewalDebitedAfterItsSubscriptionWasReplacedIsRefunded(t *testing.T) {
	r, s := byBank(t)
	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	r.pay(r.changed("pro").Pending.PaymentURL, cardPays)
	r.settle()
	r.wantOn("pro", metering.StatusActive)
	r.advance(4 * days)
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
}

// A debit that is under way cannot be stopped, so it buys the last period.
func TestCancellingWhileARenewalIsDebitedEndsAfterThePeriodThatItPays(t *testing.T) {
	r, s := byBank(t)
	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	got := must[billing.Subscription](r)(r.cancel(true))
	if !got.CancelAtPeriodEnd || got.Period.Start != s.Period.End || got.Period.End <= r.now() {
		t.Errorf("the answer has the flag %v and the period %v after %v", got.CancelAtPeriodEnd, got.Period, s.Period)
	}
	r.advance(4 * days)
	if paid := r.wantOn("basic", metering.StatusActive); paid.Period != got.Period || !paid.CancelAtPeriodEnd {
		t.Errorf("paid is %v", paid.Period)
	}
	r.advanceTo(got.Period.End + (2 * time.Hour).Milliseconds())
	r.wantNone()
	r.wantCollected(1000 + 1000)
}

// Two debits are under way around the end of a period: the renewal's, and that of an
// upgrade which the customer has paid for on a page. Which of them the bank carries out
// first makes no difference.
func TestOfTwoDebitsAroundAPeriodsEndTheUpgradeIsKept(t *testing.T) {
	t.Run("when the renewal is collected first", func(t *testing.T) {
		r, s := byBank(t)
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
		r.changed("pro")
		r.advance(5 * time.Hour)
		r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
		r.settle()
		r.advanceTo(s.Period.End + (3*days + 3*time.Hour).Milliseconds())
		r.wantOn("basic", metering.StatusActive) // paid, and the upgrade still waits
		r.wantCollected(1000 + 1000)
		r.wantTokens(20*million, 0)
		r.advance(2 * days)
		r.wantUpgradeOnly()
	})
	t.Run("when the upgrade is collected first", func(t *testing.T) {
		r, s := byBank(t)
		r.changed("pro")
		r.advanceTo(s.Period.End - (10 * time.Hour).Milliseconds())
		r.changed("pro")
		r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
		r.settle()
		r.advanceTo(s.Period.End + (5 * days).Milliseconds())
		r.wantUpgradeOnly()
	})
	t.Run("when the renewal is paid by card meanwhile", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", bankSucceeds)
		r.advanceTo(s.Period.End - (10 * time.Hour).Milliseconds())
		r.changed("pro")
		r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
		r.swapCard(cardPays)
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
		r.wantTokens(20*million, 0)
		r.advance(5 * days)
		r.wantUpgradeOnly()
	})
	t.Run("and the renewal when the upgrade fails", func(t *testing.T) {
		r, s := byBank(t)
		r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
		r.changed("pro")
		r.pay(r.wantPending("pro", true).PaymentURL, bankFails)
		r.advance(5 * days)
		r.wantOn("basic", metering.StatusActive)
		r.wantCollected(1000 + 1000)
		r.wantTokens(20*million, 0)
		r.wantAlerts()
	})
	t.Run("and both when the renewal was collected before the upgrade was paid for", func(t *testing.T) {
		r, s := byBank(t)
		r.advanceTo(s.Period.End + (4 * days).Milliseconds())
		r.changed("pro")
		r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
		r.advance(5 * days)
		r.wantOn("pro", metering.StatusActive)
		r.wantCollected(1000 + 1000 + 2900)
		r.wantTokens(120*million, 0)
		r.wantAlerts()
	})
}

// wantUpgradeOnly is ada on pro, who has paid for basic once.
func (r *harness) wantUpgradeOnly() {
	r.Helper()
	r.wantOn("pro", metering.StatusActive)
	r.wantCollected(1000 + 2900)
	r.wantTokens(110*million, 0)
	r.wantAlerts()
	if verified := must[verify.Verification](r)(r.store.Verification(r.scope).Verify(r.Context(), verify.Options{})); len(verified.Differences) > 0 {
		r.Errorf("verify finds %+v", verified.Differences)
	}
}
