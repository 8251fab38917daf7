package store_test

import (
	"fmt"
	"sync"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// The hot path has no handle of its own: it goes by the scope of each use, and one
// transaction serves several applications.
func TestUsesStayInTheirApplication(t *testing.T) {
	t.Parallel()
	url := urlWithoutPolicies(t)
	db, owner := openStore(t, url), connect(t, url)
	usage := openUsage(t, db)
	home, sameNames := newFixture(t, db, usage), newFixture(t, db, usage)
	otherTenant := newTenant(t, db)
	otherKey, _ := otherTenant.newKey(t, keys.Ingestion)

	// What only the fixture has. The node knows all of it from here on.
	home.tenant.deposit(t, depositOf("rich@example.com", "tokens", 1_000_000, "all of it"))
	theirs := home.useOf("messages", "only theirs")
	theirs.Identity = "rich@example.com"
	first, err := usage.Track(theirs)
	noError(t, err)
	noError(t, first.Err())
	before := dump(t, owner, home)

	for name, ask := range map[string]func(store.Usage) (metering.Decision, error){"track": usage.Track, "check": usage.Check} {
		foreign := func(scope tenant, key ids.ID) store.Usage {
			use := theirs
			use.Scope, use.KeyID, use.TransactionID = scope.application.Scope(), key, ids.New()
			return use
		}
		t.Run(name+" does not take another application's key", func(t *testing.T) {
			_, err := ask(foreign(sameNames.tenant, home.key.ID))
			wantFault(t, err, fault.InvalidAPIKey)
		})
		t.Run(name+" does not find another application's feature", func(t *testing.T) {
			_, err := ask(foreign(otherTenant, otherKey.ID))
			wantFault(t, err, fault.FeatureNotFound)
		})
		t.Run(name+" does not spend another application's balance", func(t *testing.T) {
			decision, err := ask(foreign(sameNames.tenant, sameNames.key.ID))
			noError(t, err)
			wantFault(t, decision.Err(), fault.InsufficientBalance)
			if decision.Before.Amount != 0 {
				t.Errorf("it sees %d nanocredits", decision.Before.Amount)
			}
		})
		t.Run(name+" does not know another application's event ids", func(t *testing.T) {
			use := foreign(sameNames.tenant, sameNames.key.ID)
			use.Identity = "ann@example.com" // who has something there as well
			decision, err := ask(use)
			noError(t, err)
			if decision.Verdict != metering.Accepted || decision.Event.TransactionID != use.TransactionID {
				t.Errorf("it is %s, by transaction %s", decision.Verdict, decision.Event.TransactionID)
			}
		})
	}

	if after := dump(t, owner, home); after != before {
		t.Errorf("rows have changed from\n%s\nto\n%s", before, after)
	}
}

func TestOneBatchKeepsApplicationsApart(t *testing.T) {
	t.Parallel()
	db := openStore(t, urlWithoutPolicies(t))
	usage := openUsage(t, db)
	homes := []fixture{newFixture(t, db, usage), newFixture(t, db, usage), newFixture(t, db, usage)}
	const requests = 20

	// The same identities, feature keys and event ids everywhere, all at once.
	var wait sync.WaitGroup
	for i := range requests {
		for _, home := range homes {
			wait.Go(func() {
				use := home.useOf("messages", fmt.Sprint("shared ", i))
				decision, err := usage.Track(use)
				if err != nil || decision.Verdict != metering.Accepted || decision.Event.TransactionID != use.TransactionID {
					t.Errorf("%v: %s, %v", use.Scope.AppID, decision.Verdict, err)
				}
			})
		}
	}
	wait.Wait()

	for _, home := range homes {
		wallet, err := home.Wallet(t.Context(), "ann@example.com")
		noError(t, err)
		// The fixture's own two uses cost 2 × 7, one unit free, and 3 × 7.
		const spent = (2 + 3 + requests*3) * 7
		if got := wallet.Balance(home.credit.ID).Amount; got != 1_000-spent {
			t.Errorf("%d nanocredits are left, not %d", got, 1_000-spent)
		}
	}
}

// An id or a hash that is taken elsewhere is refused, and leads where it led.
func TestTakenIdsLeadWhereTheyLed(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)
	owner := connect(t, storetest.URL(t))
	home, otherTenant := newFixture(t, db, usage), newTenant(t, db)
	before := dump(t, owner, home)

	t.Run("a key's hash", func(t *testing.T) {
		stolen := home.key
		stolen.Scope = otherTenant.application.Scope()
		if err := otherTenant.CreateKey(t.Context(), stolen); err == nil {
			t.Error("it was taken a second time")
		}
		if list, _, err := otherTenant.Keys(t.Context(), store.Page{Limit: 10}); err != nil || len(list) != 0 {
			t.Errorf("half of the key stayed: %v, %v", list, err)
		}
	})

	t.Run("an application's id", func(t *testing.T) {
		stolen := home.application
		stolen.OrgID, stolen.Slug = otherTenant.org.ID, "stolen"
		if _, err := db.Org(otherTenant.org.ID).CreateApplication(t.Context(), stolen); err == nil {
			t.Error("it was taken a second time")
		}
	})

	if after := dump(t, owner, home); after != before {
		t.Errorf("rows have changed from\n%s\nto\n%s", before, after)
	}
	address, err := openStore(t, storetest.URL(t)).Directory().KeyByHash(t.Context(), home.key.Hash)
	if err != nil || address.Scope != home.application.Scope() || address.KeyID != home.key.ID {
		t.Errorf("the key leads to %v, %v", address, err)
	}
}
