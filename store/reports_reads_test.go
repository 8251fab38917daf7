package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

func TestSearchWallets(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	for _, identity := range []string{"ann", "ann@example.com", "anna", "bob", "An<b>n</b>", "änne", "USER-42", "user-7", "boris@contoso.example", "joanna"} {
		_, _, err := s.CreateWallet(t.Context(), ids.New(), identity, moment)
		noError(t, err)
	}
	search := func(t *testing.T, text string) (identities []string) {
		t.Helper()
		for next := (&reports.WalletSearch{Text: text, Page: store.Page{Limit: 2}}); next != nil; {
			list, after, err := s.Reports().SearchWallets(t.Context(), *next)
			noError(t, err)
			if len(list) > 2 {
				t.Fatalf("a page has %d wallets", len(list))
			}
			for _, w := range list {
				identities = append(identities, w.Identity)
			}
			next = after
		}
		return identities
	}
	for text, want := range map[string][]string{
		"ann":                   {"ann", "ann@example.com", "anna", "joanna"},
		"ANN":                   {"ann", "ann@example.com", "anna", "joanna"},
		"An<b":                  {"An<b>n</b>"},
		"an<B>":                 {"An<b>n</b>"},
		"%":                     nil,
		"_":                     nil,
		"ä":                     {"änne"},
		"user-42":               {"USER-42"},
		"USER-7":                {"user-7"},
		"user":                  {"USER-42", "user-7"},
		"42":                    {"USER-42"},
		"Boris@contoso.example": {"boris@contoso.example"},
		"CONTOSO":               {"boris@contoso.example"},
		"example":               {"boris@contoso.example", "ann@example.com"},
		"nn":                    {"joanna", "änne", "anna", "ann@example.com", "ann"},
		"nothing of the kind":   nil,
	} {
		t.Run("finds "+text+" in any case and at any place, once each", func(t *testing.T) {
			if got := search(t, text); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("finds only what begins with a text", func(t *testing.T) {
		var got []string
		for next := (&reports.WalletSearch{Text: "ANN", Begins: true, Page: store.Page{Limit: 2}}); next != nil; {
			list, after, err := s.Reports().SearchWallets(t.Context(), *next)
			noError(t, err)
			for _, w := range list {
				got = append(got, w.Identity)
			}
			next = after
		}
		if want := []string{"ann", "ann@example.com", "anna"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("says what a wallet holds", func(t *testing.T) {
		s.deposit(t, depositOf("bob", "tokens", 5, "for the search"))
		list, _, err := s.Reports().SearchWallets(t.Context(), reports.WalletSearch{Text: "BOB", Page: store.Page{Limit: 2}})
		if err != nil || len(list) != 1 || len(list[0].Balances) != 1 || list[0].Balances[0].Amount != 5 {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

func TestFindWallets(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	for _, identity := range []string{"ann", "ann@example.com", "anna", "bob"} {
		_, _, err := s.CreateWallet(t.Context(), ids.New(), identity, moment)
		noError(t, err)
	}
	find := func(t *testing.T, q reports.WalletQuery) (identities []string, more bool) {
		t.Helper()
		q.Limit = max(q.Limit, 2)
		list, more, err := s.Reports().FindWallets(t.Context(), q)
		noError(t, err)
		for _, w := range list {
			identities = append(identities, w.Identity)
		}
		return identities, more
	}
	wants := func(t *testing.T, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	t.Run("finds debts while they last", func(t *testing.T) {
		noError(t, store.TakeBack(t.Context(), s.App, "bob", "tokens", 5, moment))
		list, _ := find(t, reports.WalletQuery{Filter: reports.WalletsInDebt})
		wants(t, list, "bob")
		noError(t, store.TakeBack(t.Context(), s.App, "bob", "tokens", 5, moment))
		s.deposit(t, depositOf("bob", "tokens", 9, "not all"))
		list, _ = find(t, reports.WalletQuery{Filter: reports.WalletsInDebt})
		wants(t, list, "bob")
		if a, err := s.Reports().Attention(t.Context(), moment); err != nil || a.InDebt != 1 {
			t.Errorf("got %+v, %v", a, err)
		}
		s.deposit(t, depositOf("bob", "tokens", 1, "the rest"))
		list, _ = find(t, reports.WalletQuery{Filter: reports.WalletsInDebt})
		wants(t, list)
	})

	t.Run("finds payment holds, with the subscription", func(t *testing.T) {
		held := metering.Subscription{ID: ids.New(), Status: metering.StatusPastDue, Period: metering.MonthOf(moment)}
		noError(t, s.PutSubscription(t.Context(), "anna", held))
		list, _, err := s.Reports().FindWallets(t.Context(), reports.WalletQuery{Filter: reports.WalletsOnHold, Page: store.Page{Limit: 5}})
		noError(t, err)
		if len(list) != 1 || list[0].Identity != "anna" || list[0].Subscription == nil || list[0].Subscription.Status != metering.StatusPastDue {
			t.Errorf("got %+v", list)
		}
		subscriptions, _, err := s.Reports().FindSubscriptions(t.Context(), reports.SubscriptionQuery{OnHold: true, Page: store.Page{Limit: 5}})
		if err != nil || len(subscriptions) != 1 || subscriptions[0].ID != held.ID || subscriptions[0].Identity != "anna" {
			t.Errorf("got %+v, %v", subscriptions, err)
		}
		for status, want := range map[metering.SubscriptionStatus]int{metering.StatusPastDue: 1, metering.StatusActive: 0, "": 1} {
			list, _, err := s.Reports().FindSubscriptions(t.Context(), reports.SubscriptionQuery{Status: status, Page: store.Page{Limit: 5}})
			if err != nil || len(list) != want {
				t.Errorf("%q: %d subscriptions, %v", status, len(list), err)
			}
		}
	})
}

func TestJournal(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	s.newCredit(t, "coins")
	s.deposit(t, depositOf("ann", "tokens", 1_000, "journal 1"))
	s.deposit(t, depositOf("ann", "coins", 50, "journal 2"))
	used := s.track(t, "ann", 3)
	wallet, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	adjustment := store.Adjustment{
		ID: ids.New(), WalletID: wallet.ID, CreditKey: "tokens", Delta: metering.Delta{Amount: 9, Out: true}, Reason: "double grant", By: ids.New(), Now: moment,
	}
	noError(t, s.Adjust(t.Context(), adjustment))
	noError(t, store.TakeBack(t.Context(), s.App, "ann", "tokens", 1_000, moment))

	t.Run("has every change with the balance after it, and proves its sums", func(t *testing.T) {
		list, proof, more, err := s.Reports().Journal(t.Context(), reports.JournalPage{WalletID: wallet.ID, Limit: 10})
		noError(t, err)
		var seen []string
		for _, l := range list {
			seen = append(seen, fmt.Sprintf("%d %s %s %v%d %d/%d", l.Seq, l.Kind, l.CreditKey, l.Delta.Out, l.Delta.Amount, l.BalanceAfter, l.DebtAfter))
		}
		want := []string{"5 refund tokens true1000 0/30", "4 adjustment tokens true9 970/0", "3 charge tokens true21 979/0", "2 deposit coins false50 50/0", "1 deposit tokens false1000 1000/0"}
		if !slices.Equal(seen, want) || more {
			t.Errorf("got %q", seen)
		}
		if list[1].Reason != "double grant" || list[2].FeatureKey != "messages" || list[2].EventID != used.Event.EventID || list[2].Quantity != 3 {
			t.Errorf("got %+v and %+v", list[1], list[2])
		}
		for _, r := range proof {
			if !r.Valid || !r.Known || r.Opening.Amount != 0 {
				t.Errorf("the proof of %v is %+v", r.CreditID, r)
			}
		}
	})

	t.Run("proves a page by the entries before it", func(t *testing.T) {
		list, proof, more, err := s.Reports().Journal(t.Context(), reports.JournalPage{WalletID: wallet.ID, Before: 5, Limit: 2})
		noError(t, err)
		if len(list) != 2 || list[0].Seq != 4 || !more || len(proof) != 1 || !proof[0].Known || proof[0].Opening.Amount != 1000 || !proof[0].Valid {
			t.Errorf("got %+v, %+v", list, proof)
		}
	})

	t.Run("explains a charge by its transaction", func(t *testing.T) {
		found, err := s.Reports().Transaction(t.Context(), used.Event.TransactionID)
		noError(t, err)
		e := found.Event
		if e == nil || e.Identity != "ann" || e.FeatureKey != "messages" || e.CreditKey != "tokens" || e.KeyName != s.key.Name || e.BalanceAfter != 979 {
			t.Fatalf("got %+v", found)
		}
		if d := e.Derivation(); !d.Holds || d.Amount != 21 {
			t.Errorf("it is derived by %+v", d)
		}
	})

	t.Run("explains an adjustment by its reason", func(t *testing.T) {
		found, err := s.Reports().Transaction(t.Context(), adjustment.ID)
		noError(t, err)
		if found.Entry == nil || found.Entry.Reason != "double grant" || found.ByUserID != adjustment.By || found.Identity != "ann" || found.WalletID != wallet.ID {
			t.Errorf("got %+v", found)
		}
		_, err = s.Reports().Transaction(t.Context(), ids.New())
		wantFault(t, err, fault.PathNotFound)
	})
}

func TestAdjust(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	s.deposit(t, depositOf("ann", "tokens", 100, "to adjust"))
	wallet, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	adjustment := func(amount metering.Amount, out bool) store.Adjustment {
		return store.Adjustment{ID: ids.New(), WalletID: wallet.ID, CreditKey: "tokens", Delta: metering.Delta{Amount: amount, Out: out}, Reason: "why", By: ids.New(), Now: moment}
	}
	holds := func(t *testing.T, want metering.Amount) {
		t.Helper()
		w, err := s.Wallet(t.Context(), "ann")
		if err != nil || w.Balances[0].Amount != want {
			t.Errorf("the wallet holds %+v, %v", w.Balances, err)
		}
	}

	t.Run("corrects once when it is sent twice", func(t *testing.T) {
		twice := adjustment(5, false)
		noError(t, s.Adjust(t.Context(), twice))
		noError(t, s.Adjust(t.Context(), twice))
		holds(t, 105)
	})
	t.Run("takes no more than there is", func(t *testing.T) {
		wantFault(t, s.Adjust(t.Context(), adjustment(106, true)), fault.InsufficientBalance)
		all := adjustment(105, true)
		for range 2 {
			noError(t, s.Adjust(t.Context(), all))
		}
		holds(t, 0)
	})
	t.Run("refuses another one with the same id", func(t *testing.T) {
		s.newCredit(t, "coins")
		s.deposit(t, depositOf("bob", "tokens", 1, "of another"))
		other, err := s.Wallet(t.Context(), "bob")
		noError(t, err)
		sent := adjustment(3, false)
		noError(t, s.Adjust(t.Context(), sent))
		for name, differ := range map[string]func(*store.Adjustment){
			"amount":    func(a *store.Adjustment) { a.Delta.Amount = 2 },
			"direction": func(a *store.Adjustment) { a.Delta.Out = true },
			"reason":    func(a *store.Adjustment) { a.Reason = "another" },
			"credit":    func(a *store.Adjustment) { a.CreditKey = "coins" },
			"wallet":    func(a *store.Adjustment) { a.WalletID = other.ID },
		} {
			t.Run(name, func(t *testing.T) {
				different := sent
				differ(&different)
				wantFault(t, s.Adjust(t.Context(), different), fault.IdempotencyConflict)
			})
		}
		holds(t, 3)
		noError(t, s.Adjust(t.Context(), adjustment(3, true)))
	})
	t.Run("wants an amount and a reason", func(t *testing.T) {
		wantFault(t, s.Adjust(t.Context(), adjustment(0, false)), fault.InvalidRequest)
		silent := adjustment(1, false)
		silent.Reason = ""
		wantFault(t, s.Adjust(t.Context(), silent), fault.InvalidRequest)
		holds(t, 0)
	})
	t.Run("is seen by the next use", func(t *testing.T) {
		if d := s.track(t, "ann", 1); d.Code != fault.InsufficientBalance {
			t.Fatalf("got %+v", d)
		}
		noError(t, s.Adjust(t.Context(), adjustment(7, false)))
		if d := s.track(t, "ann", 1); d.Verdict != metering.Accepted {
			t.Errorf("got %+v", d)
		}
		holds(t, 0)
	})
}

func TestFindDeposits(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	s.newCredit(t, "coins")
	const day = 24 * 3_600_000
	moment := time.Now().UnixMilli() // an entry's id is as old as the entry
	for i, credit := range []string{"tokens", "coins", "tokens"} {
		d := depositOf(fmt.Sprint("user ", i), credit, metering.Amount(i+1), fmt.Sprint("found ", i))
		d.ID, d.CreatedAt = shifted(ids.New(), int64(i)*day), moment+int64(i)*day
		s.deposit(t, d)
	}
	noError(t, store.TakeBack(t.Context(), s.App, "user 0", "tokens", 1, moment))
	for name, c := range map[string]struct {
		query reports.DepositQuery
		want  []metering.Amount
	}{
		"all of them, newest first":   {reports.DepositQuery{}, []metering.Amount{3, 2, 1}},
		"those of a credit":           {reports.DepositQuery{CreditKey: "tokens"}, []metering.Amount{3, 1}},
		"those of a kind":             {reports.DepositQuery{Kind: metering.EntryGrant}, nil},
		"those since a moment":        {reports.DepositQuery{From: moment + day}, []metering.Amount{3, 2}},
		"those of a half-open period": {reports.DepositQuery{From: moment, To: moment + 2*day}, []metering.Amount{2, 1}},
	} {
		t.Run("gives "+name, func(t *testing.T) {
			c.query.Limit = 10
			list, _, err := s.Reports().FindDeposits(t.Context(), c.query)
			noError(t, err)
			var got []metering.Amount
			for _, d := range list {
				got = append(got, d.Amount)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := newKiosk(t, openStore(t, url))
	s.newFeature(t, featureOf("rare", "tokens"))
	s.deposit(t, depositOf("ann", "tokens", 1_000_000, "events"))
	wallet, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	var made []ids.ID // oldest first, three days apart
	start := ids.New()
	for i := range 12 {
		s.now = moment + int64(i-12)*3*24*3_600_000
		use := s.use("ann", 1)
		if i == 4 {
			use.FeatureKey = "rare"
		}
		use.TransactionID = shifted(start, int64(i-12)*3*24*3_600_000)
		_, err := s.usage.Track(use)
		noError(t, err)
		made = append(made, use.TransactionID)
	}
	noError(t, s.db.Stats().WriteStats(t.Context())) // of the hours, which size the windows

	for name, rows := range map[string]int{"at once": 0, "look by look": 5_000_000} {
		t.Run("are listed newest first, each once, "+name, func(t *testing.T) {
			exec(t, connect(t, url), fmt.Sprintf(`UPDATE pg_class SET reltuples = %d WHERE relname = 'usage_events'`, rows))
			seen := readEvents(t, s, reports.EventQuery{Page: store.Page{Limit: 5}})
			slices.Reverse(seen)
			if !slices.Equal(seen, made) {
				t.Errorf("got %v, want %v", seen, made)
			}
		})
	}

	t.Run("are found by feature", func(t *testing.T) {
		list := readEvents(t, s, reports.EventQuery{FeatureKey: "rare", Page: store.Page{Limit: 5}})
		if len(list) != 1 || list[0] != made[4] {
			t.Errorf("got %v", list)
		}
		_, _, err := s.Reports().Events(t.Context(), reports.EventQuery{FeatureKey: "none", Page: store.Page{Limit: 5}})
		wantFault(t, err, fault.FeatureNotFound)
	})

	t.Run("are not looked for when a feature was never used", func(t *testing.T) {
		s.newFeature(t, featureOf("unused", "tokens"))
		list, next, err := s.Reports().Events(t.Context(), reports.EventQuery{FeatureKey: "unused", Page: store.Page{Limit: 5}})
		if err != nil || len(list) != 0 || next != nil {
			t.Errorf("got %+v, then %+v, %v", list, next, err)
		}
	})

	t.Run("are found by their own id and by wallet", func(t *testing.T) {
		all, _, err := s.Reports().Events(t.Context(), reports.EventQuery{WalletID: wallet.ID, Page: store.Page{Limit: 20}})
		noError(t, err)
		list, _, err := s.Reports().Events(t.Context(), reports.EventQuery{EventID: all[3].EventID})
		if err != nil || len(list) != 1 || list[0].TransactionID != all[3].TransactionID {
			t.Errorf("got %+v, %v", list, err)
		}
		list, next, err := s.Reports().Events(t.Context(), reports.EventQuery{WalletID: all[0].WalletID, BeforeSeq: 5, Page: store.Page{Limit: 2}})
		if err != nil || len(list) != 2 || next == nil || list[0].Seq != 4 {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

// readEvents goes through all pages of a list.
func readEvents(t *testing.T, s *kiosk, q reports.EventQuery) (seen []ids.ID) {
	t.Helper()
	for range 50 {
		list, next, err := s.Reports().Events(t.Context(), q)
		noError(t, err)
		for _, e := range list {
			seen = append(seen, e.TransactionID)
		}
		if next == nil {
			return seen
		}
		q.Page = *next
	}
	t.Fatal("the list never ends")
	return nil
}

// shifted is the id, made at another time.
func shifted(id ids.ID, millis int64) ids.ID {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	ms += millis
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	fresh := ids.New()
	copy(id[6:], fresh[6:])
	return id
}
