package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
)

func TestAuditLog(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Audited")
	handle := db.Org(org.ID).By(actor)
	for _, name := range []string{"One", "Two", "Three"} {
		noError(t, handle.Rename(t.Context(), name))
	}

	t.Run("tells who did what, newest first", func(t *testing.T) {
		list, next, err := handle.AuditLog(t.Context(), people.AuditPage{Limit: 2})
		noError(t, err)
		if len(list) != 2 || next != 2 || list[0].Number != 3 || list[0].Action != "organization.rename" || list[0].Actor != actor {
			t.Fatalf("it tells %+v, next %d", list, next)
		}
		before, after := list[0].Fields()
		if before["name"] != "Two" || after["name"] != "Three" {
			t.Errorf("it was %v and is %v", before, after)
		}
		older, next, err := handle.AuditLog(t.Context(), people.AuditPage{Limit: 2, Before: 2})
		if err != nil || len(older) != 1 || next != 0 || older[0].Number != 1 {
			t.Errorf("the rest is %+v, next %d, %v", older, next, err)
		}
	})

	t.Run("leaves nothing of what was not done", func(t *testing.T) {
		owner := newMember(t, db, org, tenancy.Owner)
		wantFault(t, orgAs(db, owner).ChangeMember(t.Context(), owner.UserID, tenancy.Access{Role: tenancy.Support}), fault.LastOwner)
		if v, err := handle.VerifyAudit(t.Context()); err != nil || v.Head.Number != 3 || len(v.Differences) > 0 {
			t.Errorf("it is %+v, %v", v, err)
		}
	})

	t.Run("is silent when no person acts", func(t *testing.T) {
		noError(t, db.Org(org.ID).Rename(t.Context(), "By a program"))
		if v, err := handle.VerifyAudit(t.Context()); err != nil || v.Head.Number != 3 {
			t.Errorf("it is %+v, %v", v, err)
		}
	})

	t.Run("has no gap when many act at once", func(t *testing.T) {
		crowded := newOrganization(t, db, "Crowded")
		requested, err := tenancy.NewApplication(ids.New(), crowded, "Chat", false, moment)
		noError(t, err)
		app, err := db.Org(crowded.ID).CreateApplication(t.Context(), requested)
		noError(t, err)
		const each = 10
		atOnce(2*each, func(i int) {
			if i%2 == 0 {
				if err := db.Org(crowded.ID).By(actor).Rename(t.Context(), fmt.Sprint("Name ", i)); err != nil {
					t.Error(err)
				}
				return
			}
			if err := store.AuditInApp(t.Context(), db.App(app.Scope()).By(actor), "test.act", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
		v, err := db.Org(crowded.ID).VerifyAudit(t.Context())
		if err != nil || v.Head.Number != 2*each || len(v.Differences) > 0 {
			t.Errorf("it is %+v, %v", v, err)
		}
	})
}

func TestAFilteredAuditLogIsReadInSteps(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	owner := connect(t, storetest.URL(t))
	const step = 10_000
	for entries, reads := range map[int]int{step: 1, step + 1: 2, 2*step + 1: 3} {
		org := newOrganization(t, db, "Busy")
		exec(t, owner, `
			INSERT INTO audit_entries (org_id, number, at, actor, address, action, target, before, after, seal)
			SELECT $1, n, 1, 'x', '', CASE n WHEN 1 THEN 'plan.create' ELSE 'key.create' END, '', '{}', '{}', decode(repeat('00', 32), 'hex')
			FROM generate_series(1, $2::int) n`, org.ID, entries)
		// A number past the newest entry leaves out no step.
		page := people.AuditPage{Before: 1 << 62, Action: "plan.", Limit: 1}
		for read := 1; read <= reads; read++ {
			list, next, err := db.Org(org.ID).AuditLog(t.Context(), page)
			noError(t, err)
			want := max(int64(entries-read*step+1), 0)
			if read == reads {
				want = 0
			}
			if next != want || (len(list) == 1) != (read == reads) {
				t.Errorf("read %d of %d entries finds %d, next %d", read, entries, len(list), next)
			}
			page.Before = next
		}
		if list, next, err := db.Org(org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 2}); err != nil || len(list) != 2 || next != int64(entries-1) {
			t.Errorf("without a filter there are %d, next %d, %v", len(list), next, err)
		}
	}
}

// Entries may have 60 KB each, so a long log is not read at once.
func TestAnAuditLogIsVerifiedInPortions(t *testing.T) {
	t.Parallel()
	const portion = 250
	url := storetest.URL(t)
	db := storetest.Open(t)
	org := newOrganization(t, db, "Long")
	for i := range portion + 1 {
		noError(t, db.Org(org.ID).By(actor).Rename(t.Context(), fmt.Sprint("Name ", i)))
	}
	proxy, err := startProxy(url)
	noError(t, err)
	t.Cleanup(proxy.Close)
	var reads atomic.Int64
	var count func()
	count = func() {
		reads.Add(1)
		proxy.Before("FROM audit_entries", count)
	}
	proxy.Before("FROM audit_entries", count)
	v, err := openStore(t, proxy.URL()).Org(org.ID).VerifyAudit(t.Context())
	noError(t, err)
	if reads.Load() != 2 || v.Head.Number != portion+1 || len(v.Differences) > 0 {
		t.Errorf("it was read in %d portions: %+v", reads.Load(), v)
	}
}

// Changes of the tables past the server are found.
func TestASpoiltAuditLogIsFound(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	owner := connect(t, storetest.URL(t))
	for name, change := range map[string]string{
		"a changed entry":   `UPDATE audit_entries SET after = '{"name":"Else"}' WHERE org_id = $1 AND number = 2`,
		"a changed actor":   `UPDATE audit_entries SET actor = 'eve@example.com' WHERE org_id = $1 AND number = 3`,
		"a deleted entry":   `DELETE FROM audit_entries WHERE org_id = $1 AND number = 2`,
		"two in disorder":   `UPDATE audit_entries SET number = CASE number WHEN 2 THEN 103 ELSE 102 END WHERE org_id = $1 AND number IN (2, 3)`,
		"a cut end":         `DELETE FROM audit_entries WHERE org_id = $1 AND number = 4`,
		"a cut beginning":   `DELETE FROM audit_entries WHERE org_id = $1 AND number = 1`,
		"a head moved back": `UPDATE audit_heads SET number = 3 WHERE org_id = $1`,
		"no head":           `DELETE FROM audit_heads WHERE org_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			org := newOrganization(t, db, "Spoilt")
			for i := range 4 {
				noError(t, db.Org(org.ID).By(actor).Rename(t.Context(), fmt.Sprint("Name ", i)))
			}
			if v, err := db.Org(org.ID).VerifyAudit(t.Context()); err != nil || len(v.Differences) > 0 {
				t.Fatalf("before: %+v, %v", v, err)
			}
			exec(t, owner, change, org.ID)
			if v, err := db.Org(org.ID).VerifyAudit(t.Context()); err != nil || len(v.Differences) == 0 {
				t.Errorf("after: %+v, %v", v, err)
			}
		})
	}
}

func TestTheAuditLogIsOnlyWritten(t *testing.T) {
	t.Parallel()
	session := connect(t, asApp(storetest.URL(t)))
	for _, privilege := range []string{"UPDATE", "DELETE", "TRUNCATE"} {
		if got := texts(t, session, `SELECT has_table_privilege('audit_entries', $1)::text`, privilege); !slices.Equal(got, []string{"false"}) {
			t.Errorf("the server may %s entries", privilege)
		}
	}
	if got := texts(t, session, `SELECT has_table_privilege('audit_heads', 'DELETE')::text`); !slices.Equal(got, []string{"false"}) {
		t.Error("the server may delete heads")
	}
}

// Facts that would confuse a hash or a text column are kept as they are.
func TestAuditKeepsHostileFacts(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	app := newTenant(t, db)
	by := audit.Actor{Name: "ann@example.com", At: moment, RequestID: ids.New(), UserID: newMember(t, db, app.org, tenancy.Owner).UserID}
	noError(t, store.AuditInApp(t.Context(), app.By(by), "test.act", "<b>'\u202e", audit.Fields{"a": "x\x00y\xff", "": "\"}"}))
	v, err := db.Org(app.org.ID).VerifyAudit(t.Context())
	if err != nil || len(v.Differences) > 0 || v.Head.Number != 1 {
		t.Errorf("it is %+v, %v", v, err)
	}
}

// What waits for the log of one organization takes neither the connections of others nor
// more wallets than its turn.
func TestDepositsThatWaitForTheAuditLogLeaveRoomToOthers(t *testing.T) {
	t.Parallel()
	waitForAuditLog(t, func(t *testing.T, by store.App, identity string) {
		_, _, err := by.Deposit(t.Context(), depositOf(identity, "tokens", 1, freshID()))
		noError(t, err)
	})
}

func TestRenamesAndErasuresThatWaitForTheAuditLogLeaveRoomToOthers(t *testing.T) {
	t.Parallel()
	waitForAuditLog(t, func(t *testing.T, by store.App, identity string) {
		if strings.HasSuffix(identity, "1") {
			_, _, err := by.Erase(t.Context(), erasureOf(identity))
			noError(t, err)
			return
		}
		_, _, err := by.Rename(t.Context(), renameOf(identity, "renamed "+identity))
		noError(t, err)
	})
}

// waitForAuditLog has work with wallets wait for the head of their organization's log, while
// another organization needs connections.
func waitForAuditLog(t *testing.T, work func(t *testing.T, by store.App, identity string)) {
	t.Helper()
	url := storetest.FreshURL(t)
	s := newShop(t, url, 1)
	other := newTenant(t, s.db)
	other.newCredit(t, "tokens")
	by := s.By(audit.Actor{Name: "key", At: moment})
	for i := range 2 * nodeConns {
		s.credit(t, fmt.Sprint("waiting-", i), 1)
	}
	_, _, err := by.Deposit(t.Context(), depositOf("ann", "tokens", 1, freshID())) // the log has a head now
	noError(t, err)
	tx, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, tx, `SELECT FROM audit_heads WHERE org_id = $1 FOR UPDATE`, s.org.ID)

	var waiting sync.WaitGroup
	for i := range 2 * nodeConns {
		waiting.Go(func() { work(t, by, fmt.Sprint("waiting-", i)) })
	}
	waiters := func() int { return lockWaits(t, url, "%") }
	soon(t, "two wait", func() bool { return waiters() >= 2 })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 * nodeConns {
		_, _, err := other.Deposit(ctx, depositOf("bob", "tokens", 1, freshID()))
		noError(t, err)
	}
	// No fewer wait, but those that look for a deadlock are not shown as waiting at that moment.
	if n := waiters(); n > 2 {
		t.Errorf("%d wait with a connection and a wallet", n)
	}
	noError(t, tx.Rollback(t.Context()))
	waiting.Wait()
}
