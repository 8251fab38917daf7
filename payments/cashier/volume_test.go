package cashier_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/storetest"
)

// fullSize has the large tests run at their full size, which takes minutes. Else
// they do a part that fits into everybody's day.
var fullSize = os.Getenv("PURSER_FULL") != ""

// sized is a number at full size, and else a twentieth of it.
func sized(number int) int {
	if fullSize {
		return number
	}
	return number / 20
}

const (
	paymentsOfAll = 500 // top-ups that are paid
	paymentsEach  = 25  // of one application
	deliveries    = 10  // of each webhook
	withheld      = 3   // payments of one application whose webhooks never come
	forgeries     = 1000
)

func TestEveryPaymentCountsOnceHoweverOftenItIsReported(t *testing.T) {
	t.Parallel()
	for n := range sized(paymentsOfAll) / paymentsEach {
		t.Run(fmt.Sprint("application ", n), func(t *testing.T) {
			r := shop(t)
			connection, secret := r.webhookSecret()
			webhooks := r.payWithoutWebhooks(paymentsEach)
			var all [][]byte
			for range deliveries {
				all = append(all, webhooks...)
			}
			random := rand.New(rand.NewPCG(uint64(n), 16))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

			const nodes = 3
			var working sync.WaitGroup
			for i := range nodes {
				node := r.newCashier()
				working.Go(func() {
					for j := i; j < len(all); j += nodes {
						if err := node.ReceiveWebhook(t.Context(), connection, signed(all[j], time.Now(), secret), all[j]); err != nil {
							t.Error(err)
						}
						if j%(len(all)/2) < nodes {
							if err := node.DrainAll(t.Context(), r.app.ID); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			working.Wait()
			r.check(r.cashier.DrainAll(t.Context(), r.app.ID))
			r.wantPayments(paymentsEach)

			t.Run("also when the webhooks are lost", func(t *testing.T) {
				r.payWithoutWebhooks(withheld)
				r.wantPayments(paymentsEach)
				r.idle.Store(false)
				r.advance(6 * time.Minute)
				r.wantPayments(paymentsEach + withheld)
			})
		})
	}
}

// payWithoutWebhooks pays top-ups whose webhooks are dropped, and returns those
// webhooks.
func (r *harness) payWithoutWebhooks(number int) (webhooks [][]byte) {
	r.Helper()
	r.idle.Store(true)
	r.dropWebhooks.Store(true)
	before := len(r.arrived)
	for range number {
		request := r.topUpRequest(3000)
		request.Identity = fmt.Sprint("payer ", len(r.payers))
		r.payers = append(r.payers, request.Identity)
		r.pay(must[cashier.Page](r)(r.cashier.TopUpCheckout(r.Context(), r.scope, request, newKey())).URL, cardPays)
	}
	r.settle()
	for _, webhook := range r.arrived[before:] {
		webhooks = append(webhooks, webhook.body)
	}
	if len(webhooks) < number {
		r.Fatalf("%d payments have %d webhooks", number, len(webhooks))
	}
	return webhooks
}

// wantPayments checks that this number of payers was credited, each once.
func (r *harness) wantPayments(number int) {
	r.Helper()
	credited := 0
	for _, payer := range r.payers {
		deposits, _, err := r.store.App(r.scope).Deposits(r.Context(), store.DepositPage{Identity: payer, Limit: 10})
		r.check(err)
		credited += len(deposits)
		if len(deposits) > 1 || len(deposits) == 1 && deposits[0].Amount != 30*million {
			r.Errorf("%s was given %+v", payer, deposits)
		}
	}
	if credited != number {
		r.Errorf("%d were credited, want %d", credited, number)
	}
}

func TestForgedStaleAndMisaddressedWebhooksDoNothing(t *testing.T) {
	r := shop(t)
	other := openShop(t)
	connection, secret := r.webhookSecret()
	otherConnection, otherSecret := other.webhookSecret()
	webhooks := r.payWithoutWebhooks(4)
	good := func(body []byte) string { return signed(body, time.Now(), secret) }
	for n := range sized(forgeries) {
		body := webhooks[n%len(webhooks)]
		var err error
		want := cashier.ErrBadSignature
		switch n % 6 {
		case 0: // a guessed secret
			err = r.cashier.ReceiveWebhook(t.Context(), connection, signed(body, time.Now(), fmt.Sprint("whsec_", n)), body)
		case 1: // one that was caught on its way, long ago
			err = r.cashier.ReceiveWebhook(t.Context(), connection, signed(body, time.Now().Add(-time.Duration(301+n)*time.Second), secret), body)
		case 2: // one for another application
			err = r.cashier.ReceiveWebhook(t.Context(), otherConnection, good(body), body)
		case 3: // signed by another application
			err = r.cashier.ReceiveWebhook(t.Context(), connection, signed(body, time.Now(), otherSecret), body)
		case 4: // changed after it was signed
			err = r.cashier.ReceiveWebhook(t.Context(), connection, good(body), bytes.Replace(body, []byte(`"livemode":false`), []byte(`"livemode":!1`), 1))
		case 5: // for an unknown connection
			err = r.cashier.ReceiveWebhook(t.Context(), ids.New().Format("con"), good(body), body)
			want = fault.New(fault.PathNotFound)
		}
		if !errors.Is(err, want) && !(n%6 == 5 && fault.Is(err, fault.PathNotFound)) {
			t.Errorf("forgery %d: got %v, want %v", n, err, want)
		}
	}
	for _, at := range []*harness{r, other} {
		r.check(r.cashier.DrainAll(t.Context(), at.app.ID))
		if kept := storetest.Value[int](t, storetest.URL(t), `SELECT count(*) FROM webhook_events WHERE app_id = $1`, at.scope.AppID); kept != 0 {
			t.Errorf("%d were kept", kept)
		}
		at.wantPayments(0)
	}
	// They would have counted.
	for _, body := range webhooks {
		r.check(r.cashier.ReceiveWebhook(t.Context(), connection, good(body), body))
	}
	r.check(r.cashier.DrainAll(t.Context(), r.app.ID))
	r.wantPayments(4)
}
