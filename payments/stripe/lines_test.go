package stripe_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"purser/payments/stripe"
)

// manyLines is an account with one subscription, whose renewals have pending items in
// front of the plan.
type manyLines struct {
	invoices, lines int
	read            map[string]int // requests by path
}

func (a *manyLines) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	a.read[path]++
	var answer any
	switch parts := strings.Split(path, "/"); {
	case parts[0] == "subscriptions":
		answer = map[string]any{"id": "sub_1", "object": "subscription", "status": "active"}
	case len(parts) == 1:
		var all []any
		for n := range a.invoices {
			id := "in_" + strconv.Itoa(n)
			all = append(all, map[string]any{"id": id, "object": "invoice", "billing_reason": "subscription_cycle", "lines": a.page(0, 10)})
		}
		answer = map[string]any{"object": "list", "data": all}
	default:
		after, _ := strconv.Atoi(r.URL.Query().Get("starting_after"))
		answer = a.page(after, 100)
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, err
}

// page is the lines after a line, whose id is its number from 1.
func (a *manyLines) page(after, limit int) map[string]any {
	var all []any
	for n := after + 1; n <= min(a.lines, after+limit); n++ {
		line := map[string]any{"id": strconv.Itoa(n), "object": "line_item", "type": "invoiceitem", "proration": true}
		if n == a.lines {
			line = map[string]any{"id": strconv.Itoa(n), "object": "line_item", "type": "subscription", "price": map[string]any{"id": "price_1"}}
		}
		all = append(all, line)
	}
	return map[string]any{"object": "list", "data": all, "has_more": after+limit < a.lines}
}

func TestThePlanOfAnInvoiceIsFoundBehindOtherLines(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, invoices, lines int) (*manyLines, stripe.Subscription, error) {
		t.Helper()
		account := &manyLines{invoices, lines, map[string]int{}}
		s, err := stripe.New(stripe.Access{Key: "sk_test_x", Transport: account}).Subscription(t.Context(), "sub_1")
		return account, s, err
	}
	for _, lines := range []int{1, 10, 11, 111, 300} {
		t.Run("of "+strconv.Itoa(lines), func(t *testing.T) {
			account, s, err := read(t, 1, lines)
			if err != nil || len(s.Invoices) != 1 || s.Invoices[0].LacksPeriod() {
				t.Fatalf("got %+v, %v", s.Invoices, err)
			}
			if pages := account.read["invoices/in_0/lines"]; pages != (lines-10+99)/100 && lines > 10 || lines <= 10 && pages != 0 {
				t.Errorf("%d pages of lines were read", pages)
			}
		})
	}
	t.Run("but not behind more than an invoice can have", func(t *testing.T) {
		if _, _, err := read(t, 1, 301); !stripe.Is(err, stripe.Refused) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("for the latest twelve invoices", func(t *testing.T) {
		_, s, err := read(t, 13, 11)
		if err != nil || len(s.Invoices) != 13 || s.Invoices[11].LacksPeriod() || !s.Invoices[12].LacksPeriod() {
			t.Errorf("got %+v, %v", s.Invoices, err)
		}
	})
}
