package sandbox_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"

	"purser/ids"
	"purser/payments/sandbox"
)

// request sends a request to the API without the client.
func (r *harness) request(method, path string, header http.Header, form url.Values) (*http.Response, string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.server.StripeURL()+path, strings.NewReader(form.Encode()))
	must(r, err)
	request.Header = header
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := r.http.Client().Do(request)
	must(r, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(r, err)
	return response, string(body)
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.server.Key(r.app)

	t.Run("gives keys of three parts", func(t *testing.T) {
		if strings.Count(key, "_") != 2 || !strings.HasPrefix(key, "sk_test_") {
			t.Errorf("the key is %s", key)
		}
	})

	t.Run("takes the key as a bearer token and as a name", func(t *testing.T) {
		for _, value := range []string{"Bearer " + key, "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))} {
			if response, body := r.request(http.MethodGet, "/v1/account", http.Header{"Authorization": {value}}, nil); response.StatusCode != http.StatusOK {
				t.Errorf("%d %s", response.StatusCode, body)
			}
		}
	})

	t.Run("refuses every other key, and repeats none", func(t *testing.T) {
		other := ids.New()
		forged := r.server.Key(other)[:len("sk_test_")+26] + key[len(key)-32:]
		for name, wrong := range map[string]string{
			"none": "", "a short one": key[:len(key)-1], "a changed one": key[:len(key)-1] + "x", "another proof": forged,
			"one that is not admitted": r.server.Key(other), "a live one": "sk_live_" + key[8:],
		} {
			response, body := r.request(http.MethodGet, "/v1/account", http.Header{"Authorization": {"Bearer " + wrong}}, nil)
			if response.StatusCode != http.StatusUnauthorized || wrong != "" && strings.Contains(body, wrong) {
				t.Errorf("%s: %d %s", name, response.StatusCode, body)
			}
		}
	})

	t.Run("keeps two applications apart", func(t *testing.T) {
		two := start(t)
		mine := r.customer()
		if _, err := two.api.Customers.Get(mine.ID, nil); refused(t, err).HTTPStatusCode != http.StatusNotFound {
			t.Errorf("the other application gets %v", err)
		}
	})
}

func TestWire(t *testing.T) {
	t.Parallel()
	r := start(t)
	bearer := func() http.Header { return http.Header{"Authorization": {"Bearer " + r.server.Key(r.app)}} }

	t.Run("names every request, and the version", func(t *testing.T) {
		response, _ := r.request(http.MethodGet, "/v1/account", bearer(), nil)
		if !strings.HasPrefix(response.Header.Get("Request-Id"), "req_") || response.Header.Get("Stripe-Version") != "2024-06-20" {
			t.Errorf("headers %v", response.Header)
		}
	})

	t.Run("answers other versions in its own, and says so", func(t *testing.T) {
		for _, version := range []string{"2025-03-31.basil", "2026-09-30.endive", "\xff"} {
			header := bearer()
			header.Set("Stripe-Version", version)
			response, body := r.request(http.MethodGet, "/v1/account", header, nil)
			if response.StatusCode != http.StatusOK || response.Header.Get("Stripe-Version") != "2024-06-20" {
				t.Errorf("%q answers %d in %q: %s", version, response.StatusCode, response.Header.Get("Stripe-Version"), body)
			}
		}
	})

	t.Run("is also served at the root of an address of its own", func(t *testing.T) {
		own := httptest.NewServer(r.server.StripeHandler())
		t.Cleanup(own.Close)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, own.URL+"/v1/customers/"+r.customer().ID, nil)
		must(t, err)
		request.Header = bearer()
		if status, _, body := r.do(request); status != http.StatusOK || !strings.Contains(body, `"object":"customer"`) {
			t.Errorf("%d %s", status, body)
		}
		request.URL.Path = "/v1/nothing"
		if status, _, body := r.do(request); status != http.StatusNotFound || !strings.Contains(body, "GET: /v1/nothing") {
			t.Errorf("an unknown path answers %d %s", status, body)
		}
		// Nothing else of the sandbox is there.
		request.URL.Path = "/../apps/" + r.app.Format(ids.Application) + "/clock"
		if status, _, _ := r.do(request); status == http.StatusOK {
			t.Errorf("the control surface answers there too")
		}
	})

	t.Run("refuses unknown parameters by name, at every depth", func(t *testing.T) {
		for field, named := range map[string]string{"colour": "colour", "metadata[a][b]": "metadata[a]", "invoice_settings[custom]": "invoice_settings[custom]"} {
			response, body := r.request(http.MethodPost, "/v1/customers", bearer(), url.Values{field: {"x"}})
			if response.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"`+named+`"`) {
				t.Errorf("%s: %d %s", field, response.StatusCode, body)
			}
		}
	})

	t.Run("refuses values of another kind", func(t *testing.T) {
		product := r.price(1).Product.ID
		for field, value := range map[string]string{"unit_amount": "1.5", "active": "yes", "recurring[interval]": "fortnight", "recurring": "month"} {
			form := url.Values{"product": {product}, "currency": {"usd"}, "unit_amount": {"100"}}
			form.Set(field, value)
			if response, body := r.request(http.MethodPost, "/v1/prices", bearer(), form); response.StatusCode != http.StatusBadRequest {
				t.Errorf("%s=%s: %d %s", field, value, response.StatusCode, body)
			}
		}
	})

	t.Run("answers an unknown path as Stripe does", func(t *testing.T) {
		response, body := r.request(http.MethodGet, "/v1/nothing", bearer(), nil)
		if response.StatusCode != http.StatusNotFound || !strings.Contains(body, "Unrecognized request URL (GET: /v1/nothing)") {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})

	t.Run("takes bodies up to its limit", func(t *testing.T) {
		// A face takes twelve bytes of a form.
		filled := func(bytes int) url.Values {
			faces, rest := bytes/24, bytes-bytes/24*24
			text := strings.Repeat("😀", faces)
			return url.Values{"name": {text}, "description": {text + strings.Repeat("a", rest)}}
		}
		limit := 64<<10 - len("name=&description=")
		if response, _ := r.request(http.MethodPost, "/v1/customers", bearer(), filled(limit)); response.StatusCode != http.StatusOK {
			t.Errorf("at the limit: %d", response.StatusCode)
		}
		if response, _ := r.request(http.MethodPost, "/v1/customers", bearer(), filled(limit+1)); response.StatusCode != http.StatusBadRequest {
			t.Errorf("past the limit: %d", response.StatusCode)
		}
	})

	t.Run("takes nothing but forms", func(t *testing.T) {
		header := bearer()
		header.Set("Content-Type", "application/json")
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.StripeURL()+"/v1/customers", strings.NewReader(`{"name":"a"}`))
		must(t, err)
		request.Header = header
		if status, _, _ := r.do(request); status != http.StatusBadRequest {
			t.Errorf("%d", status)
		}
	})
}

func TestLists(t *testing.T) {
	t.Parallel()
	r := start(t)
	var made []string
	for range 7 {
		made = append([]string{r.customer().ID}, made...)
	}
	product := r.price(1).Product.ID
	var prices []string
	for range 7 {
		price := ok[*stripe.Price](t)(r.api.Prices.New(&stripe.PriceParams{Product: stripe.String(product), Currency: stripe.String("usd"), UnitAmount: stripe.Int64(100)}))
		prices = append([]string{price.ID}, prices...)
	}
	all := func(params *stripe.PriceListParams) (found []string) {
		list := r.api.Prices.List(params)
		for list.Next() {
			found = append(found, list.Price().ID)
		}
		must(t, list.Err())
		return found
	}

	t.Run("give everything once, newest first, page by page", func(t *testing.T) {
		params := &stripe.PriceListParams{Product: stripe.String(product), Type: stripe.String("one_time")}
		params.Limit = stripe.Int64(3)
		if got := all(params); !slices.Equal(got, prices) {
			t.Errorf("got %v, want %v", got, prices)
		}
	})

	t.Run("go backwards", func(t *testing.T) {
		params := &stripe.PriceListParams{Product: stripe.String(product), Type: stripe.String("one_time")}
		params.Limit, params.EndingBefore, params.Single = stripe.Int64(2), stripe.String(prices[4]), true
		got := all(params)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(prices[2:4]))
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})

	t.Run("filter by time", func(t *testing.T) {
		params := &stripe.PriceListParams{Product: stripe.String(product), CreatedRange: &stripe.RangeQueryParams{GreaterThan: r.clock().Unix()}}
		if got := all(params); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		params.CreatedRange = &stripe.RangeQueryParams{GreaterThanOrEqual: r.clock().Unix()}
		if got := all(params); len(got) != 8 {
			t.Errorf("got %d", len(got))
		}
	})

	t.Run("have pages of 1 to 100", func(t *testing.T) {
		for limit, fits := range map[int64]bool{0: true, 1: true, 100: true, 101: false} {
			params := &stripe.EventListParams{}
			params.Limit, params.Single = stripe.Int64(limit), true
			list := r.api.Events.List(params)
			for list.Next() {
				continue
			}
			// The client leaves a limit of zero out.
			if (list.Err() == nil) != (fits && limit != 0) {
				t.Errorf("%d: %v", limit, list.Err())
			}
		}
	})

	t.Run("refuse a cursor that names nothing", func(t *testing.T) {
		params := &stripe.PriceListParams{}
		params.StartingAfter = stripe.String("price_none")
		list := r.api.Prices.List(params)
		if list.Next() {
			t.Error("something is found")
		}
		wantRefusal(t, list.Err(), http.StatusBadRequest, "resource_missing", "price_none")
	})

	t.Run("of events know what was delivered", func(t *testing.T) {
		count := func(delivered bool) (n int) {
			list := r.api.Events.List(&stripe.EventListParams{DeliverySuccess: stripe.Bool(delivered), Types: stripe.StringSlice([]string{"customer.created"})})
			for list.Next() {
				n++
			}
			must(t, list.Err())
			return n
		}
		if got := count(false); got != len(made) {
			t.Errorf("%d wait", got)
		}
		r.events()
		if got := count(true); got != len(made) {
			t.Errorf("%d are delivered", got)
		}
	})
}

func TestExpansion(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.subscribe(r.price(2900), cardPays)

	t.Run("goes into lists", func(t *testing.T) {
		params := &stripe.SubscriptionListParams{Customer: stripe.String(s.Customer.ID)}
		params.AddExpand("data.latest_invoice")
		params.AddExpand("data.items.data.price.product")
		list := r.api.Subscriptions.List(params)
		if !list.Next() {
			t.Fatal(list.Err())
		}
		if got := list.Subscription(); got.LatestInvoice.AmountPaid != 2900 || got.Items.Data[0].Price.Product.Name != "Plan" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("gives an id where it is not asked for", func(t *testing.T) {
		plain := ok[*stripe.Subscription](t)(r.api.Subscriptions.Get(s.ID, nil))
		if plain.LatestInvoice.ID != s.LatestInvoice.ID || plain.LatestInvoice.Status != "" {
			t.Errorf("got %+v", plain.LatestInvoice)
		}
	})

	t.Run("refuses what holds no object", func(t *testing.T) {
		for _, path := range []string{"status", "nothing", "latest_invoice.number", "a.b.c.d.e.f"} {
			params := &stripe.SubscriptionParams{}
			params.AddExpand(path)
			_, err := r.api.Subscriptions.Get(s.ID, params)
			wantRefusal(t, err, http.StatusBadRequest, "", "expand")
		}
	})

	t.Run("includes the refunds of a charge", func(t *testing.T) {
		charge := s.LatestInvoice.PaymentIntent.LatestCharge.ID
		ok[*stripe.Refund](t)(r.api.Refunds.New(&stripe.RefundParams{Charge: stripe.String(charge), Amount: stripe.Int64(100)}))
		params := &stripe.ChargeParams{}
		params.AddExpand("refunds")
		if got := ok[*stripe.Charge](t)(r.api.Charges.Get(charge, params)); got.Refunds.Data[0].Amount != 100 {
			t.Errorf("got %+v", got.Refunds)
		}
	})
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	keyed := func(name string) *stripe.CustomerParams {
		params := &stripe.CustomerParams{Name: stripe.String(name)}
		params.SetIdempotencyKey("key-1")
		return params
	}

	t.Run("answers the same key with the same answer", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		first := ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Ada")))
		second := ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Ada")))
		if first.ID != second.ID || second.LastResponse.Header.Get("Idempotent-Replayed") != "true" || first.LastResponse.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s and %s", first.ID, second.ID)
		}
		if second.LastResponse.Header.Get("Idempotency-Key") != "key-1" {
			t.Error("the key is not repeated")
		}
	})

	t.Run("refuses the key for another request", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Ada")))
		_, err := r.api.Customers.New(keyed("Bob"))
		if got := refused(t, err); got.Type != stripe.ErrorTypeIdempotency || got.HTTPStatusCode != http.StatusBadRequest {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("forgets a key after a day", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		first := ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Ada")))
		r.advance(24 * time.Hour)
		if again := ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Ada"))); again.ID != first.ID {
			t.Error("after a day it is another")
		}
		r.advance(time.Second)
		if later := ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Bob"))); later.ID == first.ID {
			t.Error("it is still held")
		}
	})

	t.Run("keeps no answer of a request that was not carried out", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		wrong := &stripe.ProductParams{Active: stripe.Bool(true)}
		wrong.SetIdempotencyKey("key-1")
		_, err := r.api.Products.New(wrong)
		wantRefusal(t, err, http.StatusBadRequest, "parameter_missing", "name")
		right := &stripe.ProductParams{Name: stripe.String("Pro")}
		right.SetIdempotencyKey("key-1")
		ok[*stripe.Product](t)(r.api.Products.New(right))
	})

	t.Run("makes one object of many requests at once", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		var mu sync.Mutex
		made, busy := map[string]bool{}, 0
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				customer, err := r.api.Customers.New(keyed("Ada"))
				mu.Lock()
				defer mu.Unlock()
				var refusal *stripe.Error
				switch {
				case err == nil:
					made[customer.ID] = true
				case errors.As(err, &refusal) && refusal.Code == "idempotency_key_in_use" && refusal.HTTPStatusCode == http.StatusConflict:
					busy++
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(made) != 1 {
			t.Errorf("%d were made, %d were told to wait", len(made), busy)
		}
	})

	t.Run("says when the key is in use", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.events()
		r.server.Inject(r.app, sandbox.Fault{Kind: sandbox.DeliverFirst})
		asked := false
		r.onReceive = func() {
			// The first request has done its work and waits for this delivery.
			_, err := r.api.Customers.New(keyed("Ada"))
			wantRefusal(t, err, http.StatusConflict, "idempotency_key_in_use", "in-progress")
			asked = true
		}
		ok[*stripe.Customer](t)(r.api.Customers.New(keyed("Ada")))
		if !asked {
			t.Error("nothing was delivered before the answer")
		}
	})
}
