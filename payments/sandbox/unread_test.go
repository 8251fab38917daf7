package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v79"

	"purser/fault"
	"purser/ids"
)

// stuckClient reads nothing of a response until it is freed.
type stuckClient struct {
	*httptest.ResponseRecorder
	writing chan<- struct{}
	free    <-chan struct{}
}

func (c stuckClient) Write(part []byte) (int, error) {
	c.writing <- struct{}{}
	<-c.free
	return c.ResponseRecorder.Write(part)
}

func TestClientsThatReadNothingHoldNoPageSlot(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.topup(500)
	writing, free, served := make(chan struct{}), make(chan struct{}), make(chan int)
	const limit = 16
	for range limit {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, session.URL, nil)
		go func() {
			client := httptest.NewRecorder()
			r.server.Handler().ServeHTTP(stuckClient{client, writing, free}, request)
			served <- client.Code
		}()
		<-writing
	}
	if status, _ := r.visit(session.URL); status != http.StatusOK {
		t.Errorf("a page beside %d that are not read answers %d", limit, status)
	}
	close(free)
	for range limit {
		if status := <-served; status != http.StatusOK {
			t.Errorf("a page that is read late answers %d", status)
		}
	}
}

func TestResponsesAreCountedUntilTheyAreSent(t *testing.T) {
	t.Parallel()
	r := start(t)
	page := r.topup(500).URL
	open := map[int64]int{}
	full := false
	r.countReply = func(app ids.ID, size int64) (func(), error) {
		switch {
		case app != r.app:
			t.Errorf("a response of %s is counted", app)
		case full:
			return nil, fault.New(fault.Overloaded)
		}
		open[size]++
		return func() { open[size]-- }, nil
	}
	r.customer()
	_, body := r.visit(page)
	for size, held := range open {
		if held != 0 {
			t.Errorf("%d responses of %d bytes are still counted", held, size)
		}
	}
	if _, counted := open[int64(len(body))]; len(open) != 2 || !counted {
		t.Errorf("a page of %d bytes is counted as %v", len(body), open)
	}
	full = true
	_, err := r.api.Customers.New(&stripe.CustomerParams{})
	wantRefusal(t, err, http.StatusTooManyRequests, stripe.ErrorCodeRateLimit, "not read")
	if status, _ := r.visit(page); status != http.StatusServiceUnavailable {
		t.Errorf("a page answers %d", status)
	}
}

func TestTextsAreAsLongAsStripeAllows(t *testing.T) {
	t.Parallel()
	r := start(t)
	described := func(length int) error {
		_, err := r.api.Customers.New(&stripe.CustomerParams{Description: stripe.String(strings.Repeat("é", length))})
		return err
	}
	must(t, described(5000))
	wantRefusal(t, described(5001), http.StatusBadRequest, "", "5,000 characters")
}

func TestAFilterThatMatchesNothingReadsALimitedPart(t *testing.T) {
	t.Parallel()
	m := &meter{}
	r := startWith(t, "2026-03-10", m)
	first := ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{Description: stripe.String(strings.Repeat("x", 5000))}))
	c := r.stored()
	for _, row := range slices.Clone(c.Rows) {
		if row.Key != "customer/"+first.ID {
			continue
		}
		for i := range 3000 {
			c.Rows = append(c.Rows, copied(t, row, fmt.Sprintf("cus_%014d", i), int64(1_000_000+i), "ID"))
		}
	}
	r.restore(c)

	list := func(email string) error {
		params := &stripe.CustomerListParams{}
		params.Single = true
		if email != "" {
			params.Email = &email
		}
		found := r.api.Customers.List(params)
		for found.Next() {
		}
		return found.Err()
	}
	must(t, list(""))
	m.spent = cost{}
	wantRefusal(t, list("ann@example.test"), http.StatusBadRequest, "", "narrower filter")
	if m.spent.bytes < 8<<20 || m.spent.bytes > 10<<20 {
		t.Errorf("it reads %d bytes", m.spent.bytes)
	}
}
