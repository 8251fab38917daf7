package web

import (
	"crypto/rand"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"purser/ids"
	"purser/jobs"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/vault"
	"purser/web/site"
)

var (
	webhookSecret      = regexp.MustCompile(`whsec_[0-9A-Za-z+/]{43}=`)
	endpointIDField    = regexp.MustCompile(`name="id" value="(whe_[0-9a-z]{26})"`)
	previousUntilField = regexp.MustCompile(`name="previous_until" value="(\d+)"`)
	revisionField      = regexp.MustCompile(`name="revision" value="(\d+)"`)
)

// hooksHarness is a site that sends webhooks, also to this machine.
type hooksHarness struct {
	*harness
	queue    *jobs.Queue
	receiver *httptest.Server
	status   atomic.Int64 // of the receiver's answers
	received atomic.Int64
}

func newHooksHarness(t *testing.T) *hooksHarness {
	t.Helper()
	// Its own store: the dispatcher is told of what is committed there.
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 4})
	noError(t, err)
	t.Cleanup(db.Close)
	seals, err := vault.New(rand.Reader, rigSecret)
	noError(t, err)
	h := &hooksHarness{queue: jobs.New(jobs.Options{Store: db})}
	h.status.Store(http.StatusOK)
	h.harness = newHarnessOn(t, Options{Options: site.Options{Store: db}, Deliveries: delivery.New(delivery.Options{
		Store: db, Vault: seals, Jobs: h.queue, Opened: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})})
	h.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.received.Add(1)
		w.WriteHeader(int(h.status.Load()))
		_, _ = io.WriteString(w, "<b>answer</b>")
	}))
	t.Cleanup(h.receiver.Close)
	return h
}

// send numbers and sends what is due.
func (h *hooksHarness) send(t *testing.T) {
	t.Helper()
	noError(t, h.queue.DrainLane(t.Context(), h.app.ID, delivery.Lane))
}

func (h *hooksHarness) deposit(t *testing.T, identity string) {
	t.Helper()
	_, _, err := h.db.App(h.app.Scope()).Deposit(t.Context(), store.Deposit{
		ID: ids.New(), Identity: identity, CreditKey: "tokens", Amount: 5, IdempotencyKey: new(ids.New().String()), CreatedAt: h.site.Now(),
	})
	noError(t, err)
}

func (h *hooksHarness) endpointFields(t *testing.T, b *browser, types ...string) url.Values {
	t.Helper()
	opened := b.get(t, h.appPath("webhooks", "new"))
	match := endpointIDField.FindStringSubmatch(opened.body)
	if opened.status != http.StatusOK || match == nil {
		t.Fatalf("the form answers %d", opened.status)
	}
	fields := url.Values{"id": {match[1]}, "url": {h.receiver.URL + "/hooks"}, "description": {hostile}, "scope": {"all"}}
	if len(types) > 0 {
		fields["scope"], fields["types"] = []string{"custom"}, types
	}
	return fields
}

func revisionIn(t *testing.T, page seen) string {
	t.Helper()
	match := revisionField.FindStringSubmatch(page.body)
	if match == nil {
		t.Fatalf("status %d, no revision", page.status)
	}
	return match[1]
}

func TestTheFormOfAnEndpointSaysWhatTypesReport(t *testing.T) {
	t.Parallel()
	h := newDocsHarness(t)
	form := h.join(t, tenancy.Admin).get(t, h.appPath("webhooks", "new"))
	says(t, form, http.StatusOK, "no subscription.updated is sent for that") // without backquotes
}

func TestWebhookPages(t *testing.T) {
	t.Parallel()
	h := newHooksHarness(t)
	h.newCredit(t, "tokens")
	b := h.join(t, tenancy.Admin)

	t.Run("an application without endpoints shows how to try it locally", func(t *testing.T) {
		page := b.get(t, h.appPath("webhooks")+"?language=python")
		text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page.body, ""))
		wantTexts(t, text, "No endpoints yet", "listen --url ", "--forward http://localhost:3000/hooks", "class Receiver", "/v1/deposits")
		wantTexts(t, b.get(t, h.appPath("notifications")).body, "No notifications yet")
	})

	fields := h.endpointFields(t, b, "deposit.created", "balance.low")
	made := b.post(t, h.appPath("webhooks", "new"), fields)
	secret := webhookSecret.FindString(made.body)
	path := h.appPath("webhooks", fields.Get("id"))

	t.Run("a secret is shown once", func(t *testing.T) {
		if made.status != http.StatusOK || secret == "" || made.header.Get("Cache-Control") != "no-store" || !strings.Contains(made.body, "data-once") {
			t.Fatalf("status %d, a secret: %t", made.status, secret != "")
		}
		again := b.post(t, h.appPath("webhooks", "new"), fields)
		if again.status != http.StatusConflict || webhookSecret.MatchString(again.body) {
			t.Errorf("sent again, the form answers %d", again.status)
		}
		for _, page := range []string{path, path + "/edit", h.appPath("webhooks"), h.orgPath("audit")} {
			if got := b.get(t, page); got.status != http.StatusOK || webhookSecret.MatchString(got.body) || strings.Contains(got.body, hostile) {
				t.Errorf("%s answers %d, or shows too much", page, got.status)
			}
		}
		if action, target, text := h.lastAction(t); action != "webhook.create" || target != fields.Get("id") || strings.Contains(text, secret[6:]) {
			t.Errorf("the log has %s %s", action, target)
		}
	})
	t.Run("wrong values come back with the form", func(t *testing.T) {
		wrong := h.endpointFields(t, b)
		wrong.Set("url", "ftp://example.com")
		if got := b.post(t, h.appPath("webhooks", "new"), wrong); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Use https.") || !strings.Contains(got.body, "ftp://example.com") {
			t.Errorf("status %d", got.status)
		}
		wrong.Set("url", "https://example.com")
		wrong.Set("scope", "custom")
		if got := b.post(t, h.appPath("webhooks", "new"), wrong); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Select at least one type") {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("a test arrives, and its page shows both sides", func(t *testing.T) {
		tested := b.post(t, path+"/test", url.Values{"type": {"balance.low"}})
		if tested.status != http.StatusSeeOther || !strings.HasPrefix(tested.location, h.appPath("notifications")) {
			t.Fatalf("it answers %d %s", tested.status, tested.location)
		}
		if waits := b.get(t, tested.location); !strings.Contains(waits.body, `hx-trigger="every 2s"`) {
			t.Error("the page does not wait for the answer")
		}
		h.send(t)
		page := b.get(t, tested.location)
		text := html.UnescapeString(page.body)
		wantTexts(t, text, "Delivered", "POST "+h.receiver.URL+"/hooks", "webhook-id: ntf_", "webhook-timestamp: ", "(not stored)", `"type":"balance.low"`, `"test":true`, "HTTP 200")
		if strings.Contains(page.body, "<b>answer") || strings.Contains(page.body, "every 2s") || h.received.Load() != 1 {
			t.Error("the answer is not escaped, or the page still waits")
		}
		again := b.post(t, tested.location+"/redeliver", url.Values{"endpoint": {fields.Get("id")}})
		h.send(t)
		if again.status != http.StatusSeeOther || h.received.Load() != 2 || strings.Count(b.get(t, tested.location).body, `class="attempt"`) != 2 {
			t.Errorf("it was sent %d times", h.received.Load())
		}
	})
	t.Run("a paused endpoint shows what waits", func(t *testing.T) {
		if got := b.post(t, path+"/status", url.Values{"status": {"paused"}}); got.status != http.StatusSeeOther {
			t.Fatalf("it answers %d", got.status)
		}
		h.deposit(t, "ann")
		h.deposit(t, "ann")
		h.send(t)
		page := b.get(t, path+"?show=waiting")
		wantTexts(t, page.body, "2 notifications are waiting.", "Waiting (2)", "deposit.created", "#1", "#2")
		wantTexts(t, b.get(t, h.appPath("webhooks")).body, "Paused", ">2<")
		b.post(t, path+"/status", url.Values{"status": {"enabled"}})
		h.send(t)
		if h.received.Load() != 4 {
			t.Errorf("%d webhooks were sent", h.received.Load())
		}
		wantTexts(t, b.get(t, path+"?show=waiting").body, "Nothing is waiting")
	})
	t.Run("the feed and the wallet show notifications", func(t *testing.T) {
		wantTexts(t, b.get(t, h.appPath("notifications")).body, "deposit.created", "ann", "#2")
		if page := b.get(t, h.appPath("notifications")+"?type=key.revoked"); !strings.Contains(page.body, "No notifications match") {
			t.Error("the filter by type has no effect")
		}
		if page := b.get(t, h.appPath("notifications")+"?identity=stranger"); !strings.Contains(page.body, "No notifications match") {
			t.Error("the filter by customer has no effect")
		}
		w, err := h.db.App(h.app.Scope()).Wallet(t.Context(), "ann")
		noError(t, err)
		wantTexts(t, b.get(t, h.appPath("wallets", w.ID.Format(ids.Wallet), "notifications")).body, "deposit.created", "#1", "#2")
	})
	t.Run("a failure shows the answer, and a replay sends the range again", func(t *testing.T) {
		h.status.Store(http.StatusInternalServerError)
		replayed := b.post(t, path+"/replay", url.Values{"from": {"1"}, "to": {"1"}, "only": {"all"}})
		h.send(t)
		if replayed.status != http.StatusSeeOther || h.received.Load() != 5 {
			t.Errorf("%d, %d webhooks", replayed.status, h.received.Load())
		}
		wantTexts(t, b.get(t, path).body, "Failing", "Retrying", "500")
		h.status.Store(http.StatusOK)
		if got := b.post(t, path+"/replay", url.Values{"from": {"9"}, "to": {"2"}, "only": {"all"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("a range that ends before it begins is answered with %d", got.status)
		}
		storetest.Exec(t, h.url, `UPDATE feeds SET last_seq = last_seq + 20000 WHERE app_id = $1`, h.app.ID)
		says(t, b.post(t, path+"/replay", url.Values{"from": {"1"}, "only": {"all"}}), http.StatusUnprocessableEntity, "Replay up to 10000 first.") // as the field takes it
		storetest.Exec(t, h.url, `UPDATE feeds SET last_seq = last_seq - 20000 WHERE app_id = $1`, h.app.ID)
	})
	t.Run("two edits of one revision meet", func(t *testing.T) {
		revision := revisionIn(t, b.get(t, path+"/edit"))
		edit := url.Values{"revision": {revision}, "url": {h.receiver.URL + "/first"}, "scope": {"all"}, "description": {"First"}}
		if got := b.post(t, path+"/edit", edit); got.status != http.StatusSeeOther {
			t.Fatalf("the first is answered with %d", got.status)
		}
		edit.Set("description", "Second")
		got := b.post(t, path+"/edit", edit)
		if got.status != http.StatusConflict || !strings.Contains(got.body, "First") || !strings.Contains(got.body, "Second") {
			t.Errorf("the second is answered with %d", got.status)
		}
		edit.Set("revision", revisionIn(t, got))
		if got := b.post(t, path+"/edit", edit); got.status != http.StatusSeeOther {
			t.Errorf("the decision is answered with %d", got.status)
		}
	})
	t.Run("a rotation shows another secret, once", func(t *testing.T) {
		opened := b.get(t, path)
		rotate := url.Values{"revision": {revisionIn(t, opened)}, "previous_until": {previousUntilField.FindStringSubmatch(opened.body)[1]}, "overlap": {"3600"}}
		// A change between opening and sending is not a rotation.
		b.post(t, path+"/status", url.Values{"status": {"paused"}})
		b.post(t, path+"/status", url.Values{"status": {"enabled"}})
		stale := b.post(t, path+"/rotate", rotate)
		if stale.status != http.StatusSeeOther {
			t.Errorf("of a changed endpoint, it answers %d", stale.status)
		}
		wantTexts(t, b.get(t, stale.location).body, "Nothing was rotated.")
		rotate.Set("revision", revisionIn(t, b.get(t, path)))
		rotated := b.post(t, path+"/rotate", rotate)
		next := webhookSecret.FindString(rotated.body)
		if rotated.status != http.StatusOK || next == "" || next == secret || !strings.Contains(rotated.body, "signed with both secrets") {
			t.Errorf("it answers %d", rotated.status)
		}
		if again := b.post(t, path+"/rotate", rotate); again.status != http.StatusConflict || webhookSecret.MatchString(again.body) || !strings.Contains(again.body, "already rotated") || !strings.Contains(again.body, "then stops signing") {
			t.Errorf("sent again, it answers %d", again.status)
		}
		wantTexts(t, b.get(t, path).body, "Previous secret signs until")
	})
	t.Run("another member reads and changes nothing", func(t *testing.T) {
		support := h.join(t, tenancy.Support)
		if page := support.get(t, path); page.status != http.StatusOK || strings.Contains(page.body, "Rotate secret") || strings.Contains(page.body, "Redeliver") {
			t.Errorf("support sees %d", page.status)
		}
	})
	t.Run("a deleted endpoint is gone, and its deliveries say so", func(t *testing.T) {
		sent := regexp.MustCompile(`/notifications/ntf_[0-9a-z]{26}`).FindString(b.get(t, path).body)
		if got := b.post(t, path+"/delete", nil); got.status != http.StatusSeeOther {
			t.Errorf("it answers %d", got.status)
		}
		if got := b.get(t, path); got.status != http.StatusNotFound {
			t.Errorf("its page answers %d", got.status)
		}
		wantTexts(t, b.get(t, h.appPath()+sent).body, "Deleted endpoint")
		if got := b.post(t, h.appPath("webhooks", "new"), fields); got.status != http.StatusConflict || !strings.Contains(got.body, "This form was already used") {
			t.Errorf("its form, sent again, is answered with %d", got.status)
		}
		if got := b.get(t, path); got.status != http.StatusNotFound {
			t.Errorf("the form sent again created it: %d", got.status)
		}
	})
	t.Run("a live endpoint's host is typed to delete it", func(t *testing.T) {
		live := h.newApplication(t, h.org, "Live", true)
		e := notify.Endpoint{ID: ids.New(), URL: "https://example.com/hooks", Status: notify.Enabled, Revision: 1, SealedSecret: []byte{1}, CreatedAt: h.site.Now()}
		noError(t, h.db.Notifications(live.Scope()).CreateEndpoint(t.Context(), e))
		path := site.PathOf([]string{"o", h.org.Slug, "a", live.Slug, "webhooks", e.ID.Format(ids.WebhookEndpoint), "delete"})
		if got := b.post(t, path, url.Values{"confirm": {"example.org"}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `<a href="#field-confirm">The name doesn&#39;t match`) {
			t.Errorf("another name is answered with %d", got.status)
		}
		if got := b.post(t, path, url.Values{"confirm": {"example.com"}}); got.status != http.StatusSeeOther {
			t.Errorf("its name is answered with %d", got.status)
		}
	})
}
