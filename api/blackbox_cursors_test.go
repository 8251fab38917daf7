package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"testing"

	"purser/fault"
)

const staleCursor = "Invalid cursor. Start again without it."

// walletList is a list of one wallet's entries, newest first or ascending.
type walletList struct {
	path   string // with the beginning of its query
	route  string
	filter string // that its cursors are bound to
	second int64  // the number of its second entry
}

// walletLists are lists of a wallet with deposits and charges in turn: 1 is a deposit, 2
// a charge.
func walletLists(identity string) map[string]walletList {
	journal := "/v1/wallets/" + identity + "/journal?"
	return map[string]walletList{
		"events":   {"/v1/events?identity=" + identity + "&", "/v1/events", "identity=" + identity + "\x00feature=\x00from=\x00to=\x00", 6},
		"deposits": {"/v1/deposits?identity=" + identity + "&", "/v1/deposits", identity + "\x00", 5},
		"journal":  {journal, "/v1/wallets/{identity}/journal", "creditKey=\x00kind=\x00from=\x00to=\x00after=\x00\x00" + identity, 7},
		"journal, ascending": {journal + "after=0&", "/v1/wallets/{identity}/journal",
			"creditKey=\x00kind=\x00from=\x00to=\x00after=0\x00\x00" + identity, 2},
	}
}

// releasedCursor is the cursor of release 0.1.0 for a number: it doesn't name the wallet.
func (tn *tenant) releasedCursor(l walletList) string {
	app, position := tn.app.Scope().AppID, binary.BigEndian.AppendUint64(nil, uint64(l.second))
	mac := hmac.New(sha256.New, cursorKey)
	mac.Write(app[:])
	mac.Write(position)
	mac.Write([]byte(l.route + "\x00" + l.filter))
	return base64.RawURLEncoding.EncodeToString(append(position, mac.Sum(nil)[:16]...))
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
			for name, l := range lists {
				cursors[name] = tn.get(l.path + "limit=2").is(200).text("cursor")
				want := tn.get(l.path + "limit=2&cursor=" + cursors[name]).is(200).object()["data"].([]any)
				got := tn.get(l.path + "limit=2&cursor=" + tn.releasedCursor(l)).is(200).object()["data"].([]any)
				if len(want) != 2 || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: a cursor of the release before leads to %v, not to %v", name, got, want)
				}
			}
			if change == "rename" {
				tn.post("/v1/wallets/"+identity+"/rename", fields{"identity": renamed, "idempotencyKey": newName()}).is(200)
			} else {
				tn.post("/v1/wallets/"+identity+"/erase", fields{"reason": "asked by letter", "idempotencyKey": newName()}).is(200)
			}
			for name, l := range lists {
				if tn.get(l.path+"cursor="+cursors[name]).refused(fault.InvalidRequest).text("message") != staleCursor {
					t.Errorf("%s: the refusal doesn't say that the cursor is invalid", name)
				}
				if got := tn.get(l.path + "cursor=" + tn.releasedCursor(l)); got.status == 200 {
					t.Errorf("%s: a list with a cursor of the release before ends silently", name)
				}
			}
			for _, name := range []string{"events", "deposits"} {
				tn.get(lists[name].path).is(200).has(fields{"data": []fields{}, "cursor": nil})
			}
			tn.get(lists["journal"].path).refused(fault.WalletNotFound)
			tn.get(lists["journal, ascending"].path).refused(fault.WalletNotFound)

			tn.fillWallet(identity)
			for name, l := range lists {
				tn.get(l.path + "cursor=" + cursors[name]).refused(fault.InvalidRequest)
			}
			if change != "rename" {
				return
			}
			tn.post("/v1/wallets/"+identity+"/rename", fields{"identity": newHolder(), "idempotencyKey": newName()}).is(200)
			tn.post("/v1/wallets/"+renamed+"/rename", fields{"identity": identity, "idempotencyKey": newName()}).is(200)
			for name, l := range lists { // the wallet has its identity again
				tn.get(l.path + "cursor=" + cursors[name]).is(200)
			}
		})
	}
}
