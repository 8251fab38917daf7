package cashier_test

import (
	"net/url"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

// lose deletes the checkouts, as a restore to an earlier moment does, and reads the
// provider's events again.
func (r *harness) lose() {
	r.Helper()
	for _, table := range []string{"provider_ops", "topups", "subscription_changes"} {
		storetest.Exec(r, storetest.URL(r), `DELETE FROM `+table+` WHERE app_id = $1`, r.app.ID.String())
	}
	r.dropWebhooks.Store(false)
	r.idle.Store(false)
	r.advance(time.Hour)
}

func (r *harness) alerts() (list []billing.Alert) {
	r.Helper()
	found, _, err := r.store.Payments(r.scope).Alerts(r.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	for _, alert := range found {
		list = append(list, alert.Alert)
	}
	return list
}

func TestASaleThatARestoreHasLostIsListed(t *testing.T) {
	t.Parallel()
	// paid pays a page. Nothing is read of it yet.
	paid := func(t *testing.T, open func(r *harness) (page string)) *harness {
		r := shop(t)
		r.dropWebhooks.Store(true)
		r.idle.Store(true)
		r.pay(open(r), cardPays)
		return r
	}
	// sold are the parameters of the session that was opened last.
	sold := func(r *harness) url.Values {
		sent := r.callsTo("POST /v1/checkout/sessions")
		return sent[len(sent)-1]
	}
	// object is the id of the account's only session or subscription.
	object := func(r *harness, list string) string {
		all := r.askProvider("GET", "/v1/"+list, nil)["data"].([]any)
		return all[0].(map[string]any)["id"].(string)
	}
	t.Run("a top-up", func(t *testing.T) {
		r := paid(t, func(r *harness) string { return r.topUp(1000).URL })
		r.lose()
		if got := r.alerts(); len(got) != 1 || got[0] != (billing.Alert{Kind: billing.SaleMissing, ObjectID: object(r, "checkout/sessions")}) {
			t.Errorf("alerts: %+v", got)
		}
	})
	t.Run("a subscription", func(t *testing.T) {
		r := paid(t, func(r *harness) string { return r.checkout("basic").URL })
		r.lose()
		if got := r.alerts(); len(got) != 1 || got[0] != (billing.Alert{Kind: billing.SaleMissing, ObjectID: object(r, "subscriptions")}) {
			t.Errorf("alerts: %+v", got)
		}
	})
	t.Run("but not one that was not paid", func(t *testing.T) {
		r := shop(t)
		r.topUp(1000)
		r.checkout("basic")
		r.lose()
		r.advance(24 * time.Hour)
		if got := r.alerts(); len(got) != 0 {
			t.Errorf("alerts: %+v", got)
		}
	})
	t.Run("but not those of others at the same account", func(t *testing.T) {
		for claim, change := range map[string]func(url.Values, string){
			"another application": func(fields url.Values, data string) {
				for _, of := range []string{"metadata", data + "[metadata]"} {
					fields.Set(of+"[app_id]", ids.New().Format(ids.Application))
				}
			},
			"another program": func(fields url.Values, data string) {
				for _, of := range []string{"metadata", data + "[metadata]"} {
					fields.Del(of + "[app_id]")
					fields.Del(of + "[checkout]")
				}
			},
		} {
			t.Run(claim, func(t *testing.T) {
				r := paid(t, func(r *harness) string {
					r.topUp(1000)
					fields := sold(r)
					change(fields, "payment_intent_data")
					return r.provider("/v1/checkout/sessions", fields)["url"].(string)
				})
				r.checkout("basic")
				fields := sold(r)
				change(fields, "subscription_data")
				fields.Del("metadata[app_id]") // a session of a subscription has none
				r.pay(r.provider("/v1/checkout/sessions", fields)["url"].(string), cardPays)
				r.lose()
				if got := r.alerts(); len(got) != 0 {
					t.Errorf("alerts: %+v", got)
				}
			})
		}
	})
}
