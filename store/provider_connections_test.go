package store_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	sandbox := func() payments.Connection {
		return payments.Connection{ID: ids.New(), Mode: payments.SandboxConnection, AccountID: "acct_sandbox"}
	}

	t.Run("are there once they are made, and found by their id", func(t *testing.T) {
		a := newTenant(t, db)
		_, err := a.Accounts().Connection(t.Context())
		wantFault(t, err, fault.PaymentsNotConfigured)
		made := a.connect(t)
		got, err := a.Accounts().Connection(t.Context())
		if err != nil || got.ID != made.ID || !bytes.Equal(got.SealedKey, []byte("sealed key")) || len(got.Secrets) != 2 || got.Secrets[1].Until != moment+1 {
			t.Errorf("%+v, %v", got, err)
		}
		scope, err := db.Directory().ConnectionScope(t.Context(), made.ID)
		if err != nil || scope != a.application.Scope() {
			t.Errorf("%v, %v", scope, err)
		}
		_, err = db.Directory().ConnectionScope(t.Context(), ids.New())
		wantFault(t, err, fault.PathNotFound)
		if scope, err := db.Directory().ScopeOf(t.Context(), a.application.ID); err != nil || scope != a.application.Scope() {
			t.Errorf("%v, %v", scope, err)
		}
		_, err = db.Directory().ScopeOf(t.Context(), ids.New())
		wantFault(t, err, fault.PathNotFound)
	})

	t.Run("change their secrets and stay the same", func(t *testing.T) {
		a := newTenant(t, db)
		c := a.connect(t)
		c.SealedKey, c.Secrets, c.KeyLastFour = []byte("another"), []payments.SealedSecret{{Sealed: []byte("new")}}, "1234"
		_, err := a.Accounts().PutConnection(t.Context(), c, moment+5)
		noError(t, err)
		noError(t, a.Accounts().SetEventsAfter(t.Context(), c.ID, 77))
		noError(t, a.Accounts().SetPortalConfiguration(t.Context(), c.ID, "bpc_1"))
		got, err := a.Accounts().Connection(t.Context())
		if err != nil || got.KeyLastFour != "1234" || len(got.Secrets) != 1 || got.CreatedAt != moment || got.ChangedAt != moment+5 ||
			got.EventsAfter != 77 || got.PortalConfiguration != "bpc_1" {
			t.Errorf("%+v, %v", got, err)
		}
	})

	t.Run("of the sandbox are one, also when connected at once", func(t *testing.T) {
		a := newTenant(t, db)
		made := make(chan ids.ID, 8)
		var wait sync.WaitGroup
		for range cap(made) {
			wait.Go(func() {
				c, err := a.Accounts().PutConnection(t.Context(), sandbox(), moment)
				if err != nil {
					t.Error(err)
				}
				made <- c.ID
			})
		}
		wait.Wait()
		close(made)
		first := <-made
		for other := range made {
			if other != first {
				t.Errorf("%v and %v", first, other)
			}
		}
	})

	t.Run("give way to another account, to which every plan is sent", func(t *testing.T) {
		s := newStorefront(t, db)
		old := s.connection
		next, err := s.Accounts().PutConnection(t.Context(), payments.Connection{ID: ids.New(), Mode: payments.StripeConnection, Live: true, AccountID: "acct_2"}, moment+1)
		noError(t, err)
		if current, err := s.Accounts().Connection(t.Context()); err != nil || current.ID != next.ID {
			t.Errorf("%+v, %v", current, err)
		}
		if retired, err := s.Accounts().ConnectionByID(t.Context(), old.ID); err != nil || retired.ReplacedAt != moment+1 {
			t.Errorf("%+v, %v", retired, err)
		}
		p, err := s.Plan(t.Context(), "pro")
		if err != nil || p.Sync.Status != billing.SyncPending || p.Sync.ProductID != "" || p.Sync.PriceID != "" || p.Sync.Version != s.plan.Sync.Version+1 {
			t.Errorf("%+v, %v", p.Sync, err)
		}
		due, err := s.DueJobs(t.Context(), moment+1, 100)
		if err != nil || !hasWork(due, queue.JobPlan, s.plan.ID.String()) {
			t.Errorf("%+v, %v", due, err)
		}
	})

	t.Run("stay while something hangs on them", func(t *testing.T) {
		for name, hang := range map[string]func(storefront){
			"a subscription": func(s storefront) { s.subscribe(t, "ann", "sub_1") },
			"a checkout":     func(s storefront) { s.checkout(t, "ann", s.plan) },
			"a top-up":       func(s storefront) { s.topUp(t, "ann") },
		} {
			s := newStorefront(t, db)
			hang(s)
			_, err := s.Accounts().PutConnection(t.Context(), payments.Connection{ID: ids.New(), Mode: payments.StripeConnection, Live: true, AccountID: "acct_2"}, moment)
			if !fault.Is(err, fault.ProviderInUse) {
				t.Errorf("%s: %v", name, err)
			}
			if current, err := s.Accounts().Connection(t.Context()); err != nil || current.ID != s.connection.ID {
				t.Errorf("%s: %+v, %v", name, current, err)
			}
		}
	})

	t.Run("of the sandbox are never about real money", func(t *testing.T) {
		c := sandbox()
		c.Live = true
		if _, err := newTenant(t, db).Accounts().PutConnection(t.Context(), c, moment); err == nil {
			t.Error("it was taken")
		}
	})
}

// What is sold at an account keeps it, also when it is replaced at the same
// moment.
func TestASaleAndAnotherAccount(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only the other account can wait for a lock
	s := newStorefront(t, openStore(t, url))
	replace := func() error {
		_, err := s.Accounts().PutConnection(t.Context(), payments.Connection{ID: ids.New(), Mode: payments.StripeConnection, Live: true, AccountID: "acct_2"}, moment)
		return err
	}
	sell := func(meanwhile func()) error {
		op := opOf(billing.OperationCheckout, ids.New().String())
		op.ConnectionID = s.connection.ID
		_, _, err := s.Payments().Begin(t.Context(), payments.BeginInput{
			Fence: s.lease(t, "identity:ann"), Identity: "ann", PlanKey: s.plan.Key, Op: op, Now: moment,
			Decide: func(payments.CustomerState) (payments.Decision, error) {
				meanwhile()
				return payments.Decision{Operation: op, Change: &billing.Change{
					ID: ids.New(), Kind: billing.Checkout, Target: s.plan.Terms(), State: billing.ChangeRequested, RequestedAt: moment,
				}}, nil
			},
		})
		return err
	}

	t.Run("the account stays when the sale was first", func(t *testing.T) {
		replaced := make(chan error, 1)
		noError(t, sell(func() {
			go func() { replaced <- replace() }()
			soon(t, "the other account waits", func() bool {
				return len(replaced) == 1 || lockWaits(t, url, "%") == 1
			})
		}))
		wantFault(t, <-replaced, fault.ProviderInUse)
	})
	t.Run("and nothing is sold at one that was replaced", func(t *testing.T) {
		s = newStorefront(t, s.db)
		noError(t, replace())
		wantFault(t, sell(func() { t.Error("it was decided") }), fault.OperationInProgress)
	})
}

func TestCustomers(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	owner := func(identity string) payments.CustomerOwner {
		return payments.CustomerOwner{Identity: identity, Fence: s.lease(t, "identity:"+identity)}
	}
	if _, err := s.Accounts().Customer(t.Context(), s.connection.ID, "ann"); !errors.Is(err, payments.ErrUnknown) {
		t.Error(err)
	}
	for _, id := range []string{"cus_1", "cus_2"} {
		if kept, err := s.Accounts().KeepCustomer(t.Context(), s.connection.ID, owner("ann"), id, moment); err != nil || kept != "cus_1" {
			t.Errorf("%s, %v", kept, err)
		}
	}
	if _, err := s.Accounts().KeepCustomer(t.Context(), s.connection.ID, owner("bob"), "cus_1", moment); err == nil {
		t.Error("one customer is two identities")
	}
	noError(t, s.Accounts().ForgetCustomer(t.Context(), s.connection.ID, "cus_1"))
	if kept, err := s.Accounts().KeepCustomer(t.Context(), s.connection.ID, owner("ann"), "cus_3", moment); err != nil || kept != "cus_3" {
		t.Errorf("%s, %v", kept, err)
	}
}
