package api_test

import (
	"testing"

	"purser/fault"
)

const staleCursor = "Invalid cursor. Start again without it."

// walletLists are the paths of lists of a wallet with deposits and charges in turn, with the
// beginning of their queries.
func walletLists(identity string) map[string]string {
	journal := "/v1/wallets/" + identity + "/journal?"
	return map[string]string{
		"events":             "/v1/events?identity=" + identity + "&",
		"deposits":           "/v1/deposits?identity=" + identity + "&",
		"journal":            journal,
		"journal, ascending": journal + "after=0&",
	}
}

// fillWallet adds four deposits and four charges of an identity.
func (tn *tenant) fillWallet(identity string) {
	for range 4 {
		tn.deposit(identity, "tokens", "100000000")
		tn.use(identity, "call", nil).is(201)
	}
}

// TestCursorsStayInTheirWallet lists entries of a wallet whose identity gets another
// wallet between two pages.
func TestCursorsStayInTheirWallet(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"rename", "erase"} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			tn, identity, renamed := newTenant(t), newHolder(), newHolder()
			tn.credit("tokens")
			tn.feature("call", "tokens", nil)
			tn.fillWallet(identity)
			lists, cursors := walletLists(identity), map[string]string{}
			for name, path := range lists {
				cursors[name] = tn.get(path + "limit=2").is(200).text("cursor")
				if next := tn.get(path + "limit=2&cursor=" + cursors[name]).is(200).object()["data"].([]any); len(next) != 2 {
					t.Errorf("%s: the second page is %v", name, next)
				}
			}
			if change == "rename" {
				tn.post("/v1/wallets/"+identity+"/rename", fields{"identity": renamed, "idempotencyKey": newName()}).is(200)
			} else {
				tn.post("/v1/wallets/"+identity+"/erase", fields{"reason": "asked by letter", "idempotencyKey": newName()}).is(200)
			}
			for name, path := range lists {
				if tn.get(path+"cursor="+cursors[name]).refused(fault.InvalidRequest).text("message") != staleCursor {
					t.Errorf("%s: the refusal doesn't say that the cursor is invalid", name)
				}
			}
			for _, name := range []string{"events", "deposits"} {
				tn.get(lists[name]).is(200).has(fields{"data": []fields{}, "cursor": nil})
			}
			tn.get(lists["journal"]).refused(fault.WalletNotFound)
			tn.get(lists["journal, ascending"]).refused(fault.WalletNotFound)

			tn.fillWallet(identity)
			for name, path := range lists {
				tn.get(path + "cursor=" + cursors[name]).refused(fault.InvalidRequest)
			}
			if change != "rename" {
				return
			}
			tn.post("/v1/wallets/"+identity+"/rename", fields{"identity": newHolder(), "idempotencyKey": newName()}).is(200)
			tn.post("/v1/wallets/"+renamed+"/rename", fields{"identity": identity, "idempotencyKey": newName()}).is(200)
			for name, path := range lists { // the wallet has its identity again
				tn.get(path + "cursor=" + cursors[name]).is(200)
			}
		})
	}
}
