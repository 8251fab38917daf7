package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/tenancy"
)

// mispay has the identity pay another sum than the checkout asked for.
func (d *supportHarness) mispay(t *testing.T, identity string) { d.payTopUp(t, identity, 1) }

// payTopUp has the identity pay a sum at a checkout that asks for 3000 cents.
func (d *supportHarness) payTopUp(t *testing.T, identity string, cents int64) {
	t.Helper()
	now := d.site.Now()
	connection, err := d.Accounts().PutConnection(t.Context(), payments.Connection{
		ID: ids.New(), Mode: payments.StripeConnection, AccountID: "acct_1", SealedKey: []byte("sealed"), KeyLastFour: "9fQ2",
	}, now)
	noError(t, err)
	credit, err := d.tenant.Credit(t.Context(), "tokens")
	noError(t, err)
	topUp := billing.TopUp{
		ID: ids.New(), Identity: identity, Credit: billing.Grant{CreditID: credit.ID, CreditKey: credit.Key, Amount: 100},
		AmountCents: 3000, Currency: "usd", ConnectionID: connection.ID, CustomerID: "cus_1", ExpiresAt: now + 1000, Status: billing.TopUpOpen, CreatedAt: now,
	}
	op := billing.Operation{
		ID: ids.New(), Kind: billing.OperationTopUp, IdempotencyKey: ids.New().String(), Fingerprint: billing.Fingerprint{1},
		Parameters: billing.NewParameters(billing.OperationTopUp), Step: billing.StepSession, Attempt: 1, State: billing.OperationRunning, CreatedAt: now,
	}
	fence, held, err := d.Queue().Lease(t.Context(), "identity:"+identity, ids.New(), 30*time.Second)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	_, _, err = d.Payments().Begin(t.Context(), payments.BeginInput{
		Fence: fence, Identity: identity, CreditKey: credit.Key, Op: op, Now: now,
		Decide: func(payments.CustomerState) (payments.Decision, error) {
			return payments.Decision{Operation: op, TopUp: &topUp}, nil
		},
	})
	noError(t, err)
	_, err = d.Payments().ApplyTopUp(t.Context(), fence, topUp.ID, billing.ProviderSession{
		ID: "cs_short", Status: billing.SessionComplete, Paid: true, AmountTotal: cents, Currency: "usd", CustomerID: "cus_1",
		IntentID: "pi_1", ChargeID: "ch_1", URL: "https://pay.example/1", ExpiresAt: topUp.ExpiresAt,
	}, now, nil)
	noError(t, err)
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support, admin := d.join(t, tenancy.Support), d.join(t, tenancy.Admin)
	says(t, support.get(t, d.appPath("alerts")), http.StatusOK, "No payment issues")
	d.mispay(t, hostileIdentity)
	alerts, _, err := d.Payments().Alerts(t.Context(), store.Page{Limit: 1}, false)
	noError(t, err)
	resolve := d.appPath("alerts", alerts[0].ID.Format(ids.Alert), "resolve")

	t.Run("are led to from the overview", func(t *testing.T) {
		overview := support.get(t, d.appPath())
		says(t, overview, http.StatusOK, "1 payment issue needs your decision")
		if !strings.Contains(overview.body, `href="`+d.appPath("alerts")+`"`) {
			t.Error("no link leads to it")
		}
		without := d.join(t, tenancy.Custom, tenancy.WalletsRead)
		if got := without.get(t, d.appPath()); strings.Contains(got.body, "needs a look") {
			t.Error("told to who cannot open it")
		}
	})
	t.Run("say what happened and what to do", func(t *testing.T) {
		list := support.get(t, d.appPath("alerts"))
		says(t, list, http.StatusOK, "Payment doesn't match the checkout", "refund the payment", "cs_short")
		if strings.Contains(list.body, "<script>alert") || strings.Contains(list.body, resolve) {
			t.Error("an identity is markup, or support is offered what it may not do")
		}
	})
	t.Run("are resolved once, by who may, and that is in the audit log", func(t *testing.T) {
		if got := support.post(t, resolve, nil); got.status != http.StatusForbidden {
			t.Errorf("support: status %d", got.status)
		}
		if got := admin.post(t, resolve, nil); got.location != d.appPath("alerts") {
			t.Errorf("status %d", got.status)
		}
		if action, _, text := d.lastAction(t); action != "alert.resolve" || !strings.Contains(text, "cs_short") {
			t.Errorf("the log says %s: %s", action, text)
		}
		if got := admin.post(t, resolve, nil); got.status != http.StatusNotFound {
			t.Errorf("again: status %d", got.status)
		}
		says(t, admin.get(t, d.appPath("alerts")), http.StatusOK, "No payment issues")
		says(t, admin.get(t, d.appPath("alerts")+"?show=all"), http.StatusOK, "Resolved")
	})
	t.Run("of another application are not there", func(t *testing.T) {
		other := d.newApplication(t, d.org, "Other", false)
		wantFault(t, d.db.Payments(other.Scope()).ResolveAlert(t.Context(), alerts[0].ID, d.site.Now()), fault.PathNotFound)
	})
}
