package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"purser/ids"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/payments"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/vault"
)

// ingress is the webhook route of one connection, as a provider sees it.
type ingress struct {
	*testing.T
	address string
}

// newIngress connects a new application whose reports are signed with the secret. Without
// one, it is connected to a Stripe account.
func newIngress(t *testing.T, db *store.Store, secret string) *ingress {
	t.Helper()
	i, _ := newObservedIngress(t, db, secret)
	return i
}

// slots counts the slots for lookups that are taken at each stage of a webhook.
type slots struct{ verifying, stored []int }

func newObservedIngress(t *testing.T, db *store.Store, secret string) (*ingress, *slots) {
	t.Helper()
	lookups, seen := newLookups(), &slots{}
	sealing, err := vault.New(rand.Reader, []byte(strings.Repeat("s", vault.MinSecret)))
	succeeds(t, err)
	receiver, err := cashier.New(cashier.Options{
		Store: db, Vault: sealing, BaseURL: "http://purser.test", Log: slog.New(slog.DiscardHandler),
		ObserveWebhook: func(cashier.WebhookReceipt) { seen.stored = append(seen.stored, len(lookups.running)) },
		Sandbox: func(context.Context, ids.ID, string, []string) (cashier.Sandbox, error) {
			seen.verifying = append(seen.verifying, len(lookups.running))
			return cashier.Sandbox{URL: "http://sandbox.invalid", Key: "sk_test_none", WebhookSecret: secret}, nil
		},
	})
	succeeds(t, err)
	now := time.Now().UnixMilli()
	org, err := tenancy.NewOrganization(ids.New(), "Org "+ids.New().String(), now)
	succeeds(t, err)
	app, err := tenancy.NewApplication(ids.New(), org, "Chat", false, now)
	succeeds(t, err)
	app, err = db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, app)
	succeeds(t, err)
	connection := payments.Connection{ID: ids.New(), Mode: payments.SandboxConnection, AccountID: "sandbox"}
	if secret == "" {
		connection.Mode, connection.AccountID = payments.StripeConnection, "acct_1"
	}
	kept, err := db.PaymentAccounts(app.Scope()).PutConnection(t.Context(), connection, now)
	succeeds(t, err)
	e := echo.New()
	e.POST(Path, receive(receiver, lookups, func(*http.Request) netip.Prefix { return netip.Prefix{} }, slog.New(slog.DiscardHandler)))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return &ingress{T: t, address: server.URL + "/webhooks/stripe/" + kept.ID.Format("con")}, seen
}

// report sends a body with a signature of the secret and the moment.
func (i *ingress) report(body, secret string, at time.Time) int {
	i.Helper()
	return i.send(body, http.Header{"Stripe-Signature": {signed(body, secret, at)}})
}

func (i *ingress) send(body string, header http.Header) int {
	i.Helper()
	request, err := http.NewRequestWithContext(i.Context(), http.MethodPost, i.address, strings.NewReader(body))
	succeeds(i.T, err)
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	succeeds(i.T, err)
	succeeds(i.T, answer.Body.Close())
	return answer.StatusCode
}

func (i *ingress) want(status, got int) {
	i.Helper()
	if got != status {
		i.Errorf("the answer is %d, want %d", got, status)
	}
}

func signed(body, secret string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// eventOf is a report about an object that nobody here knows.
func eventOf(kind string) string {
	return fmt.Sprintf(`{"id":"evt_%s","object":"event","api_version":"2024-06-20","created":1767225600,"livemode":false,"type":%q,
		"data":{"object":{"id":"cs_test_none","object":"checkout.session"}}}`, ids.New(), kind)
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	const current = "whsec_current"
	i := newIngress(t, storetest.Open(t), current)
	now := time.Now()
	body := eventOf("checkout.session.completed")

	t.Run("takes a report that is signed, however often it comes", func(t *testing.T) {
		for range 3 {
			i.want(http.StatusOK, i.report(body, current, now))
		}
	})
	t.Run("takes what it has no use for", func(t *testing.T) {
		i.want(http.StatusOK, i.report(eventOf("topup.created"), current, now))
	})
	t.Run("asks for no session and minds no origin", func(t *testing.T) {
		i.want(http.StatusOK, i.send(body, http.Header{
			"Stripe-Signature": {signed(body, current, now)}, "Origin": {"https://elsewhere.test"}, "Sec-Fetch-Site": {"cross-site"},
		}))
	})
	t.Run("refuses what is not signed, not by us, not like that or not now", func(t *testing.T) {
		i.want(http.StatusBadRequest, i.send(body, http.Header{}))
		i.want(http.StatusBadRequest, i.report(body, "whsec_other", now))
		i.want(http.StatusBadRequest, i.send(strings.Replace(body, "false", "true", 1), http.Header{"Stripe-Signature": {signed(body, current, now)}}))
		i.want(http.StatusBadRequest, i.report(body, current, now.Add(-6*time.Minute)))
		i.want(http.StatusBadRequest, i.report(body, current, now.Add(6*time.Minute)))
		i.want(http.StatusBadRequest, i.report("", "whsec_other", now))
	})
	t.Run("takes bodies up to its limit", func(t *testing.T) {
		fits := body + strings.Repeat(" ", cashier.MaxWebhook-len(body))
		i.want(http.StatusOK, i.report(fits, current, now))
		i.want(http.StatusRequestEntityTooLarge, i.report(fits+" ", current, now))
	})
	t.Run("reads no body for a connection that does not exist", func(t *testing.T) {
		unread, writer := io.Pipe() // nothing is ever written: a reader would wait for ever
		defer writer.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.address[:strings.LastIndex(i.address, "/")+1]+ids.New().Format("con"), unread)
		succeeds(t, err)
		request.ContentLength = cashier.MaxWebhook
		request.Header.Set("Stripe-Signature", "t=1,v1=00")
		response, err := http.DefaultTransport.RoundTrip(request)
		succeeds(t, err)
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound || !response.Close {
			t.Errorf("status %d, Connection: close is %t", response.StatusCode, response.Close)
		}
	})
	t.Run("knows its connections", func(t *testing.T) {
		for _, connection := range []string{ids.New().Format("con"), "con_none", "..%2F"} {
			other := *i
			other.T, other.address = t, i.address[:strings.LastIndex(i.address, "/")+1]+connection
			other.want(http.StatusNotFound, other.report(body, current, now))
		}
	})
}

// A stranger who knows a connection's id must not cause database work without a bound.
func TestUnsignedWebhooksAreBounded(t *testing.T) {
	t.Parallel()
	const secret = "whsec_current"
	i, seen := newObservedIngress(t, storetest.Open(t), secret)
	body := eventOf("invoice.paid")
	t.Run("a webhook without signature or body reads nothing", func(t *testing.T) {
		i.want(http.StatusBadRequest, i.send("", http.Header{}))
		i.want(http.StatusBadRequest, i.send(body, http.Header{}))
		i.want(http.StatusBadRequest, i.report("", secret, time.Now()))
		chunked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.address, io.MultiReader(strings.NewReader("")))
		succeeds(t, err)
		chunked.ContentLength = -1
		chunked.Header.Set("Stripe-Signature", signed("", secret, time.Now()))
		response, err := http.DefaultTransport.RoundTrip(chunked)
		succeeds(t, err)
		response.Body.Close()
		i.want(http.StatusBadRequest, response.StatusCode)
		if len(seen.verifying) != 0 {
			t.Errorf("secrets were read %d times", len(seen.verifying))
		}
	})
	t.Run("a webhook holds a slot until it is verified", func(t *testing.T) {
		i.want(http.StatusBadRequest, i.report(body, "whsec_other", time.Now()))
		i.want(http.StatusOK, i.report(body, secret, time.Now()))
		if !slices.Equal(seen.verifying, []int{1, 1}) || !slices.Equal(seen.stored, []int{0}) {
			t.Errorf("slots taken: %v while verifying, %v after", seen.verifying, seen.stored)
		}
	})
}

func TestWebhooksWithOversizedFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	const secret, limit = "whsec_current", 255
	i, seen := newObservedIngress(t, storetest.Open(t), secret)
	event := func(id, kind, version, object string) string {
		return fmt.Sprintf(`{"id":%q,"type":%q,"api_version":%q,"livemode":false,"data":{"object":{"id":%q,"object":"invoice"}}}`, id, kind, version, object)
	}
	random := func(length int) string { // which no index compresses
		text := make([]byte, length)
		_, _ = rand.Read(text)
		return hex.EncodeToString(text)[:length]
	}
	long := random(limit)
	for _, body := range []string{
		event(long, long, long, long),
		event(long+"0", "invoice.paid", "2024-06-20", "in_1"), event(random(64<<10), "invoice.paid", "2024-06-20", "in_1"),
		event("evt_1", random(64<<10), "2024-06-20", "in_1"), event("evt_1", "invoice.paid", random(64<<10), "in_1"),
		event("evt_1", "invoice.paid", "2024-06-20", random(64<<10)),
		strings.Replace(event("evt_1", "invoice.paid", "2024-06-20", "in_1"), "evt_1", `evt_\u0000`, 1),
	} {
		i.want(http.StatusOK, i.report(body, secret, time.Now()))
	}
	if len(seen.stored) != 7 {
		t.Errorf("%d webhooks were counted", len(seen.stored))
	}
}

func TestWebhooksWithoutASecret(t *testing.T) {
	t.Parallel()
	i := newIngress(t, storetest.Open(t), "")
	body := eventOf("invoice.paid")
	for _, secret := range []string{"", "whsec_any"} {
		i.want(http.StatusServiceUnavailable, i.report(body, secret, time.Now()))
	}
}

func TestWebhooksWithoutADatabase(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 2})
	succeeds(t, err)
	i := newIngress(t, db, "whsec_current")
	db.Close()
	body := eventOf("invoice.paid")
	i.want(http.StatusInternalServerError, i.report(body, "whsec_current", time.Now()))
	i.want(http.StatusBadRequest, i.send(body, http.Header{})) // nothing is read for it
}

func succeeds(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
