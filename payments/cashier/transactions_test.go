package cashier_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"purser/ids"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/storetest"
)

// Every transaction takes one connection from the pool.
func TestAWebhookCostsAtMostTenTransactions(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	connection, secret := r.webhookSecret()
	own := must[*store.Store](r)(store.Open(t.Context(), storetest.URL(t), store.Options{}))
	t.Cleanup(own.Close)
	node := r.newCashier(func(o *cashier.Options) {
		o.Store = own
		o.Sandbox = func(ctx context.Context, app ids.ID, webhookURL string, types []string) (cashier.Sandbox, error) {
			c, err := r.sandbox.Connect(ctx, app, webhookURL, types)
			return cashier.Sandbox(c), err
		}
	})
	node.WithoutPeriodicJobs()
	node.SetLease(5 * time.Minute) // each renewal of a lease would be one more
	subscription := r.subscription().ProviderID
	invoice := r.askProvider("GET", "/v1/subscriptions/"+subscription, nil)["latest_invoice"].(string)
	receive := func(id, kind, object, objectKind string) int64 {
		t.Helper()
		body := []byte(`{"id":"` + id + `","type":"` + kind + `","livemode":false,"data":{"object":{"id":"` + object + `","object":"` + objectKind + `"}}}`)
		before := own.PoolStats().Acquires
		r.check(node.CheckConnection(t.Context(), connection))
		r.check(node.ReceiveWebhook(t.Context(), connection, signed(body, time.Now(), secret), body))
		r.check(node.DrainAll(t.Context(), r.app.ID))
		return own.PoolStats().Acquires - before
	}
	receive("evt_first", "customer.subscription.updated", subscription, "subscription") // fills the node's caches
	for kind, object := range map[string][2]string{
		"customer.subscription.updated": {subscription, "subscription"},
		"invoice.paid":                  {invoice, "invoice"},
	} {
		// The database's clock is measured now and then, which takes a connection too.
		spent := int64(math.MaxInt64)
		for n := range 3 {
			spent = min(spent, receive(fmt.Sprint("evt_", n, kind), kind, object[0], object[1]))
		}
		spent-- // DrainAll looks up the application, which a notified node does not
		if spent > 10 || spent < 5 {
			t.Errorf("%s costs %d transactions", kind, spent)
		}
	}
	r.wantNothingFailing()
}
