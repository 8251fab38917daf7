package store_test

import (
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

func TestWallets(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)

	t.Run("are created once for an identity, also at once", func(t *testing.T) {
		type result struct {
			wallet  metering.Wallet
			created bool
		}
		made := 0
		results := together(t, 12, func(int) (r result, err error) {
			r.wallet, r.created, err = app.CreateWallet(t.Context(), ids.New(), "raced", moment)
			return r, err
		})
		for _, r := range results {
			if r.created {
				made++
			}
			if r.wallet.ID != results[0].wallet.ID || r.wallet.ID.IsZero() || r.wallet.Identity != "raced" || r.wallet.CreatedAt != moment {
				t.Errorf("one got %+v, another %+v", r.wallet, results[0].wallet)
			}
		}
		if made != 1 {
			t.Errorf("%d were made", made)
		}
	})

	t.Run("know every identity by its exact characters", func(t *testing.T) {
		for _, identity := range []string{"ann", "Ann", "ann ", "a/b", "..", "%00", "ä", "a\u0308", "🙂", "'; DROP TABLE wallets --"} {
			w, created, err := app.CreateWallet(t.Context(), ids.New(), identity, moment)
			if err != nil || !created || w.Identity != identity {
				t.Errorf("%q: %+v, %v, %v", identity, w, created, err)
			}
			if got, err := app.Wallet(t.Context(), identity); err != nil || got.ID != w.ID {
				t.Errorf("%q: %+v, %v", identity, got, err)
			}
		}
	})

	t.Run("that nobody made are not found", func(t *testing.T) {
		_, err := app.Wallet(t.Context(), "nobody")
		wantFault(t, err, fault.WalletNotFound)
		_, err = app.SetBillingPeriod(t.Context(), "nobody", metering.BillingPeriod{Interval: metering.Day})
		wantFault(t, err, fault.WalletNotFound)
		wantFault(t, app.PutSubscription(t.Context(), "nobody", metering.Subscription{ID: ids.New()}), fault.WalletNotFound)
	})

	t.Run("show their balances by the key of the credit", func(t *testing.T) {
		app := newTenant(t, db)
		for _, key := range []string{"b", "a", "B"} {
			app.newCredit(t, key)
			app.deposit(t, depositOf("ann", key, 5, "to "+key))
		}
		app.deposit(t, depositOf("bob", "b", 7, "to bob"))
		w, err := app.Wallet(t.Context(), "ann")
		noError(t, err)
		if len(w.Balances) != 3 || w.Balances[0].CreditKey != "B" || w.Balances[1].CreditKey != "a" || w.Balances[2].CreditKey != "b" {
			t.Errorf("got %+v", w.Balances)
		}
		list, more, err := app.Wallets(t.Context(), store.Page{Limit: 2})
		if err != nil || more || len(list) != 2 || list[0].Identity != "bob" || len(list[0].Balances) != 1 || list[0].Balances[0].Amount != 7 || len(list[1].Balances) != 3 {
			t.Errorf("listed are %+v, %v, %v", list, more, err)
		}
	})

	t.Run("are listed newest first, and never twice or not at all", func(t *testing.T) {
		app := newTenant(t, db)
		create := func(identity string) ids.ID {
			w, _, err := app.CreateWallet(t.Context(), ids.New(), identity, moment)
			noError(t, err)
			return w.ID
		}
		var want []ids.ID
		for i := range 6 {
			want = append([]ids.ID{create(numbered("wallet", i))}, want...)
		}
		pages(t, want, func(p store.Page) ([]metering.Wallet, bool, error) {
			defer create(ids.New().String())
			return app.Wallets(t.Context(), p)
		}, func(w metering.Wallet) ids.ID { return w.ID })
	})
}

func TestSetBillingPeriod(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)
	home := newFixture(t, db, usage)
	_, _, err := home.CreateWallet(t.Context(), ids.New(), "bob", moment)
	noError(t, err)
	monthly := metering.BillingPeriod{Interval: metering.Month, Anchor: moment}

	t.Run("holds until the first use, and the last one set counts", func(t *testing.T) {
		for _, period := range []metering.BillingPeriod{{Interval: metering.Day, Anchor: 0}, {Interval: metering.Week, Anchor: -1}, monthly} {
			w, err := home.SetBillingPeriod(t.Context(), "bob", period)
			if err != nil || w.BillingPeriod == nil || *w.BillingPeriod != period || w.BillingPeriodLocked() {
				t.Errorf("got %+v, %v", w, err)
			}
		}
	})

	t.Run("cannot change once something was charged", func(t *testing.T) {
		home.tenant.deposit(t, depositOf("bob", "tokens", 100, "for bob"))
		use := home.useOf("messages", "bob's first")
		use.Identity = "bob"
		decision, err := usage.Track(use)
		noError(t, err)
		noError(t, decision.Err())
		_, err = home.SetBillingPeriod(t.Context(), "bob", metering.BillingPeriod{Interval: metering.Day})
		wantFault(t, err, fault.BillingPeriodLocked)
		w, err := home.SetBillingPeriod(t.Context(), "bob", monthly) // what it is already
		if err != nil || *w.BillingPeriod != monthly || !w.BillingPeriodLocked() {
			t.Errorf("got %+v, %v", w, err)
		}
	})
}

// Nodes go by the version: a change that does not move it would be overlooked.
func TestEveryWriterMovesTheWalletsVersion(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)
	home := newFixture(t, db, usage)
	owner := connect(t, storetest.URL(t))
	_, _, err := home.CreateWallet(t.Context(), ids.New(), "bob", moment)
	noError(t, err)
	version := func() (n int64) {
		t.Helper()
		noError(t, owner.QueryRow(t.Context(), `SELECT version FROM wallets WHERE app_id = $1 AND identity = 'bob'`, home.application.ID).Scan(&n))
		return n
	}
	for _, c := range []struct {
		name  string
		write func() error
	}{
		{"a deposit", func() error {
			_, _, err := home.Deposit(t.Context(), depositOf("bob", "tokens", 100, "versioned"))
			return err
		}},
		{"a billing period", func() error {
			_, err := home.SetBillingPeriod(t.Context(), "bob", metering.BillingPeriod{Interval: metering.Day})
			return err
		}},
		{"a subscription", func() error {
			return home.PutSubscription(t.Context(), "bob", metering.Subscription{ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment)})
		}},
		{"a use", func() error {
			use := home.useOf("messages", "versioned")
			use.Identity = "bob"
			decision, err := usage.Track(use)
			noError(t, err)
			return decision.Err()
		}},
	} {
		before := version()
		noError(t, c.write())
		if after := version(); after <= before {
			t.Errorf("%s moves it from %d to %d", c.name, before, after)
		}
	}
}
