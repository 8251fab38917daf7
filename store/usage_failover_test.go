package store_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// A standby that takes over without the last changes makes others in their place. A node
// that remembers the lost ones must not take its state for the stored one.
func TestANodeThatRemembersLostChangesReadsAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, s shop, n node, lost bool){
		"events": func(t *testing.T, s shop, n node, lost bool) {
			use := s.message("ann", freshID())
			if !lost {
				use.Quantity = 5
			}
			mustAccept(t, n, use)
		},
		"deposits": func(t *testing.T, s shop, _ node, lost bool) {
			amount := metering.Amount(1000)
			if !lost {
				amount = 3
			}
			s.credit(t, "ann", amount)
		},
		"prices": func(t *testing.T, s shop, _ node, lost bool) {
			cost := metering.Amount(30)
			if !lost {
				cost = 50
			}
			_, err := s.UpdateFeature(t.Context(), "message", metering.FeaturePatch{Cost: &cost}, moment)
			noError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.FreshURL(t)
			s := newShopOfOneLane(t, url, 2)
			s.credit(t, "ann", 10_000)
			mustAccept(t, s.nodes[1], s.message("ann", freshID()))
			restore := savedTables(t, url)
			change(t, s, s.nodes[0], true)
			s.warm(t, s.nodes[0], "ann", true)
			restore()
			// As many changes as were lost, but others.
			change(t, s, s.nodes[1], false)
			mustAccept(t, s.nodes[1], s.message("ann", freshID()))

			before, price := s.balance(t, "ann"), messagePrice
			if name == "prices" {
				price = 50
			}
			mustAccept(t, s.nodes[0], s.message("ann", freshID()))
			if after := s.balance(t, "ann"); after != before-price {
				t.Errorf("%d tokens after one message, and before it %d", after, before)
			}
		})
	}
}

// A wallet of the lost history does not come back with its balance: a batch of several
// wallets inserts those that are missing.
func TestALostWalletDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for name, reconnect := range map[string]func(*testing.T, *store.Engine){
		"on a new connection": func(_ *testing.T, usage *store.Engine) { usage.CachedFromAnother(false) },
		"on a borrowed connection": func(t *testing.T, usage *store.Engine) {
			usage.CachedFromAnother(true)
			noError(t, usage.Borrow(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.FreshURL(t)
			s := newShopOfOneLane(t, url, 1)
			n := s.nodes[0]
			for _, identity := range []string{"ann", "gate"} {
				s.credit(t, identity, 10_000)
				s.warm(t, n, identity, true)
			}
			restore := savedTables(t, url)
			s.credit(t, "lost", 10_000)
			s.warm(t, n, "lost", true)
			restore()
			reconnect(t, n.usage)
			var uses []store.Usage
			for range store.MinOptimistic {
				uses = append(uses, s.message("ann", freshID()), s.message("lost", freshID()))
			}
			got := tally(s.inOneBatch(t, url, n, "gate", uses, nil))
			if got[string(metering.Accepted)] != store.MinOptimistic || got[string(fault.InsufficientBalance)] != store.MinOptimistic {
				t.Errorf("the events are %v", got)
			}
			if found := texts(t, connect(t, url), `SELECT identity FROM wallets WHERE identity = 'lost'`); len(found) > 0 {
				t.Error("the wallet is back")
			}
		})
	}
}

// savedTables keeps what an application's tables hold; restore puts it back.
func savedTables(t *testing.T, url string) (restore func()) {
	t.Helper()
	conn := connect(t, url)
	run := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		noError(t, err)
	}
	rows, err := conn.Query(t.Context(), `
		SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id'
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	noError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	noError(t, err)
	for _, table := range tables {
		run(fmt.Sprintf(`CREATE TEMP TABLE saved_%[1]s AS TABLE %[1]s`, table))
	}
	return func() {
		t.Helper()
		run(`BEGIN; SET LOCAL session_replication_role = replica`)
		for _, table := range tables {
			run(fmt.Sprintf(`DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM saved_%[1]s`, table))
		}
		run(`COMMIT`)
	}
}
