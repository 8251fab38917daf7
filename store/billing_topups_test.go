package store_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"purser/billing"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/storetest"
)

func TestTopUps(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)

	t.Run("are credited once, also by several workers", func(t *testing.T) {
		s := newStorefront(t, db)
		topUp := s.topUp(t, "ann")
		fence := s.lease(t, "identity:ann")
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				if _, err := s.Payments().ApplyTopUp(t.Context(), fence, topUp.ID, sessionOf(topUp), moment, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if held, _ := s.balance(t, "ann", s.credit); held != 100 {
			t.Errorf("%d tokens", held)
		}
		deposits, _, err := s.Deposits(t.Context(), store.DepositPage{Identity: "ann", Limit: 10})
		if err != nil || len(deposits) != 1 || deposits[0].IdempotencyKey != nil || deposits[0].Amount != 100 {
			t.Errorf("%+v, %v", deposits, err)
		}
	})

	t.Run("of another amount are set aside, with an alert", func(t *testing.T) {
		s := newStorefront(t, db)
		topUp := s.topUp(t, "ann")
		remote := sessionOf(topUp)
		remote.AmountTotal--
		for range 2 {
			kept, err := s.Payments().ApplyTopUp(t.Context(), s.lease(t, "identity:ann"), topUp.ID, remote, moment, nil)
			if err != nil || kept.Status != billing.TopUpSetAside {
				t.Errorf("%+v, %v", kept, err)
			}
		}
		if held, _ := s.balance(t, "ann", s.credit); held != 0 {
			t.Errorf("%d tokens", held)
		}
		alerts, _, err := s.Payments().Alerts(t.Context(), store.Page{Limit: 10}, false)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != billing.AmountMismatch {
			t.Fatalf("%+v, %v", alerts, err)
		}
		noError(t, s.Payments().ResolveAlert(t.Context(), alerts[0].ID, moment))
		if alerts, _, err := s.Payments().Alerts(t.Context(), store.Page{Limit: 10}, false); err != nil || len(alerts) != 0 {
			t.Errorf("%+v, %v", alerts, err)
		}
	})

	t.Run("wait while the money is on its way", func(t *testing.T) {
		s := newStorefront(t, db)
		topUp := s.topUp(t, "ann")
		remote := sessionOf(topUp)
		remote.Paid = false
		kept, err := s.Payments().ApplyTopUp(t.Context(), s.lease(t, "identity:ann"), topUp.ID, remote, moment, nil)
		if err != nil || kept.Status != billing.TopUpProcessing {
			t.Errorf("%+v, %v", kept, err)
		}
		found, err := s.Payments().CheckoutBySession(t.Context(), remote.ID)
		if err != nil || found.ID != topUp.ID || found.Kind != payments.TopUpCheckout || found.State != "processing" || found.CreditKey != "tokens" ||
			found.Amount != 100 || found.AmountCents != 3000 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

func TestCheckoutsAreListedTogether(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	var made []string
	for i := range 6 {
		identity := []string{"ann", "bob"}[i%2]
		if i%3 == 0 {
			_, change := s.checkout(t, identity, s.plan)
			made = append(made, change.ID.String())
		} else {
			made = append(made, s.topUp(t, identity).ID.String())
		}
	}
	var seen []string
	page := payments.CheckoutPage{Page: store.Page{Limit: 2}}
	for more := true; more; {
		var list []payments.Checkout
		var err error
		list, more, err = s.Payments().Checkouts(t.Context(), page)
		noError(t, err)
		for _, c := range list {
			seen = append(seen, c.ID.String())
			page.Before = c.ID
		}
	}
	if len(seen) != 6 || seen[0] != made[5] || seen[5] != made[0] {
		t.Errorf("made %v, seen %v", made, seen)
	}
	for name, c := range map[string]struct {
		page payments.CheckoutPage
		want int
	}{
		"of an identity":         {payments.CheckoutPage{Identity: "ann"}, 3},
		"of a kind":              {payments.CheckoutPage{Kind: payments.SubscriptionCheckout}, 2},
		"in a state":             {payments.CheckoutPage{State: "open"}, 4},
		"of an unknown identity": {payments.CheckoutPage{Identity: "eve"}, 0},
		"of a kind and state":    {payments.CheckoutPage{Kind: payments.TopUpCheckout, State: "requested"}, 0},
	} {
		c.page.Limit = 10
		if list, _, err := s.Payments().Checkouts(t.Context(), c.page); err != nil || len(list) != c.want {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	if c, err := s.Payments().CheckoutByID(t.Context(), s.topUp(t, "eve").ID); err != nil || c.Identity != "eve" || c.State != "open" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefundsAndDisputes(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	refund := func(cents ...int64) (charge billing.ProviderCharge) {
		for _, c := range cents {
			charge.Refunds = append(charge.Refunds, billing.ProviderRefund{AmountCents: c, Status: "succeeded"})
		}
		return charge
	}
	apply := func(t *testing.T, s storefront, remote billing.ProviderSession, charge billing.ProviderCharge) {
		t.Helper()
		charge.ID, charge.IntentID = remote.ChargeID, remote.IntentID
		noError(t, s.Payments().ApplyCharge(t.Context(), s.lease(t, "identity:ann"), charge, moment))
	}

	t.Run("end in the same balance in any order and number", func(t *testing.T) {
		reports := []billing.ProviderCharge{refund(), refund(1000), refund(1000, 500), refund(1000, 500)}
		for seed := range uint64(6) {
			s := newStorefront(t, db)
			_, remote := s.buy(t, "ann")
			order := rand.New(rand.NewPCG(seed, 1)).Perm(len(reports))
			for _, i := range append(order, len(reports)-1) {
				apply(t, s, remote, reports[i])
			}
			if held, owed := s.balance(t, "ann", s.credit); held != 50 || owed != 0 {
				t.Errorf("order %v: %d held, %d owed", order, held, owed)
			}
		}
	})

	t.Run("in one report take back what they are to, as far as a debt goes", func(t *testing.T) {
		s := newStorefront(t, db)
		_, remote := s.buy(t, "ann")
		apply(t, s, remote, billing.ProviderCharge{Disputes: []billing.ProviderDispute{{AmountCents: 1000, Status: "needs_response", Movements: 1}}})
		// What was spent, and owed for other payments, before the next report.
		_, err := connect(t, storetest.URL(t)).Exec(t.Context(),
			`UPDATE balances SET amount_nanocredits = 0, debt_nanocredits = 9999999999999999999 WHERE app_id = $1`, s.application.ID)
		noError(t, err)
		both := refund(2000)
		both.Disputes = []billing.ProviderDispute{{AmountCents: 1000, Status: "won", Movements: 2}}
		apply(t, s, remote, both)
		if held, owed := s.balance(t, "ann", s.credit); held != 0 || owed != metering.MaxAmount {
			t.Errorf("%d held, %d owed", held, owed)
		}
	})

	t.Run("of what is spent become debt, which is paid first", func(t *testing.T) {
		s := newStorefront(t, db)
		_, remote := s.buy(t, "ann")
		usage := openUsage(t, db)
		key, _ := s.newKey(t, "setup")
		h := fixture{tenant: s.tenant, key: key}
		use := h.useOf("messages", "spent")
		use.Identity, use.Quantity = "ann", 14 // 98 of 100
		d, err := usage.Track(use)
		noError(t, err)
		noError(t, d.Err())
		apply(t, s, remote, refund(3000))
		if held, owed := s.balance(t, "ann", s.credit); held != 0 || owed != 98 {
			t.Errorf("%d held, %d owed", held, owed)
		}
		again := h.useOf("messages", "no more")
		again.Identity = "ann"
		if d, err := usage.Track(again); err != nil || d.Err() == nil {
			t.Errorf("a use is accepted by a balance in debt: %v", err)
		}
		s.deposit(t, depositOf("ann", "tokens", 100, "pays"))
		if held, owed := s.balance(t, "ann", s.credit); held != 2 || owed != 0 {
			t.Errorf("%d held, %d owed", held, owed)
		}
		apply(t, s, remote, billing.ProviderCharge{Refunds: []billing.ProviderRefund{{AmountCents: 3000, Status: "failed"}}})
		if held, owed := s.balance(t, "ann", s.credit); held != 102 || owed != 0 {
			t.Errorf("after the refund failed: %d held, %d owed", held, owed)
		}
	})

	t.Run("are written as what they are, with their payment", func(t *testing.T) {
		s := newStorefront(t, db)
		_, remote := s.buy(t, "ann")
		apply(t, s, remote, billing.ProviderCharge{Disputes: []billing.ProviderDispute{{AmountCents: 3000, Status: "needs_response", Movements: 1}}})
		entries := texts(t, connect(t, storetest.URL(t)),
			`SELECT kind || ' ' || delta_nanocredits || ' ' || source_kind || ' ' || source_id FROM journal WHERE app_id = $1 ORDER BY seq`, s.application.ID)
		if len(entries) != 2 || entries[0] != "top-up 100 session "+remote.ID || entries[1] != "dispute -100 session "+remote.ID {
			t.Errorf("%q", entries)
		}
		paid := texts(t, connect(t, storetest.URL(t)), `
			SELECT p.disputed_cents || ' ' || c.taken_back_nanocredits
			FROM provider_payments p JOIN payment_credits c USING (app_id, source_kind, source_id) WHERE app_id = $1`, s.application.ID)
		if !slices.Equal(paid, []string{"3000 100"}) {
			t.Errorf("%q", paid)
		}
	})

	t.Run("of a charge that is not ours are unknown", func(t *testing.T) {
		s := newStorefront(t, db)
		s.buy(t, "ann")
		for _, charge := range []billing.ProviderCharge{{ID: "ch_other"}, {ID: "ch_other", IntentID: "pi_other"}, {}} {
			if err := s.Payments().ApplyCharge(t.Context(), s.lease(t, "x"), charge, moment); !errors.Is(err, payments.ErrUnknown) {
				t.Errorf("%+v: %v", charge, err)
			}
		}
	})
}
