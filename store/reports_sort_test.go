package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// pagesOf reads a list in pages of two, as far as it goes.
func pagesOf[T any](t *testing.T, read func(store.Page) ([]T, bool, error), id func(T) ids.ID, name func(T) string) string {
	t.Helper()
	var names []string
	p := store.Page{Limit: 2}
	for {
		list, more, err := read(p)
		noError(t, err)
		for _, item := range list {
			names = append(names, name(item))
		}
		if !more {
			return strings.Join(names, " ")
		}
		p.Before = id(list[len(list)-1])
	}
}

func TestListsAreReadInEveryOrder(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	a := newTenant(t, db)
	a.newCredit(t, "tokens")
	identities := []string{"c", "a", " b", "e", "B"} // in the order of their creation
	var reversed []string
	for i, identity := range identities {
		d := depositOf(identity, "tokens", 5, fmt.Sprint("deposit ", i))
		a.deposit(t, d)
		noError(t, a.PutSubscription(t.Context(), identity, metering.Subscription{ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment)}))
		reversed = append([]string{identity}, reversed...)
	}
	sorted := slices.Sorted(slices.Values(identities))
	newest, oldest, byIdentity := strings.Join(reversed, " "), strings.Join(identities, " "), strings.Join(sorted, " ")
	read := db.Reports(a.application.Scope())

	for order, want := range map[reports.WalletOrder]string{reports.NewestWallets: newest, reports.OldestWallets: oldest, reports.ByIdentity: byIdentity} {
		got := pagesOf(t, func(p store.Page) ([]reports.WalletFound, bool, error) {
			return read.FindWallets(t.Context(), reports.WalletQuery{Order: order, Page: p})
		}, func(w reports.WalletFound) ids.ID { return w.ID }, func(w reports.WalletFound) string { return w.Identity })
		if got != want {
			t.Errorf("wallets in the order %q are %q, want %q", order, got, want)
		}
	}
	for fromOldest, want := range map[bool]string{false: newest, true: oldest} {
		for _, q := range []reports.DepositQuery{{}, {Kind: metering.EntryDeposit}, {CreditKey: "tokens"}} {
			q.Oldest = fromOldest
			got := pagesOf(t, func(p store.Page) ([]reports.DepositFound, bool, error) {
				q.Page = p
				return read.FindDeposits(t.Context(), q)
			}, func(d reports.DepositFound) ids.ID { return d.ID }, func(d reports.DepositFound) string { return d.Identity })
			if got != want {
				t.Errorf("deposits of %+v, oldest %t, are %q", q, fromOldest, got)
			}
		}
		for _, q := range []reports.SubscriptionQuery{{}, {Status: metering.StatusActive}} {
			q.Oldest = fromOldest
			got := pagesOf(t, func(p store.Page) ([]reports.SubscriptionFound, bool, error) {
				q.Page = p
				return read.FindSubscriptions(t.Context(), q)
			}, func(s reports.SubscriptionFound) ids.ID { return s.ID }, func(s reports.SubscriptionFound) string { return s.Identity })
			if got != want {
				t.Errorf("subscriptions of %+v, oldest %t, are %q", q, fromOldest, got)
			}
		}
	}
}
