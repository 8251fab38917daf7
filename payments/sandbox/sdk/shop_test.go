package sdk

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/payments/sandbox"
	"purser/payments/sandbox/sandboxtest"
)

// shop is a sandbox at the root of an address of its own, and a program that receives
// its webhooks.
type shop struct {
	*testing.T
	app      ids.ID
	server   *sandbox.Server
	api      *httptest.Server // Stripe's API, without a path before /v1
	key      string
	receiver *httptest.Server
	webhooks chan webhook
}

// webhook is a delivery as a program gets it.
type webhook struct {
	signature string
	body      []byte
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, app: ids.New(), webhooks: make(chan webhook, 1000)}
	var pages http.Handler
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pages.ServeHTTP(w, r) }))
	t.Cleanup(site.Close)
	s.server = sandbox.New(sandbox.Options{
		Accounts: &sandboxtest.Memory{}, BaseURL: site.URL, Secret: []byte("thirty-two bytes of test secret!"),
		Admits:    func(_ context.Context, app ids.ID) (bool, error) { return app == s.app, nil },
		Authorize: func(*http.Request) (ids.ID, error) { return s.app, nil },
		Deliver:   func(context.Context, string, http.Header, []byte) error { return nil },
		Drain:     func(context.Context, ids.ID) error { return nil }, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	pages = s.server.Handler()
	s.api = httptest.NewServer(s.server.StripeHandler())
	t.Cleanup(s.api.Close)
	s.key = s.server.Key(s.app)
	s.receiver = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.webhooks <- webhook{r.Header.Get("Stripe-Signature"), body}
	}))
	t.Cleanup(s.receiver.Close)
	return s
}

// pay pays at a hosted page, as a person would.
func (s *shop) pay(page string) {
	s.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, page, strings.NewReader(url.Values{"card": {"4242424242424242"}}.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		s.Fatalf("the page answers %s", answer.Status)
	}
}
