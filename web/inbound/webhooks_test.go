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
	secrets []string
}

// newIngress connects a new application whose reports are signed with one of the
// secrets.
func newIngress(t *testing.T, db *store.Store, secrets ...string) *ingress {
	t.Helper()
	sealing, err := vault.New(rand.Reader, []byte(strings.Repeat("s", vault.MinSecret)))
	succeeds(t, err)
	desk, err := cashier.New(cashier.Options{
		Store: db, Vault: sealing, BaseURL: "http://purser.test", Log: slog.New(slog.DiscardHandler),
		Sandbox: func(context.Context, ids.ID, string, []string) (cashier.Sandbox, error) {
			return cashier.Sandbox{URL: "http://sandbox.invalid", Key: "sk_test_none", WebhookSecrets: secrets}, nil
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
	kept, err := db.PaymentAccounts(app.Scope()).PutConnection(t.Context(), payments.Connection{ID: ids.New(), Mode: payments.SandboxConnection, AccountID: "sandbox"}, now)
	succeeds(t, err)
	e := echo.New()
	e.POST(Path, Receive(desk, func(*http.Request) netip.Prefix { return netip.Prefix{} }, slog.New(slog.DiscardHandler)))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return &ingress{T: t, address: server.URL + "/webhooks/stripe/" + kept.ID.Format("con"), secrets: secrets}
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
	const current, previous = "whsec_current", "whsec_previous"
	i := newIngress(t, storetest.Open(t), current, previous)
	now := time.Now()
	body := eventOf("checkout.session.completed")

	t.Run("takes a report that is signed, however often it comes", func(t *testing.T) {
		for range 3 {
			i.want(http.StatusOK, i.report(body, current, now))
		}
	})
	t.Run("takes the secret of before while it is valid", func(t *testing.T) {
		i.want(http.StatusOK, i.report(body, previous, now))
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

func TestWebhooksWithoutASecret(t *testing.T) {
	t.Parallel()
	i := newIngress(t, storetest.Open(t))
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
}

func succeeds(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
