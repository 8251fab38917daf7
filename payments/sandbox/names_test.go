package sandbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v79"
)

func TestReferencesOfCallersAreLimited(t *testing.T) {
	t.Parallel()
	r := start(t)
	product := ok[*stripe.Product](t)(r.api.Products.New(&stripe.ProductParams{Name: stripe.String("Plan")}))
	price := func(key string) error {
		_, err := r.api.Prices.New(&stripe.PriceParams{
			Product: stripe.String(product.ID), Currency: stripe.String("usd"), UnitAmount: stripe.Int64(100), LookupKey: stripe.String(key),
		})
		return err
	}
	checkout := func(reference string) error {
		params := topupParams(500)
		params.ClientReferenceID = stripe.String(reference)
		_, err := r.api.CheckoutSessions.New(params)
		return err
	}
	for name, create := range map[string]func(string) error{"lookup_key": price, "client_reference_id": checkout} {
		must(t, create(strings.Repeat("ü", 200)))
		for _, text := range []string{strings.Repeat("ü", 201), "a\x00b", "a\nb"} {
			err := create(text)
			wantRefusal(t, err, http.StatusBadRequest, "", "200 characters")
			if got := refused(t, err).Param; got != name {
				t.Errorf("refused for %s, want %s", got, name)
			}
		}
	}
}
