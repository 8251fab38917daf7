package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/ids"
)

// control sends a request to the control surface and gives its answer.
func (r *harness) control(path, body string, want int) map[string]any {
	r.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	return r.controlAs(controlKey, r.app, method, path, body, want)
}

func (r *harness) controlAs(key string, app ids.ID, method, path, body string, want int) map[string]any {
	r.Helper()
	address := r.http.URL + "/sandbox/apps/" + app.Format(ids.Application) + "/" + path
	request, err := http.NewRequestWithContext(r.Context(), method, address, strings.NewReader(body))
	must(r, err)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	status, _, text := r.do(request)
	if status != want {
		r.Fatalf("%s answers %d, want %d: %s", path, status, want, text)
	}
	var answer map[string]any
	must(r, json.Unmarshal([]byte(text), &answer))
	return answer
}

func TestControlClock(t *testing.T) {
	t.Parallel()

	t.Run("answers when everything on the way has been delivered and applied", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.subscribe(r.price(2900), cardPays)
		r.events()
		applied := 0
		r.settle = func(context.Context, ids.ID) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			applied = len(r.received)
			return nil
		}
		to := r.clock().Add(32 * day).UnixMilli()
		answer := r.control("clock", fmt.Sprintf(`{"advanceTo": %d}`, to), http.StatusOK)
		if got := int64(answer["now"].(float64)); got != to {
			t.Errorf("now is %d, want %d", got, to)
		}
		if applied == 0 {
			t.Error("nothing was applied")
		}
		r.wantEvents("subscription.updated", "invoice.paid")
		r.passRealTime(time.Minute)
		if got := int64(r.control("clock", "", http.StatusOK)["now"].(float64)); got != to+time.Minute.Milliseconds() {
			t.Errorf("a minute later it is %d", got-to)
		}
		if offset := r.documents.Kept(r.app).ClockOffset; offset != (32 * day).Milliseconds() {
			t.Errorf("the offset is kept as %d", offset)
		}
	})

	t.Run("never goes back, and at most five years ahead", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		now := r.clock()
		const limit = 5 * 366 * day
		for _, to := range []time.Duration{-10*time.Minute - time.Millisecond, limit + time.Millisecond} {
			r.control("clock", fmt.Sprintf(`{"advanceTo": %d}`, now.Add(to).UnixMilli()), http.StatusBadRequest)
		}
		// The same request again, when its answer was lost.
		r.control("clock", fmt.Sprintf(`{"advanceTo": %d}`, now.Add(-10*time.Minute).UnixMilli()), http.StatusOK)
		if got := r.clock(); !got.Equal(now) {
			t.Errorf("it moved to %s", got)
		}
		r.control("clock", fmt.Sprintf(`{"advanceTo": %d}`, now.Add(limit).UnixMilli()), http.StatusOK)
	})

	t.Run("says that webhooks could not be applied, and goes on when asked again", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.subscribe(r.price(2900), cardPays)
		r.events()
		to := r.clock().Add(32 * day).UnixMilli()
		broken := true
		r.settle = func(context.Context, ids.ID) error {
			if broken {
				return errors.New("the database is down")
			}
			return nil
		}
		r.control("clock", fmt.Sprintf(`{"advanceTo": %d}`, to), http.StatusInternalServerError)
		broken = false
		r.control("clock", fmt.Sprintf(`{"advanceTo": %d}`, to), http.StatusOK)
		r.wantEvents("subscription.updated", "invoice.paid")
	})
}

// The server gives its requests seconds, and years of webhooks take longer.
func TestAnAdvanceHasTimeOfItsOwn(t *testing.T) {
	t.Parallel()
	r := start(t)
	var left time.Duration
	r.settle = func(ctx context.Context, _ ids.ID) error {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body := fmt.Sprintf(`{"advanceTo": %d}`, r.clock().Add(day).UnixMilli())
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/sandbox/apps/"+r.app.Format(ids.Application)+"/clock", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+controlKey)
	answer := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusOK || left < 2*time.Minute {
		t.Errorf("%d with %v left: %s", answer.Code, left, answer.Body)
	}
}

func TestControlRefunds(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.topup(3000)
	r.control("refunds", `{"checkoutId": "chk_1", "amountCents": 1000}`, http.StatusBadRequest)
	r.pay(session.URL, cardPays)
	r.events()
	for _, reference := range []string{session.ID, "chk_1"} {
		answer := r.control("refunds", `{"checkoutId": "`+reference+`", "amountCents": 500}`, http.StatusOK)
		if answer["status"] != "succeeded" || answer["amountCents"].(float64) != 500 {
			t.Errorf("answers %v", answer)
		}
		r.wantEvents("charge.refunded", "refund.created")
	}
	if rest := r.control("refunds", `{"checkoutId": "chk_1"}`, http.StatusOK); rest["amountCents"].(float64) != 2000 {
		t.Errorf("without an amount it refunds %v", rest["amountCents"])
	}
	r.control("refunds", `{"checkoutId": "nothing", "amountCents": 1}`, http.StatusNotFound)
}

func TestControlAccess(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, path := range []string{"refunds", "disputes", "webhooks", "clock"} {
		r.controlAs("psr_test_other", r.app, http.MethodPost, path, `{}`, http.StatusUnauthorized)
		r.controlAs(controlKey, ids.New(), http.MethodPost, path, `{}`, http.StatusNotFound)
		for _, body := range []string{`{"unknown": 1}`, `[]`, `{"advanceTo": "1"}`, `{`, `{"hold": true, "hold": false}`} {
			answer := r.control(path, body, http.StatusBadRequest)
			if answer["error"] != "invalid_request" || answer["message"] == "" {
				t.Errorf("%s says %v to %s", path, answer, body)
			}
		}
	}
	large := `{"checkoutId": "` + strings.Repeat("a", 16<<10) + `"}`
	r.control("refunds", large, http.StatusRequestEntityTooLarge)
	for _, want := range []string{"level=WARN msg=\"sandbox access refused\"", "route=\"POST /sandbox/apps/{app}/refunds\"", "code=not_found", "caller=" + r.app.Format(ids.Application)} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, r.log.String())
		}
	}
}

func TestControlWebhooks(t *testing.T) {
	t.Parallel()

	t.Run("holds deliveries and sends them in order when released", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		price := r.price(2900)
		r.events()
		if state := r.control("webhooks", `{"hold": true}`, http.StatusOK); state["held"] != true {
			t.Errorf("it is %v", state)
		}
		r.subscribe(price, cardPays)
		r.wantEvents()
		state := r.control("webhooks", `{"hold": false}`, http.StatusOK)
		if state["held"] != false || state["waiting"].(float64) != 0 {
			t.Errorf("it is %v", state)
		}
		r.wantEvents("subscription.created", "subscription.updated", "invoice.paid", "checkout.session.completed")
	})

	t.Run("delivers the newest again, with the same ids", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.subscribe(r.price(2900), cardPays)
		first := r.eventIDs()
		r.control("webhooks", `{"replay": 3}`, http.StatusOK)
		if again := r.eventIDs(); !slices.Equal(again, first[len(first)-3:]) {
			t.Errorf("again %v, want the last of %v", again, first)
		}
		for _, n := range []string{"0", "1001"} {
			r.control("webhooks", `{"replay": `+n+`}`, http.StatusBadRequest)
		}
	})

	t.Run("delivers in another order, the same for the same seed", func(t *testing.T) {
		t.Parallel()
		order := func(seed string) []string {
			r := start(t)
			price := r.price(2900)
			r.events()
			r.control("webhooks", `{"hold": true}`, http.StatusOK)
			r.subscribe(price, cardPays)
			r.control("webhooks", `{"shuffle": `+seed+`, "hold": false}`, http.StatusOK)
			return r.events()
		}
		plain := []string{"subscription.created", "subscription.updated", "invoice.paid", "checkout.session.completed"}
		one, two := order("1"), order("1")
		if !slices.Equal(one, two) {
			t.Errorf("%v and %v", one, two)
		}
		if slices.Equal(one, plain) && slices.Equal(order("2"), plain) {
			t.Error("nothing is shuffled")
		}
		if slices.Sort(one); !slices.Equal(one, slices.Sorted(slices.Values(plain))) {
			t.Errorf("something is lost: %v", one)
		}
	})
}

// eventIDs is like events, with the ids of everything.
func (r *harness) eventIDs() []string {
	r.Helper()
	must(r, r.server.Flush(r.Context(), r.app))
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, event := range r.received {
		all = append(all, event.ID)
	}
	r.received = nil
	return all
}
