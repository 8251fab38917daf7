package cashier_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"purser/ids"
	"purser/payments/cashier"
)

const (
	cardPays        = "4242424242424242"
	cardDeclined    = "4000000000000002"
	cardFailsLater  = "4000000000000341"
	cardAsksOnce    = "4000002500003155"
	cardAsksAlways  = "4000002760003184"
	cardDisputed    = "4000000000000259"
	cardInquired    = "4000000000001976"
	cardRefundFails = "4000000000005126"
	bankSucceeds    = "bank=succeeds"
	bankFails       = "bank=fails"
	noCard          = "action=start" // where nothing is to be paid
)

// pay pays at a hosted page, authenticating when asked.
func (r *harness) pay(page, card string) {
	r.Helper()
	if status, body := r.tryToPay(page, card, "complete"); status != http.StatusSeeOther {
		r.Fatalf("the page answers %d: %s", status, body)
	}
}

func (r *harness) tryToPay(page, card, authentication string) (status int, body string) {
	r.Helper()
	field, value := "card", card
	if name, end, isBank := strings.Cut(card, "="); isBank {
		field, value = name, end
	}
	status, to, body := r.submit(page, url.Values{field: {value}})
	if strings.Contains(to, "/authenticate/") {
		status, _, body = r.submit(to, url.Values{"result": {authentication}})
	}
	return status, body
}

// swapCard puts another card on file, in the portal.
func (r *harness) swapCard(card string) {
	r.Helper()
	page := must[string](r)(r.cashier.Portal(r.Context(), r.scope, "ada", "http://shop.test/account"))
	if status, _, body := r.submit(page, url.Values{"card": {card}}); status != http.StatusSeeOther && status != http.StatusOK {
		r.Fatalf("the portal answers %d: %s", status, body)
	}
}

// submit sends a form as a browser does, and does not follow.
func (r *harness) submit(page string, fields url.Values) (status int, location, body string) {
	r.Helper()
	return r.post(page, "application/x-www-form-urlencoded", fields.Encode())
}

// controlSandbox calls the sandbox's control API, such as for a refund.
func (r *harness) controlSandbox(path, body string) {
	r.Helper()
	status, _, answer := r.post(r.http.URL+"/sandbox/apps/"+r.app.ID.Format(ids.Application)+"/"+path, "application/json", body)
	if status != http.StatusOK {
		r.Fatalf("%s answers %d: %s", path, status, answer)
	}
}

func (r *harness) refund(page cashier.Page, cents int64) {
	r.Helper()
	r.controlSandbox("refunds", `{"checkoutId": "`+page.ID.Format(ids.Checkout)+`", "amountCents": `+strconv.FormatInt(cents, 10)+`}`)
}

func (r *harness) dispute(page cashier.Page, outcome string) {
	r.Helper()
	r.controlSandbox("disputes", `{"checkoutId": "`+page.ID.Format(ids.Checkout)+`", "outcome": "`+outcome+`"}`)
}

func (r *harness) post(page, kind, body string) (status int, location, answer string) {
	r.Helper()
	request := must[*http.Request](r)(http.NewRequestWithContext(r.Context(), http.MethodPost, page, strings.NewReader(body)))
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Origin", r.http.URL)
	stays := *r.http.Client()
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response := must[*http.Response](r)(stays.Do(request))
	defer response.Body.Close()
	text := must[[]byte](r)(io.ReadAll(response.Body))
	return response.StatusCode, response.Header.Get("Location"), string(text)
}

var errRouteDown = errors.New("503")

// provider calls the provider directly, as a person in its dashboard could.
func (r *harness) provider(path string, fields url.Values) map[string]any {
	r.Helper()
	return r.askProvider(http.MethodPost, path, fields)
}

func (r *harness) askProvider(method, path string, fields url.Values) map[string]any {
	r.Helper()
	request := must[*http.Request](r)(http.NewRequestWithContext(r.Context(), method, r.sandbox.StripeURL()+path, strings.NewReader(fields.Encode())))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+r.sandbox.Key(r.app.ID))
	response := must[*http.Response](r)(r.http.Client().Do(request))
	defer response.Body.Close()
	var answer map[string]any
	r.check(json.NewDecoder(response.Body).Decode(&answer))
	if response.StatusCode != http.StatusOK {
		r.Fatalf("the provider answers %d: %v", response.StatusCode, answer)
	}
	return answer
}
