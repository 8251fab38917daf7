package web

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"purser/ids"
	"purser/tenancy"
)

// idAged is an id that was made that long ago.
func idAged(age time.Duration) ids.ID {
	id := ids.New()
	at := uint64(id.Millis() - age.Milliseconds())
	for i := range 6 {
		id[i] = byte(at >> (40 - 8*i))
	}
	return id
}

// Lists and limits go by the time in an id, so a browser must not choose it.
func TestFormsTakeNoIDsOfAnotherTime(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	owner := d.join(t, tenancy.Owner)
	for name, c := range map[string]struct {
		age   time.Duration
		taken bool
	}{
		"a form that is open for hours":           {23 * time.Hour, true},
		"a form that is open for more than a day": {25 * time.Hour, false},
		"an id of 1970":                           {time.Duration(ids.New().Millis()-1) * time.Millisecond, false},
		"an id of tomorrow":                       {-time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			id := idAged(c.age)
			want := http.StatusUnprocessableEntity
			if c.taken {
				want = http.StatusOK
			}
			if got := owner.post(t, d.appPath("keys", "new"), url.Values{"id": {id.Format(ids.APIKey)}, "name": {"Server"}, "preset": {"ingestion"}, "lifetime": {"none"}}); got.status != want {
				t.Errorf("a key: status %d", got.status)
			}
			want = http.StatusUnprocessableEntity
			if c.taken {
				want = http.StatusSeeOther
			}
			adjust := url.Values{"entry": {id.Format(ids.Transaction)}, "credit": {"tokens"}, "amount": {"1"}, "direction": {"in"}, "reason": {"test"}}
			if got := owner.post(t, d.walletPath(t, "ann", "adjust"), adjust); got.status != want {
				t.Errorf("an adjustment: status %d", got.status)
			}
			invitedPath(t, owner.post(t, d.orgPath("members", "invite"), url.Values{"id": {id.Format(ids.Invitation)}, "note": {name}, "role": {"support"}}))
			open, err := d.db.Org(d.org.ID).Invitations(t.Context(), d.site.Now())
			noError(t, err)
			for _, i := range open {
				if i.Note == name && (i.ID.Millis() == id.Millis()) != c.taken {
					t.Errorf("the invitation has the time %d", i.ID.Millis())
				}
			}
		})
	}
}

// An entry with the id of a charge would be shown in place of the charge, which could not be
// reversed any more.
func TestFormsTakeNoIDsOfOtherEntries(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	deposit := d.deposit(t, "ann", 10)
	d.deposit(t, "bob", 1)
	charge := d.track(t, d.use("ann", "messages", 2)).Event
	admin := d.join(t, tenancy.Admin)
	page := d.appPath("transactions", charge.TransactionID.Format(ids.Transaction))
	bob, err := d.tenant.Wallet(t.Context(), "bob")
	noError(t, err)
	forms := map[string]url.Values{
		d.walletPath(t, "ann", "adjust"): {"credit": {"tokens"}, "amount": {"1"}, "direction": {"in"}, "reason": {"test"}},
		d.walletPath(t, "ann", "transfer"): {
			"credit": {"tokens"}, "amount": {"1"}, "to": {"bob"}, "to_wallet": {bob.ID.Format(ids.Wallet)}, "confirmed": {"yes"}, "reason": {"test"},
		},
		page + "/reverse": {"amount": {"0.5"}, "reason": {"test"}},
	}
	for path, form := range forms {
		for name, id := range map[string]ids.ID{"a charge": charge.TransactionID, "a deposit": deposit.ID} {
			form.Set("entry", id.Format(ids.Transaction))
			if got := admin.post(t, path, form); got.status != http.StatusUnprocessableEntity {
				t.Errorf("the id of %s, at %s: status %d", name, path, got.status)
			}
		}
		form.Set("entry", ids.New().Format(ids.Transaction))
		for range 2 { // the second time, it is its own entry
			if got := admin.post(t, path, form); got.status != http.StatusSeeOther {
				t.Errorf("an id of its own, at %s: status %d", path, got.status)
			}
		}
	}
	says(t, admin.get(t, page), http.StatusOK, "messages", "Reverse charge")
	says(t, admin.get(t, d.appPath("transactions", deposit.ID.Format(ids.Transaction))), http.StatusOK, "Deposit")
}
