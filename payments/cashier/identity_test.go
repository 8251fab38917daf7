package cashier_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

// TestPaymentsFollowANewIdentity renames a customer that has paid, buys again under the
// old identity, and erases the renamed one.
func TestPaymentsFollowANewIdentity(t *testing.T) {
	r := shop(t)
	app := r.store.App(r.scope)
	first := r.topUp(3000)
	wallet := must[metering.Wallet](r)(app.Wallet(t.Context(), "ada"))
	_, _, err := app.Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "ada", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: r.now()})
	wantFault(t, err, fault.WalletInUse)
	rename := store.Rename{ID: ids.New(), From: "ada", To: "eve", IdempotencyKey: newKey(), CreatedAt: r.now()}
	r.check(r.cashier.HoldIdentity(t.Context(), r.scope, "ada", func(ctx context.Context) error {
		_, _, err := app.Rename(ctx, rename)
		wantFault(t, err, fault.OperationInProgress)
		return nil
	}))
	_, _, err = app.Rename(t.Context(), rename)
	r.check(err)
	r.pay(first.URL, cardPays) // the page was opened before
	r.settle()
	r.wantTokens(0, 0)
	tokens := func(identity string) string {
		w := must[metering.Wallet](r)(app.Wallet(t.Context(), identity))
		return w.Balances[0].Amount.String()
	}
	if got := tokens("eve"); got != "30000000" {
		t.Errorf("eve holds %s", got)
	}
	second := r.topUp(3000) // of ada, who is another customer now
	r.pay(second.URL, cardPays)
	r.settle()
	r.wantTokens(30*million, 0)
	r.refund(first, 3000)
	r.settle()
	r.wantTokens(30*million, 0)
	if got := tokens("eve"); got != "0" {
		t.Errorf("eve holds %s after the refund", got)
	}
	connection := must[payments.Connection](r)(r.store.PaymentAccounts(r.scope).Connection(t.Context()))
	customer := must[string](r)(r.store.PaymentAccounts(r.scope).Customer(t.Context(), connection.ID, "eve"))
	hash := func() any {
		return r.askProvider("GET", "/v1/customers/"+customer, nil)["metadata"].(map[string]any)["identity_hash"]
	}
	before := hash()
	// Nodes need some real time: here it stands still until it is advanced.
	change := ids.New()
	r.frozenAt.Store(change.Millis() * int64(time.Millisecond))
	_, _, err = app.Erase(t.Context(), store.Erasure{ID: change, Identity: "eve", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: r.now()})
	r.check(err)
	r.settle()
	r.advance(2 * time.Minute)
	if after := hash(); before == nil || after != nil {
		t.Errorf("the hash of the identity was %v and is %v", before, after)
	}
	left := func() int {
		due := must[queue.JobBatch](r)(r.store.Queue(r.scope).ClaimJobs(t.Context(), queue.ClaimInput{
			Kinds: []queue.JobKind{queue.JobIdentity, queue.JobLabel}, Now: r.now(), Most: 10, Lease: time.Minute}))
		r.check(r.store.Queue(r.scope).ReleaseJobs(t.Context(), due))
		return len(due.Jobs)
	}
	// Nodes collect requests for some seconds, whatever the test clock of the application says.
	if n := left(); n != 1 {
		t.Errorf("%d jobs are left of %s, whose old identity may still be written", n, wallet.ID)
	}
	r.frozenAt.Add(int64(2 * time.Minute))
	r.settle()
	if n := left(); n != 0 {
		t.Errorf("%d jobs are left of %s", n, wallet.ID)
	}
	r.refund(second, 3000)
	r.settle()
	r.wantTokens(0, 0)
}

// TestACustomerErasedWhileItsPaymentsAreSetUpStaysErased erases a customer while the call
// that creates it at the provider runs.
func TestACustomerErasedWhileItsPaymentsAreSetUpStaysErased(t *testing.T) {
	t.Parallel()
	begun := map[string]struct {
		code fault.Code
		run  func(r *harness) error
	}{
		"in the portal": {fault.WalletNotFound, func(r *harness) error {
			_, err := r.cashier.Portal(t.Context(), r.scope, "ada", "http://shop.test")
			return err
		}},
		"in a top-up whose lease expired": {fault.OperationInProgress, func(r *harness) error {
			_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), newKey())
			return err
		}},
	}
	for name, c := range begun {
		t.Run(name, func(t *testing.T) {
			r := shop(t)
			app := r.store.App(r.scope)
			wallet, _, err := app.CreateWallet(t.Context(), ids.New(), "ada", r.now())
			r.check(err)
			erase := sync.OnceFunc(func() {
				storetest.Exec(t, storetest.URL(t), `UPDATE leases SET held_until = 0 WHERE app_id = $1`, r.scope.AppID)
				_, _, err := app.Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "ada", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: r.now()})
				if err != nil {
					t.Error(err)
				}
			})
			r.cashier = r.newCashier(func(o *cashier.Options) {
				o.SandboxTransport = beforeCall(func(req *http.Request) {
					if strings.HasSuffix(req.URL.Path, "/v1/customers") {
						erase()
					}
				})
			})
			wantFault(t, c.run(r), c.code)
			if again, err := app.Wallet(t.Context(), "ada"); !fault.Is(err, fault.WalletNotFound) {
				t.Errorf("ada has the wallet %s after %s was erased", again.ID, wallet.ID)
			}
			r.advance(time.Hour)
			customers := r.askProvider("GET", "/v1/customers", nil)["data"].([]any)
			if len(customers) != 1 {
				t.Fatalf("%d customers", len(customers))
			}
			if label := customers[0].(map[string]any)["metadata"].(map[string]any)["identity_hash"]; label != nil {
				t.Errorf("the customer at the provider has the hash %v", label)
			}
			r.wantNothingFailing()
			r.topUp(3000) // a new customer
			if again := must[metering.Wallet](r)(app.Wallet(t.Context(), "ada")); again.ID == wallet.ID {
				t.Error("the erased wallet has its identity again")
			}
		})
	}
}

// TestACustomerThatIsNotUsedLosesItsHashToo erases a wallet that has, or got, another customer
// at the provider than a call has just created.
func TestACustomerThatIsNotUsedLosesItsHashToo(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(r *harness, wallet ids.ID){
		"because the caller was gone": func(r *harness, _ ids.ID) {
			ctx, leave := context.WithCancel(r.Context())
			r.cashier = r.newCashier(func(o *cashier.Options) {
				o.SandboxTransport = roundTripper(func(req *http.Request) (*http.Response, error) {
					response, err := http.DefaultTransport.RoundTrip(req)
					if err != nil || !strings.HasSuffix(req.URL.Path, "/v1/customers") {
						return response, err
					}
					answer := must[[]byte](r)(io.ReadAll(response.Body))
					r.check(response.Body.Close())
					response.Body = io.NopCloser(bytes.NewReader(answer))
					leave()
					return response, nil
				})
			})
			_, _ = r.cashier.Portal(ctx, r.scope, "ada", "http://shop.test") // nobody waits for the result
		},
		"because the wallet had got another": func(r *harness, wallet ids.ID) {
			accounts := r.store.PaymentAccounts(r.scope)
			earlier := sync.OnceFunc(func() {
				connection := must[payments.Connection](r)(accounts.Connection(r.Context()))
				other := r.provider("/v1/customers", nil)["id"].(string)
				_, err := accounts.KeepCustomer(r.Context(), connection.ID, payments.CustomerOwner{Identity: "ada", WalletID: wallet}, other, r.now())
				r.check(err)
			})
			r.cashier = r.newCashier(func(o *cashier.Options) {
				o.SandboxTransport = beforeCall(func(req *http.Request) {
					if strings.HasSuffix(req.URL.Path, "/v1/customers") {
						earlier()
					}
				})
			})
			_, err := r.cashier.Portal(r.Context(), r.scope, "ada", "http://shop.test")
			r.check(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := shop(t)
			app := r.store.App(r.scope)
			wallet, _, err := app.CreateWallet(t.Context(), ids.New(), "ada", r.now())
			r.check(err)
			begin(r, wallet.ID)
			_, _, err = app.Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "ada", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: r.now()})
			r.check(err)
			r.advance(time.Hour)
			customers := r.askProvider("GET", "/v1/customers", nil)["data"].([]any)
			if len(customers) == 0 {
				t.Error("no customer was created")
			}
			for _, customer := range customers {
				if label := customer.(map[string]any)["metadata"].(map[string]any)["identity_hash"]; label != nil {
					t.Errorf("a customer at the provider has the hash %v", label)
				}
			}
			r.wantNothingFailing()
		})
	}
}

// roundTripper is a transport of one function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
