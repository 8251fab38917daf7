package sandbox_test

import (
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v79"
)

func TestCatalog(t *testing.T) {
	t.Parallel()

	t.Run("makes a product under the caller's own id, once", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		params := &stripe.ProductParams{ID: stripe.String("psr_plan1"), Name: stripe.String("Pro"), Metadata: map[string]string{"plan_key": "pro"}}
		made := ok[*stripe.Product](t)(r.api.Products.New(params))
		if made.ID != "psr_plan1" || !made.Active || made.Metadata["plan_key"] != "pro" || made.Livemode {
			t.Errorf("made %+v", made)
		}
		_, err := r.api.Products.New(params)
		wantRefusal(t, err, http.StatusBadRequest, "resource_already_exists", "already exists")
		changed := ok[*stripe.Product](t)(r.api.Products.Update("psr_plan1", &stripe.ProductParams{Name: stripe.String("Pro 2"), Active: stripe.Bool(false)}))
		if changed.Name != "Pro 2" || changed.Active || changed.Metadata["plan_key"] != "pro" {
			t.Errorf("changed to %+v", changed)
		}
	})

	t.Run("finds a price by its lookup key, which can move on", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		first := r.price(2900, func(p *stripe.PriceParams) { p.LookupKey = stripe.String("psr:1:p1") })
		if first.Recurring.Interval != "month" || first.UnitAmount != 2900 || first.Type != "recurring" {
			t.Errorf("made %+v", first)
		}
		again := &stripe.PriceParams{Product: stripe.String(first.Product.ID), Currency: stripe.String("usd"), UnitAmount: stripe.Int64(1), LookupKey: stripe.String("psr:1:p1")}
		_, err := r.api.Prices.New(again)
		wantRefusal(t, err, http.StatusBadRequest, "", "already uses that lookup key")
		again.TransferLookupKey = stripe.Bool(true)
		second := ok[*stripe.Price](t)(r.api.Prices.New(again))
		list := r.api.Prices.List(&stripe.PriceListParams{LookupKeys: stripe.StringSlice([]string{"psr:1:p1"})})
		if !list.Next() || list.Price().ID != second.ID || list.Next() {
			t.Errorf("found %+v, %v", list.Price(), list.Err())
		}
	})

	t.Run("never changes a price's amount", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		price := r.price(2900)
		params := &stripe.PriceParams{}
		params.AddExtra("unit_amount", "1")
		_, err := r.api.Prices.Update(price.ID, params)
		wantRefusal(t, err, http.StatusBadRequest, "parameter_unknown", "unit_amount")
		archived := ok[*stripe.Price](t)(r.api.Prices.Update(price.ID, &stripe.PriceParams{Active: stripe.Bool(false)}))
		if archived.Active || archived.UnitAmount != 2900 {
			t.Errorf("archived %+v", archived)
		}
	})

	t.Run("keeps a product's default price from being archived", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		price := r.price(2900)
		ok[*stripe.Product](t)(r.api.Products.Update(price.Product.ID, &stripe.ProductParams{DefaultPrice: stripe.String(price.ID)}))
		_, err := r.api.Prices.Update(price.ID, &stripe.PriceParams{Active: stripe.Bool(false)})
		wantRefusal(t, err, http.StatusBadRequest, "", "default price")
	})

	t.Run("takes amounts from nothing to eight digits", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		product := r.price(0).Product
		for amount, fits := range map[int64]bool{0: true, 99_999_999: true, 100_000_000: false, -1: false} {
			_, err := r.api.Prices.New(&stripe.PriceParams{Product: stripe.String(product.ID), Currency: stripe.String("usd"), UnitAmount: stripe.Int64(amount)})
			if (err == nil) != fits {
				t.Errorf("%d: %v", amount, err)
			}
		}
		_, err := r.api.Prices.New(&stripe.PriceParams{Product: stripe.String(product.ID), UnitAmount: stripe.Int64(1)})
		wantRefusal(t, err, http.StatusBadRequest, "parameter_missing", "currency")
	})

	t.Run("takes the currencies that Stripe takes, and names them", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		product := r.price(0).Product
		for currency, fits := range map[string]bool{"usd": true, "jpy": true, "zmw": true, "xts": false, "aaa": false} {
			_, err := r.api.Prices.New(&stripe.PriceParams{Product: stripe.String(product.ID), Currency: stripe.String(currency), UnitAmount: stripe.Int64(100)})
			if fits && err != nil {
				t.Errorf("%s: %v", currency, err)
			}
			if !fits {
				wantRefusal(t, err, http.StatusBadRequest, "", "Invalid currency: "+currency+". Stripe currently supports these currencies: usd, aed,")
			}
		}
	})

	t.Run("finds customers by their metadata", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		for _, hash := range []string{"a", "b", "a"} {
			ok[*stripe.Customer](t)(r.api.Customers.New(&stripe.CustomerParams{Email: stripe.String(hash + "@example.com"), Metadata: map[string]string{"identity_hash": hash}}))
		}
		search := func(query string) (found int) {
			iter := r.api.Customers.Search(&stripe.CustomerSearchParams{SearchParams: stripe.SearchParams{Query: query}})
			for iter.Next() {
				found++
			}
			must(t, iter.Err())
			return found
		}
		for query, want := range map[string]int{
			`metadata['identity_hash']:'a'`:                             2,
			`metadata["identity_hash"]:"b" AND email:"b@example.com"`:   1,
			`metadata['identity_hash']:'a' AND email:'nobody@test.com'`: 0,
		} {
			if found := search(query); found != want {
				t.Errorf("%s finds %d, want %d", query, found, want)
			}
		}
		nothing := r.api.Customers.Search(&stripe.CustomerSearchParams{SearchParams: stripe.SearchParams{Query: "everything"}})
		if nothing.Next() {
			t.Error("a query that is none finds something")
		}
		wantRefusal(t, nothing.Err(), http.StatusBadRequest, "", "parse")
	})

	t.Run("shows a deleted customer as deleted, and ends what it paid for", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		r.events()
		ok[*stripe.Customer](t)(r.api.Customers.Del(s.Customer.ID, nil))
		r.wantEvents("subscription.deleted", "deleted")
		if gone := ok[*stripe.Customer](t)(r.api.Customers.Get(s.Customer.ID, nil)); !gone.Deleted {
			t.Error("it still looks alive")
		}
		if got := r.subscription(s.ID).Status; got != "canceled" {
			t.Errorf("its subscription is %s", got)
		}
	})
}
