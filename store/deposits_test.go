package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

func TestDeposit(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)

	t.Run("is made once, however often its key is sent at the same time", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		app.newCredit(t, "tokens")
		type result struct {
			store.Deposit
			duplicate bool
		}
		originals := 0
		results := together(t, 60, func(i int) (r result, err error) {
			// The first one counts, whatever the others say beside the key.
			requested := depositOf(numbered("wallet", i%3), "tokens", metering.Amount(100+i), "once")
			r.Deposit, r.duplicate, err = app.Deposit(t.Context(), requested)
			if !r.duplicate && r.ID != requested.ID {
				t.Errorf("another's deposit %v is said to be new", r.Deposit)
			}
			return r, err
		})
		for _, r := range results {
			if !r.duplicate {
				originals++
			}
			if r.ID != results[0].ID || r.Amount != results[0].Amount || r.Identity != results[0].Identity || r.Seq != 1 || *r.IdempotencyKey != "once" {
				t.Errorf("one got %+v, another %+v", r, results[0])
			}
		}
		if originals != 1 {
			t.Errorf("%d were made", originals)
		}
		w, err := app.Wallet(t.Context(), results[0].Identity)
		if err != nil || len(w.Balances) != 1 || w.Balances[0].Amount != results[0].Amount {
			t.Errorf("the wallet is %+v, %v", w, err)
		}
		if list, _, err := app.Wallets(t.Context(), store.Page{Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("those that came late have left wallets: %+v, %v", list, err)
		}
		soundBooks(t, storetest.URL(t), app)
	})

	t.Run("loses none of many at once, and chains them without a gap", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		credits := []string{"a", "b", "c"}
		for _, key := range credits {
			app.newCredit(t, key)
		}
		const deposits, wallets = 60, 2
		together(t, deposits, func(i int) (store.Deposit, error) {
			d, duplicate, err := app.Deposit(t.Context(), depositOf(numbered("wallet", i%wallets), credits[i%3], metering.Amount(i), numbered("deposit", i)))
			if duplicate {
				t.Errorf("deposit %d is called a duplicate", i)
			}
			return d, err
		})
		var sum metering.Amount
		for n := range wallets {
			w, err := app.Wallet(t.Context(), numbered("wallet", n))
			noError(t, err)
			for _, balance := range w.Balances {
				sum += balance.Amount
			}
		}
		if want := metering.Amount(deposits * (deposits - 1) / 2); sum != want {
			t.Errorf("the wallets hold %d of %d", sum, want)
		}
		seqs := texts(t, connect(t, storetest.URL(t)), `SELECT wallet_id || ': ' || min(seq) || ' to ' || max(seq) FROM journal
			WHERE app_id = $1 GROUP BY wallet_id HAVING min(seq) <> 1 OR max(seq) <> $2`, app.application.ID, deposits/wallets)
		if len(seqs) > 0 {
			t.Errorf("numbered are %v", seqs)
		}
		soundBooks(t, storetest.URL(t), app)
	})

	t.Run("takes nothing and the largest amount, and refuses what would pass it", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		app.newCredit(t, "tokens")
		app.deposit(t, depositOf("ann", "tokens", 0, "nothing"))
		app.deposit(t, depositOf("ann", "tokens", metering.MaxAmount, "everything"))
		before := journalOf(t, app)
		_, _, err := app.Deposit(t.Context(), depositOf("ann", "tokens", 1, "one more"))
		wantFault(t, err, fault.BalanceOverflow)
		if after := journalOf(t, app); !slices.Equal(before, after) {
			t.Errorf("the journal went from %v to %v", before, after)
		}
		if w, err := app.Wallet(t.Context(), "ann"); err != nil || w.Balances[0].Amount != metering.MaxAmount {
			t.Errorf("the wallet is %+v, %v", w, err)
		}
		// What was refused may be tried again, and its key is still free.
		app.deposit(t, depositOf("bob", "tokens", 1, "one more"))
		soundBooks(t, storetest.URL(t), app)
	})

	t.Run("opens a hundred balances of a wallet and no more", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		for i := range metering.MaxBalances + 1 {
			app.newCredit(t, numbered("credit", i))
		}
		for i := range metering.MaxBalances {
			app.deposit(t, depositOf("ann", numbered("credit", i), 1, numbered("deposit", i)))
		}
		_, _, err := app.Deposit(t.Context(), depositOf("ann", numbered("credit", metering.MaxBalances), 1, "too many"))
		wantFault(t, err, fault.TooManyBalances)
		app.deposit(t, depositOf("ann", numbered("credit", 7), 1, "to one that it has"))
		if w, err := app.Wallet(t.Context(), "ann"); err != nil || len(w.Balances) != metering.MaxBalances {
			t.Errorf("it holds %d, %v", len(w.Balances), err)
		}
	})

	t.Run("pays a debt first", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		app.newCredit(t, "tokens")
		app.deposit(t, depositOf("ann", "tokens", 100, "paid"))
		takeBack(t, app, 100, 150)
		for _, c := range []struct{ deposit, amount, debt metering.Amount }{{0, 0, 50}, {30, 0, 20}, {20, 0, 0}, {7, 7, 0}} {
			app.deposit(t, depositOf("ann", "tokens", c.deposit, ids.New().String()))
			w, err := app.Wallet(t.Context(), "ann")
			if err != nil || w.Balances[0].Amount != c.amount || w.Balances[0].Debt != c.debt {
				t.Errorf("after %d it is %+v, %v", c.deposit, w.Balances, err)
			}
			soundBooks(t, storetest.URL(t), app)
		}
	})

	t.Run("to an unknown credit makes nothing, not even the wallet", func(t *testing.T) {
		t.Parallel()
		app := newTenant(t, db)
		_, _, err := app.Deposit(t.Context(), depositOf("ann", "missing", 1, "lost"))
		wantFault(t, err, fault.CreditNotFound)
		_, err = app.Wallet(t.Context(), "ann")
		wantFault(t, err, fault.WalletNotFound)
	})
}

// Two deposits with one key wait for the wallet. The second would exceed the largest
// balance beside the first, and is the same as the first.
func TestARepeatedDepositThatWaitedIsTheFirst(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 0)
	release := s.hold(t, url, "ann")
	var deposits [2]store.Deposit
	var duplicates atomic.Int64
	var done sync.WaitGroup
	for i := range deposits {
		done.Go(func() {
			d, duplicate, err := s.Deposit(t.Context(), depositOf("ann", "tokens", metering.MaxAmount/2+1, "once"))
			if err != nil {
				t.Error(err)
			}
			if duplicate {
				duplicates.Add(1)
			}
			deposits[i] = d
		})
	}
	soon(t, "both wait for the wallet", func() bool { return lockWaits(t, url, "%FOR NO KEY UPDATE%") == len(deposits) })
	release()
	done.Wait()
	if deposits[0].ID != deposits[1].ID || duplicates.Load() != 1 {
		t.Errorf("%d of them are duplicates: %+v", duplicates.Load(), deposits)
	}
	soundBooks(t, url, s.tenant)
}

// takeBack takes more from the only balance of the wallet than it holds: nothing is
// left, and the rest is owed.
func takeBack(t *testing.T, app tenant, held, taken int) {
	t.Helper()
	owner := connect(t, storetest.URL(t))
	tx, err := owner.Begin(t.Context())
	noError(t, err)
	exec(t, tx, `INSERT INTO journal (app_id, id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
		SELECT b.app_id, $2, b.org_id, b.wallet_id, w.last_seq + 1, 'adjustment', b.credit_id, -$3::int, 0, $4::int, $5
		FROM balances b JOIN wallets w ON w.app_id = b.app_id AND w.id = b.wallet_id WHERE b.app_id = $1`,
		app.application.ID, ids.New(), taken, taken-held, moment)
	exec(t, tx, `INSERT INTO adjustments (app_id, entry_id, org_id, reason, user_id)
		SELECT app_id, id, org_id, 'taken back', $2 FROM journal WHERE app_id = $1 AND kind = 'adjustment'`, app.application.ID, ids.New())
	exec(t, tx, `INSERT INTO debtors (app_id, wallet_id, credit_id, org_id) SELECT app_id, wallet_id, credit_id, org_id FROM balances WHERE app_id = $1`,
		app.application.ID)
	exec(t, tx, `UPDATE balances SET amount_nanocredits = 0, debt_nanocredits = $2::int WHERE app_id = $1`, app.application.ID, taken-held)
	exec(t, tx, `UPDATE wallets SET last_seq = last_seq + 1, version = version + 1 WHERE app_id = $1`, app.application.ID)
	noError(t, tx.Commit(t.Context()))
}

func journalOf(t *testing.T, app tenant) []string {
	t.Helper()
	return texts(t, connect(t, storetest.URL(t)), `SELECT j::text FROM journal j WHERE app_id = $1 ORDER BY wallet_id, seq`, app.application.ID)
}

func TestDeposits(t *testing.T) {
	t.Parallel()
	app := newTenant(t, storetest.Open(t))
	app.newCredit(t, "a")
	app.newCredit(t, "b")
	var all []store.Deposit // newest first
	for i := range 7 {
		d := app.deposit(t, depositOf("ann", []string{"a", "b"}[i%2], metering.Amount(i), numbered("deposit", i)))
		all = append([]store.Deposit{d}, all...)
	}
	app.deposit(t, depositOf("bob", "a", 1, "bob's"))
	same := func(a, b store.Deposit) bool {
		return a.ID == b.ID && a.Seq == b.Seq && a.Amount == b.Amount && a.CreditKey == b.CreditKey && a.Identity == b.Identity &&
			*a.IdempotencyKey == *b.IdempotencyKey && a.CreatedAt == b.CreatedAt
	}

	t.Run("are listed page by page, newest first, while others are made", func(t *testing.T) {
		var got []store.Deposit
		p := store.DepositPage{Identity: "ann", Limit: 3}
		for more := true; more; {
			page, next, err := app.Deposits(t.Context(), p)
			noError(t, err)
			got = append(got, page...)
			p.Before, more = next, next.Seq != 0
			app.deposit(t, depositOf("ann", "a", 1, ids.New().String()))
		}
		if !slices.EqualFunc(got, all, same) {
			t.Errorf("got %+v, want %+v", got, all)
		}
	})

	t.Run("are listed by credit", func(t *testing.T) {
		got, next, err := app.Deposits(t.Context(), store.DepositPage{Identity: "ann", CreditKey: "b", Limit: 3})
		if err != nil || next.Seq != 0 || !slices.EqualFunc(got, []store.Deposit{all[1], all[3], all[5]}, same) {
			t.Errorf("got %+v, %v, %v", got, next, err)
		}
		_, _, err = app.Deposits(t.Context(), store.DepositPage{Identity: "ann", CreditKey: "missing", Limit: 3})
		wantFault(t, err, fault.CreditNotFound)
	})

	t.Run("leave out what went the other way", func(t *testing.T) {
		app := newTenant(t, storetest.Open(t))
		app.newCredit(t, "tokens")
		app.deposit(t, depositOf("ann", "tokens", 100, "in"))
		takeBack(t, app, 100, 150)
		if got, _, err := app.Deposits(t.Context(), store.DepositPage{Identity: "ann", Limit: 10}); err != nil || len(got) != 1 || got[0].Amount != 100 {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("of an identity without a wallet are none", func(t *testing.T) {
		if got, next, err := app.Deposits(t.Context(), store.DepositPage{Identity: "unknown", Limit: 3}); err != nil || next.Seq != 0 || len(got) > 0 {
			t.Errorf("got %v, %v, %v", got, next, err)
		}
	})

	t.Run("behind very many entries of other kinds are on a later page", func(t *testing.T) {
		app := newTenant(t, storetest.Open(t))
		app.newCredit(t, "tokens")
		first := app.deposit(t, depositOf("ann", "tokens", 100, "in"))
		fill := func(from, to int) {
			exec(t, connect(t, storetest.URL(t)), `
				INSERT INTO journal (app_id, id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at)
				SELECT app_id, gen_random_uuid(), org_id, wallet_id, n, 'adjustment', credit_id, delta_nanocredits, balance_after, debt_after, created_at
				FROM journal, generate_series($2::int, $3::int) n WHERE app_id = $1 AND seq = 1`, app.application.ID, from, to)
		}
		p := store.DepositPage{Identity: "ann", Limit: 3}
		fill(2, 20_000)
		if got, next, err := app.Deposits(t.Context(), p); err != nil || len(got) != 1 || next.Seq != 0 {
			t.Errorf("got %v, %v, %v", got, next, err)
		}
		fill(20_001, 20_001)
		got, next, err := app.Deposits(t.Context(), p)
		if err != nil || len(got) != 0 || next.Seq != 2 {
			t.Fatalf("got %v, %v, %v", got, next, err)
		}
		p.Before = next
		if got, next, err := app.Deposits(t.Context(), p); err != nil || len(got) != 1 || got[0].ID != first.ID || next.Seq != 0 {
			t.Errorf("got %v, %v, %v", got, next, err)
		}
	})
}
