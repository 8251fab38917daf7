package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/store"
	"purser/store/payments"
	"purser/store/storetest"
)

func sandboxRow(kind, id string, nth int64, refs ...string) persist.Row {
	return persist.Row{Key: persist.Key(kind, id), Kind: kind, Nth: nth, Refs: refs, Document: []byte(fmt.Sprintf("%s %s", kind, id))}
}

// putRows stores rows of an application.
func putRows(t *testing.T, accounts payments.SandboxAccounts, app ids.ID, change persist.Change) {
	t.Helper()
	change.Head = []byte("{}")
	noError(t, accounts.Update(t.Context(), app, persist.Want{}, func(persist.Session) (persist.Change, error) { return change, nil }))
}

// readRows is what a read of an application finds, as sorted keys.
func readRows(t *testing.T, accounts payments.SandboxAccounts, app ids.ID, read func(persist.Source) ([]persist.Row, error)) (keys []string) {
	t.Helper()
	noError(t, accounts.View(t.Context(), app, persist.Want{}, func(s persist.Session) error {
		rows, err := read(s.Source)
		for _, row := range rows {
			keys = append(keys, row.Key)
			if want := strings.Replace(row.Key, "/", " ", 1); string(row.Document) != want {
				t.Errorf("%s holds %q", row.Key, row.Document)
			}
		}
		return err
	}))
	slices.Sort(keys)
	return keys
}

func wantKeys(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("it reads %v, want %v", got, want)
	}
}

func TestSandboxObjects(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	accounts := db.SandboxAccounts()
	a, b := newTenant(t, db), newTenant(t, db)
	app, other := a.application.ID, b.application.ID

	rows := []persist.Row{
		sandboxRow("price", "p", 1, "product/x"), sandboxRow("product", "x", 2, "price/p", "price/gone"), // a circle, and a hole
		sandboxRow("customer", "c", 3), sandboxRow("customer", "lonely", 4),
	}
	for i := range int64(5) {
		row := sandboxRow("invoice", fmt.Sprint("i", i), 10+i, "price/p", "customer/c")
		row.Customer, row.Parent, row.Alias = "c", fmt.Sprint("s", i%2), fmt.Sprint("token", i)
		if i == 4 {
			row.LiveOf = "s0"
		}
		rows = append(rows, row)
	}
	putRows(t, accounts, app, persist.Change{Rows: rows})
	// The same names elsewhere.
	putRows(t, accounts, other, persist.Change{Rows: []persist.Row{sandboxRow("price", "p", 1, "product/secret"), sandboxRow("product", "secret", 2)}})

	t.Run("are read with what they refer to", func(t *testing.T) {
		wantKeys(t, readRows(t, accounts, app, func(s persist.Source) ([]persist.Row, error) { return s.Load([]string{"invoice/i0", "nothing/at all"}) }),
			"customer/c", "invoice/i0", "price/p", "product/x")
		wantKeys(t, readRows(t, accounts, other, func(s persist.Source) ([]persist.Row, error) { return s.Load([]string{"price/p", "invoice/i0"}) }),
			"price/p", "product/secret")
		noError(t, accounts.Update(t.Context(), app, persist.Want{Keys: []string{"price/p"}}, func(s persist.Session) (persist.Change, error) {
			if len(s.Rows) != 2 {
				t.Errorf("%d rows come with the account", len(s.Rows))
			}
			return persist.Change{Head: s.Head}, nil
		}))
	})

	t.Run("are listed in order, by page and by what they belong to", func(t *testing.T) {
		page := func(p persist.Page) []string {
			return readRows(t, accounts, app, func(s persist.Source) ([]persist.Row, error) {
				rows, err := s.Page(p)
				return slices.DeleteFunc(rows, func(r persist.Row) bool { return r.Kind != "invoice" }), err
			})
		}
		wantKeys(t, page(persist.Page{Kind: "invoice", Limit: 2, From: 14}), "invoice/i2", "invoice/i3")
		wantKeys(t, page(persist.Page{Kind: "invoice", Limit: 2, From: 11, Oldest: true}), "invoice/i2", "invoice/i3")
		wantKeys(t, page(persist.Page{Kind: "invoice", Index: persist.ByParent, Value: "s1", Limit: 9, From: 99}), "invoice/i1", "invoice/i3")
		wantKeys(t, page(persist.Page{Kind: "invoice", Index: persist.ByCustomer, Value: "c", Limit: 1, From: 99}), "invoice/i4")
		wantKeys(t, page(persist.Page{Kind: "invoice", Index: persist.ByCustomer, Value: "lonely", Limit: 1, From: 99}))
	})

	t.Run("are found by their other names, in their own application", func(t *testing.T) {
		lookup := func(app ids.ID, index persist.Index, values ...string) []string {
			return readRows(t, accounts, app, func(s persist.Source) ([]persist.Row, error) {
				rows, err := s.Lookup("invoice", index, values)
				return slices.DeleteFunc(rows, func(r persist.Row) bool { return r.Kind != "invoice" }), err
			})
		}
		wantKeys(t, lookup(app, persist.ByAlias, "token1"), "invoice/i1")
		wantKeys(t, lookup(other, persist.ByAlias, "token1"))
		wantKeys(t, lookup(app, persist.ByLiveOf, "s0", "s1"), "invoice/i4")
		wantKeys(t, lookup(app, persist.ByParent, "s0"), "invoice/i0", "invoice/i2", "invoice/i4")
		for _, c := range []struct {
			app        ids.ID
			kind, name string
			byAlias    bool
			want       string
		}{
			{app, "invoice", "token1", true, "invoice/i1"}, {app, "invoice", "i1", false, "invoice/i1"}, {app, "invoice", "i1", true, ""},
			{app, "price", "token1", true, ""}, {other, "invoice", "token1", true, ""}, {other, "invoice", "i1", false, ""}, {ids.New(), "invoice", "i1", false, ""},
		} {
			key, found, err := accounts.Find(t.Context(), c.app, c.kind, c.name, c.byAlias)
			noError(t, err)
			if key != c.want || found != (c.want != "") {
				t.Errorf("%s %s is %q", c.kind, c.name, key)
			}
		}
	})

	t.Run("are replaced and dropped where that was asked for", func(t *testing.T) {
		changed := sandboxRow("customer", "c", 3)
		changed.Document = []byte("customer c")
		putRows(t, accounts, app, persist.Change{Rows: []persist.Row{changed}, Deleted: []string{"customer/lonely", "customer/unknown"}})
		everything := func(app ids.ID) []string {
			return readRows(t, accounts, app, func(s persist.Source) ([]persist.Row, error) { return s.Everything() })
		}
		if keys := everything(app); len(keys) != 8 || slices.Contains(keys, "customer/lonely") {
			t.Errorf("%v are left", keys)
		}
		putRows(t, accounts, app, persist.Change{Replace: true, Rows: []persist.Row{sandboxRow("price", "new", 1)}})
		wantKeys(t, everything(app), "price/new")
		wantKeys(t, everything(other), "price/p", "product/secret")
	})

	t.Run("are pruned by age and by number, unless something waits for them", func(t *testing.T) {
		var rows []persist.Row
		for i := range int64(6) {
			row := sandboxRow("event", fmt.Sprint("e", i), i+1)
			row.Timed, row.Due = true, 100+i
			rows = append(rows, row)
		}
		waits := sandboxRow("delivery", "d", 20, "event/e0")
		waits.Parent, waits.Timed = "e0", true
		prune := []persist.Prune{{Kind: "event", Before: 102, Keep: 3, Unless: "delivery"}}
		putRows(t, accounts, app, persist.Change{Replace: true, Rows: append(rows, waits), Prune: prune})
		wantKeys(t, readRows(t, accounts, app, func(s persist.Source) ([]persist.Row, error) { return s.Everything() }),
			"delivery/d", "event/e0", "event/e3", "event/e4", "event/e5")
		noError(t, accounts.View(t.Context(), app, persist.Want{}, func(s persist.Session) error {
			ready, err := s.Source.Ready("delivery", 0, 5)
			if len(ready) != 2 {
				t.Errorf("%d rows are ready", len(ready))
			}
			first, found, dueErr := s.Source.FirstDue("event", []string{"event/e0"})
			if first != 103 || !found {
				t.Errorf("the first is due at %d", first)
			}
			return errors.Join(err, dueErr)
		}))
	})
}

func TestTimersOfTheSandboxComeInOrder(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	accounts, app := db.SandboxAccounts(), newTenant(t, db).application.ID
	var rows []persist.Row
	for i, due := range []int64{50, 20, 20, 70} {
		row := sandboxRow("timer", fmt.Sprint(i), int64(i))
		row.Timed, row.Due = true, due
		rows = append(rows, row)
	}
	putRows(t, accounts, app, persist.Change{Rows: rows})
	noError(t, accounts.View(t.Context(), app, persist.Want{Timers: "timer", Limit: 2}, func(s persist.Session) error {
		if len(s.Timers) != 2 || s.Timers[0].Key != "timer/1" || s.Timers[1].Key != "timer/2" {
			t.Errorf("first come %+v", s.Timers)
		}
		next, err := s.Source.Earliest("timer", 20, 2, 5)
		if len(next) != 2 || next[0].Key != "timer/0" {
			t.Errorf("then come %+v", next)
		}
		return err
	}))
}

// An account that was never stored as rows may have any page.
func TestADocumentOfTheSandboxIsHandedOutUntilItIsRows(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	accounts, app := db.SandboxAccounts(), newTenant(t, db).application.ID
	putRows(t, accounts, app, persist.Change{})
	exec(t, connect(t, storetest.URL(t)), `UPDATE sandbox_worlds SET head = NULL, state = 'the document' WHERE app_id = $1`, app)

	if _, found, err := accounts.Find(t.Context(), app, "session", "any", false); err != nil || !found {
		t.Errorf("a page of it is found: %v, %v", found, err)
	}
	noError(t, accounts.Update(t.Context(), app, persist.Want{}, func(s persist.Session) (persist.Change, error) {
		if s.Head != nil || string(s.Legacy) != "the document" {
			t.Errorf("it begins with %q and %q", s.Head, s.Legacy)
		}
		return persist.Change{Head: []byte("rows")}, nil
	}))
	noError(t, accounts.View(t.Context(), app, persist.Want{}, func(s persist.Session) error {
		if string(s.Head) != "rows" || s.Legacy != nil {
			t.Errorf("afterwards it is %q and %q", s.Head, s.Legacy)
		}
		return nil
	}))
	if _, found, err := accounts.Find(t.Context(), app, "session", "any", false); err != nil || found {
		t.Errorf("afterwards a page of it is found: %v, %v", found, err)
	}
	// What an older program would find is nothing that it could take for an empty account.
	if state := texts(t, connect(t, storetest.URL(t)), `SELECT convert_from(state, 'UTF8') FROM sandbox_worlds WHERE app_id = $1`, app); state[0] != `{"Version": 2}` {
		t.Errorf("the document is %q", state[0])
	}
}

// What strangers do at the sandbox's pages leaves connections to everything else.
func TestTheSandboxUsesAFewConnections(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	accounts := db.SandboxAccounts()
	const most = 4
	entered, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for range most {
		app := newTenant(t, db).application.ID
		go func() {
			ended <- accounts.Update(t.Context(), app, persist.Want{}, func(persist.Session) (persist.Change, error) {
				entered <- struct{}{}
				<-leave
				return persist.Change{Head: []byte("{}")}, nil
			})
		}()
	}
	for range most {
		<-entered
	}
	late := newTenant(t, db) // which needs connections of its own
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := accounts.Find(ctx, late.application.ID, "session", "x", false); !errors.Is(err, context.Canceled) {
		t.Errorf("one more does not wait: %v", err)
	}
	close(leave)
	for range most {
		noError(t, <-ended)
	}
	if _, _, err := accounts.Find(t.Context(), late.application.ID, "session", "x", false); err != nil {
		t.Error(err)
	}
}

// The statements of the sandbox read by an index whatever the application holds.
func TestPlansOfTheSandboxUseItsIndexes(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	owner := connect(t, url)
	large, small := ids.New(), ids.New()
	check := func(t *testing.T, app ids.ID) {
		t.Helper()
		conn, seen := planner(t, url, app), 0
		for _, s := range store.Statements() {
			if !strings.Contains(s.SQL, "FROM sandbox_objects") || strings.Contains(s.SQL, "DELETE") || strings.HasPrefix(s.Name, "all ") {
				continue
			}
			seen++
			plan := genericPlan(t, conn, s)
			for _, bad := range []string{"Seq Scan on public.sandbox", "Hash Join", "Merge Join"} {
				if strings.Contains(plan, bad) {
					t.Errorf("%s has a %s:\n%s", s.Name, bad, plan)
				}
			}
		}
		if seen < 12 {
			t.Errorf("only %d statements were looked at", seen)
		}
	}
	t.Run("when they are made on an empty table", func(t *testing.T) { check(t, small) })
	exec(t, owner, `INSERT INTO sandbox_objects (app_id, org_id, key, kind, nth, customer, parent, alias, due, refs, document)
		SELECT CASE WHEN n <= 20000 THEN $1 WHEN n = 20001 THEN $2 ELSE gen_random_uuid() END, gen_random_uuid(), 'session/' || n, 'session', n,
			n::text, n::text, n::text, n, '{}', '' FROM generate_series(1, 21000) n`, large, small)
	exec(t, owner, `ANALYZE sandbox_objects`)
	t.Run("when a large application makes them", func(t *testing.T) { check(t, large) })
	t.Run("when a small application makes them", func(t *testing.T) { check(t, small) })
}
