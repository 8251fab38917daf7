package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/store/verify"
	"purser/tenancy"
)

// run verifies what is due and waits for it.
func (v verifier) run(ctx context.Context) {
	var running sync.WaitGroup
	v.start(ctx, &running, verify.NewEntries)
	v.start(ctx, &running, verify.AllEntries)
	running.Wait()
}

// verifiedNode is a node with two applications in a database of its own.
type verifiedNode struct {
	verifier
	url   string
	first tenancy.Scope
	other tenancy.Scope
	log   *bytes.Buffer
	exec  func(sql string) // in one session
}

func newVerifiedNode(t *testing.T) verifiedNode {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n := verifiedNode{url: storetest.FreshURL(t), log: &bytes.Buffer{}}
	db, err := store.Open(t.Context(), n.url, store.Options{})
	must(err)
	t.Cleanup(db.Close)
	n.exec = storetest.Session(t, n.url)
	org, err := tenancy.NewOrganization(ids.New(), "Books", 1)
	must(err)
	for i, scope := range []*tenancy.Scope{&n.first, &n.other} {
		draft, err := tenancy.NewApplication(ids.New(), org, []string{"First", "Other"}[i], false, 1)
		must(err)
		application, err := db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, draft)
		must(err)
		*scope = application.Scope()
	}
	now := time.UnixMilli(1_800_000_000_000)
	n.verifier = verifier{
		store: db, new: time.Hour, all: 24 * time.Hour, limit: time.Hour, now: func() time.Time { return now },
		slots: verifySlots(verifyAtOnce), meters: newVerifyMetrics(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(n.log, nil)),
	}
	return n
}

func TestNothingIsWrittenWhileNoVerificationIsDue(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	n.run(t.Context())
	n.log.Reset()
	// Readers pass, writers would wait until their lock timeout and log an error.
	n.exec(`BEGIN`)
	n.exec(`LOCK TABLE verifications, verification_claims, wallet_seals IN SHARE MODE`)
	n.run(t.Context())
	n.exec(`ROLLBACK`)
	if n.log.Len() > 0 {
		t.Errorf("the log says %s", n.log)
	}
}

func TestAVerificationThatIsHeldUpDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	n.all = 0
	n.run(t.Context())
	later := n.now().Add(time.Hour)
	n.now = func() time.Time { return later }
	n.exec(`BEGIN`)
	n.exec(`SELECT 1 FROM verifications WHERE app_id = (SELECT id FROM applications WHERE name = 'First') FOR UPDATE`)
	var running sync.WaitGroup
	n.start(t.Context(), &running, verify.NewEntries)
	for finished := false; !finished; {
		runs, err := n.store.Verification(n.other).Runs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		finished = len(runs) == 1 && runs[0].StartedAt == later.UnixMilli()
	}
	n.exec(`ROLLBACK`)
	running.Wait()
	if runs, err := n.store.Verification(n.first).Runs(t.Context()); err != nil || len(runs) != 1 || runs[0].StartedAt != later.UnixMilli() {
		t.Errorf("the first application has %+v, %v", runs, err)
	}
}

func TestScheduledVerificationFollowsAuditLogsAndFindsStrayRows(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	n.run(t.Context())
	if text := n.log.String(); strings.Contains(text, "level=ERROR") || !strings.Contains(text, "kind=installation") {
		t.Fatalf("the log says %s", text)
	}
	n.exec(`UPDATE audit_entries SET target = 'another' WHERE number = 1`)
	n.exec(`SET session_replication_role = replica`)
	n.exec(`UPDATE app_state SET app_id = 'ffffffff-0000-0000-0000-000000000000' WHERE app_id = (SELECT id FROM applications WHERE name = 'Other')`)
	later := n.now().Add(24 * time.Hour)
	n.now = func() time.Time { return later }
	n.run(t.Context())
	for _, want := range []string{"the audit log is not whole", "app_state has rows of it, but the application does not exist"} {
		if !strings.Contains(n.log.String(), want) {
			t.Errorf("%q is missing from the log: %s", want, n.log)
		}
	}
}

func TestAnUnreadableAuditLogLeavesNoOtherUnverified(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	later, err := tenancy.NewOrganization(ids.New(), "Later", 1)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := tenancy.NewApplication(ids.New(), later, "Last", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: later.Name}, later, draft); err != nil {
		t.Fatal(err)
	}
	n.exec(`UPDATE audit_entries SET target = 'another' WHERE org_id = (SELECT id FROM organizations WHERE name = 'Later')`)
	n.exec(`ALTER TABLE audit_entries ALTER COLUMN target DROP NOT NULL`)
	n.exec(`UPDATE audit_entries SET target = NULL WHERE org_id = (SELECT id FROM organizations WHERE name = 'Books')`)
	const want = ": the audit log is not whole"
	n.run(t.Context())
	if text := n.log.String(); !strings.Contains(text, want) || !strings.Contains(text, "verification failed") {
		t.Errorf("the log says %s", text)
	}
	var out bytes.Buffer
	if _, err := verifyEverything(t.Context(), n.store, verify.Options{}, &out); err == nil || !strings.Contains(out.String(), want) {
		t.Errorf("the command prints %q and ends with %v", &out, err)
	}
}

func TestVerifyPrintsADigestThatChangesWithWhatIsSealed(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	if err := n.store.App(n.first).CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	deposit := func(key string) {
		t.Helper()
		if _, _, err := n.store.App(n.first).Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "tokens", Amount: 5, IdempotencyKey: &key, CreatedAt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), append([]string{"verify"}, args...), []string{"DATABASE_URL=" + n.url}, &out, io.Discard); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if _, found, ok := strings.Cut(line, ", digest "); ok {
				return found
			}
		}
		return ""
	}
	deposit("one")
	first := digest()
	if again := digest(); first == "" || again != first {
		t.Errorf("the digest is %q, and then %q", first, again)
	}
	deposit("two")
	if line := digest("--new"); line != "" {
		t.Errorf("a pass over new entries prints the digest %q", line)
	}
	if second := digest(); second == "" || second == first {
		t.Errorf("the digest stays %q", second)
	}
}
