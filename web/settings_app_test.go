package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/payments/cashier"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/vault"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

// newTestCashier is a cashier that reaches no provider.
func newTestCashier(t *testing.T) *cashier.Cashier {
	t.Helper()
	sealing, err := vault.New(rand.Reader, bytes.Repeat([]byte{7}, 32))
	noError(t, err)
	payments, err := cashier.New(cashier.Options{
		Store: storetest.Open(t), Vault: sealing, BaseURL: "https://purser.example", Log: slog.New(slog.DiscardHandler),
		Sandbox: func(context.Context, ids.ID, string, []string) (cashier.Sandbox, error) {
			return cashier.Sandbox{}, nil
		},
	})
	noError(t, err)
	return payments
}

func TestAnOrganizationsNameKeepsWhatAnotherMemberSaved(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, other := r.join(t, tenancy.Owner), r.join(t, tenancy.Owner)
	path := r.orgPath("settings")
	saved := func() string {
		org, err := r.db.Org(r.org.ID).Organization(t.Context())
		noError(t, err)
		return org.Name
	}
	version := hidden(b.get(t, path).body, "version")
	stale := url.Values{"name": {r.org.Name}, "version": {version}} // untouched
	if got := other.post(t, path, url.Values{"name": {"Theirs"}, "version": {version}}); got.status != http.StatusSeeOther {
		t.Fatalf("the first form: status %d\n%s", got.status, got.body)
	}
	got := b.post(t, path, stale)
	if got.status != http.StatusConflict || saved() != "Theirs" {
		t.Errorf("the stale form: status %d, the name is %q", got.status, saved())
	}
	wantTexts(t, got.body, "This changed while you were editing", "<bdi>Theirs</bdi>", `value="`+r.org.Name+`"`)
	if again := b.post(t, path, url.Values{"name": {""}, "version": {version}}); again.status != http.StatusUnprocessableEntity || hidden(again.body, "version") != version {
		t.Errorf("an invalid form: status %d, its version is %q", again.status, hidden(again.body, "version"))
	}
	stale.Del("version")
	if again := b.post(t, path, stale); again.status != http.StatusConflict {
		t.Errorf("without the version: status %d", again.status)
	}
	stale.Set("version", hidden(got.body, "version"))
	if again := b.post(t, path, stale); again.status != http.StatusSeeOther || saved() != r.org.Name {
		t.Errorf("the form of the conflict: status %d, the name is %q", again.status, saved())
	}
}

func TestApplicationSettings(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.join(t, tenancy.Admin)
	path := r.appPath("settings")

	t.Run("are saved, under the same address", func(t *testing.T) {
		reply := b.post(t, path, url.Values{"name": {hostile}, "deployment_url": {"https://chat.example"}, "version": {r.app.Version()}})
		if reply.status != http.StatusSeeOther || reply.location != path {
			t.Fatalf("status %d, to %s", reply.status, reply.location)
		}
		app, err := r.db.Org(r.org.ID).Application(t.Context(), r.app.ID)
		noError(t, err)
		if app.Name != hostile || app.DeploymentURL != "https://chat.example" || app.Slug != r.app.Slug {
			t.Errorf("it is %+v", app)
		}
		if action, target, _ := r.lastAction(t); action != "application.update" || target != r.app.ID.Format(ids.Application) {
			t.Errorf("the log says %s of %s", action, target)
		}
		if body := b.get(t, path).body; strings.Contains(body, "<script>alert") {
			t.Error("the name is markup")
		}
	})

	t.Run("say at its field what is wrong", func(t *testing.T) {
		reply := b.post(t, path, url.Values{"name": {""}, "deployment_url": {"javascript:alert(1)"}})
		if reply.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", reply.status)
		}
		wantTexts(t, reply.body, `href="#field-name"`, `href="#field-deployment_url"`, `value="javascript:alert(1)"`)
	})

	t.Run("keep what another admin saved while the form was open", func(t *testing.T) {
		saved := func() tenancy.Application {
			app, err := r.db.Org(r.org.ID).Application(t.Context(), r.app.ID)
			noError(t, err)
			return app
		}
		version := hidden(b.get(t, path).body, "version")
		stale := url.Values{"name": {"Renamed"}, "deployment_url": {saved().DeploymentURL}, "version": {version}}
		other := r.join(t, tenancy.Owner)
		if got := other.post(t, path, url.Values{"name": {hostile}, "deployment_url": {"https://new.example"}, "version": {version}}); got.status != http.StatusSeeOther {
			t.Fatalf("the first form: status %d\n%s", got.status, got.body)
		}
		got := b.post(t, path, stale)
		if app := saved(); got.status != http.StatusConflict || app.DeploymentURL != "https://new.example" || app.Name != hostile {
			t.Errorf("the stale form: status %d, it is %+v", got.status, app)
		}
		wantTexts(t, got.body, "This changed while you were editing", "<bdi>https://new.example</bdi>", "<bdi>https://chat.example</bdi>", `value="Renamed"`)
		invalid := url.Values{"name": {""}, "deployment_url": {"https://chat.example"}, "version": {version}}
		if again := b.post(t, path, invalid); again.status != http.StatusUnprocessableEntity || hidden(again.body, "version") != version {
			t.Errorf("an invalid form: status %d, its version is %q", again.status, hidden(again.body, "version"))
		}
		stale.Del("version")
		if again := b.post(t, path, stale); again.status != http.StatusConflict {
			t.Errorf("without the version: status %d", again.status)
		}
		stale.Set("version", hidden(got.body, "version"))
		if again := b.post(t, path, stale); again.status != http.StatusSeeOther || saved().Name != "Renamed" || saved().DeploymentURL != "https://chat.example" {
			t.Errorf("the form of the conflict: status %d, it is %+v", again.status, saved())
		}
	})

	t.Run("are closed to who may not change them", func(t *testing.T) {
		developer := r.join(t, tenancy.Developer)
		for _, reply := range []seen{
			developer.get(t, path),
			developer.post(t, path, url.Values{"name": {"Mine"}}),
			developer.post(t, path+"/provider", url.Values{"api_key": {"sk_test_1"}}),
			developer.post(t, path+"/revoke-keys", nil),
		} {
			if reply.status != http.StatusForbidden {
				t.Errorf("status %d", reply.status)
			}
		}
	})
}

func TestTheDangerZone(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.app = r.newApplication(t, r.org, "Sh\u200bop", true)
	b := r.join(t, tenancy.Admin)
	makeKey(t, b, keys.Ingestion)
	path := r.appPath("settings", "revoke-keys")

	t.Run("asks for the name of a live application", func(t *testing.T) {
		reply := b.post(t, path, url.Values{"confirm": {"shop"}})
		if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, `<a href="#field-confirm">The name doesn&#39;t match`) || r.keys(t)[0].Revoked {
			t.Errorf("status %d", reply.status)
		}
	})

	t.Run("shows no settings to a member who may only revoke keys", func(t *testing.T) {
		reply := r.join(t, tenancy.Custom, tenancy.KeysRead, tenancy.KeysWrite).post(t, path, url.Values{"confirm": {"shop"}})
		if reply.status != http.StatusSeeOther || reply.location != r.appPath("keys") || r.keys(t)[0].Revoked {
			t.Errorf("status %d, %s", reply.status, reply.location)
		}
	})

	t.Run("stops every key", func(t *testing.T) {
		reply := b.post(t, path, url.Values{"confirm": {"Shop"}})
		_, err := r.db.App(r.app.Scope()).UseKey(t.Context(), r.keys(t)[0].ID, r.site.Now())
		wantFault(t, err, fault.RevokedAPIKey)
		if action, _, _ := r.lastAction(t); reply.status != http.StatusSeeOther || action != "key.revoke-all" {
			t.Errorf("status %d, the log says %s", reply.status, action)
		}
	})
}

func TestTheSandboxesKeyIsShownToThoseWhoMayConnectAnAccount(t *testing.T) {
	t.Parallel()
	options := Options{Options: site.Options{Store: storetest.Open(t), Cashier: newTestCashier(t)}, Sandbox: func(app ids.ID) settingspage.SandboxAPI {
		return settingspage.SandboxAPI{URL: "http://127.0.0.1:8081", Key: "sk_test_of_" + app.String(), Version: "2024-06-20"}
	}}
	r := newHarnessOn(t, options)
	key := "sk_test_of_" + r.app.ID.String()
	wantTexts(t, r.join(t, tenancy.Admin).get(t, r.appPath("settings")).body, "http://127.0.0.1:8081", key, "2024-06-20", `data-copy="sandbox-key"`)
	if strings.Contains(r.join(t, tenancy.Support).get(t, r.appPath("settings")).body, key) {
		t.Error("support sees it")
	}
	live := r.newApplication(t, r.org, "Shop", true)
	if body := r.join(t, tenancy.Owner).get(t, site.PathOf([]string{"o", r.org.Slug, "a", live.Slug, "settings"})).body; strings.Contains(body, "sk_test_of_") {
		t.Error("a live application shows one")
	}
	options.SandboxOff = true
	off := newHarnessOn(t, options)
	body := off.join(t, tenancy.Admin).get(t, off.appPath("settings")).body
	wantTexts(t, body, "turned off on this server")
	if strings.Contains(body, "sk_test_of_") {
		t.Error("a sandbox that is off shows a key")
	}
}

func TestThePaymentProvider(t *testing.T) {
	t.Parallel()
	r := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), Cashier: newTestCashier(t)}})
	b := r.join(t, tenancy.Admin)
	path := r.appPath("settings")

	t.Run("is the sandbox until another is connected", func(t *testing.T) {
		wantTexts(t, b.get(t, path).body, "Payments go to the built-in sandbox", "Connect Stripe")
	})

	t.Run("is missing in a live application, and said to be", func(t *testing.T) {
		live := r.newApplication(t, r.org, "Shop", true)
		wantTexts(t, b.get(t, site.PathOf([]string{"o", r.org.Slug, "a", live.Slug, "settings"})).body, "Not connected")
	})

	t.Run("refuses a key that does not fit, and does not send it back", func(t *testing.T) {
		for _, key := range []string{"", "pk_test_51Canary", "sk_live_51Canary"} {
			reply := b.post(t, path+"/provider", url.Values{"api_key": {key}, "webhook_secret": {"whsec_Canary"}})
			if reply.status != http.StatusUnprocessableEntity || !strings.Contains(reply.body, `href="#field-api_key"`) {
				t.Errorf("%q: status %d", key, reply.status)
			}
			if strings.Contains(reply.body, "Canary") {
				t.Errorf("%q comes back", key)
			}
		}
		if tables := storetest.TablesWith(t, storetest.URL(t), "51Canary"); len(tables) > 0 {
			t.Errorf("it is in %v", tables)
		}
	})

	t.Run("shows four characters of its key, and how it gets events", func(t *testing.T) {
		_, err := r.db.PaymentAccounts(r.app.Scope()).PutConnection(t.Context(), payments.Connection{
			ID: ids.New(), Mode: payments.StripeConnection, AccountID: "acct_1Example", SealedKey: []byte("sealed"), KeyLastFour: "9fQ2",
		}, r.site.Now())
		noError(t, err)
		body := b.get(t, path).body
		wantTexts(t, body, "acct_1Example", "…9fQ2", "Webhook secret missing", "https://purser.example/webhooks/stripe/con_", "Replace key")
		if strings.Contains(body, "sealed") {
			t.Error("the sealed key is on the page")
		}
	})
}

func TestRetryingASync(t *testing.T) {
	t.Parallel()
	r := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), Cashier: newTestCashier(t)}})
	b := r.join(t, tenancy.Developer)
	r.newCredit(t, "tokens")
	r.newFeature(t, "messages", "tokens")
	plan := r.newPlan(t, "pro", "messages")
	work := r.db.Queue(r.app.Scope())
	fence, _, err := work.Lease(t.Context(), "plan:"+plan.ID.String(), ids.New(), time.Minute)
	noError(t, err)
	const reason = `No such product: <b>prod_1</b> & "more"`
	noError(t, r.db.Payments(r.app.Scope()).PlanRefused(t.Context(), fence, plan.ID, plan.Sync, reason))
	path := r.appPath("plans", "pro")

	t.Run("the page shows what the provider said, as text, and offers it", func(t *testing.T) {
		body := b.get(t, path+"/edit").body
		wantTexts(t, body, "Sync error", "No such product: &lt;b&gt;prod_1&lt;/b&gt;", `action="`+path+`/sync"`)
		wantTexts(t, b.get(t, r.appPath("plans")).body, "Sync error")
	})

	t.Run("it is worked on at once", func(t *testing.T) {
		reply := b.post(t, path+"/sync", nil)
		if reply.status != http.StatusSeeOther || reply.location != path+"/edit" {
			t.Errorf("status %d, to %s", reply.status, reply.location)
		}
		due, err := work.ClaimJobs(t.Context(), queue.ClaimInput{Kinds: []queue.JobKind{queue.JobPlan}, Now: r.site.Now(), Most: 10})
		noError(t, err)
		for _, job := range due.Jobs {
			if job.Object == plan.ID.String() {
				return
			}
		}
		t.Errorf("nothing is due: %+v", due)
	})

	t.Run("it is not offered to who may only look", func(t *testing.T) {
		support := r.join(t, tenancy.Support)
		if strings.Contains(support.get(t, path+"/edit").body, path+"/sync") {
			t.Error("it is")
		}
		if reply := support.post(t, path+"/sync", nil); reply.status != http.StatusForbidden {
			t.Errorf("status %d", reply.status)
		}
	})
}
