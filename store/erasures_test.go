package store_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
	"purser/store/queue"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/store/verify"
)

func erasureOf(identity string) store.Erasure {
	return store.Erasure{ID: ids.New(), Identity: identity, Reason: "asked by letter", IdempotencyKey: freshID(), CreatedAt: moment}
}

// TestErasedIdentityIsNowhere erases a wallet with a whole life and looks for its
// identities in every table of the database.
func TestErasedIdentityIsNowhere(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db := openStore(t, url)
	usage := openUsage(t, db)
	b := newStorefront(t, db)
	const former, erased = "former-name@example.com", "leaver@example.com"
	key, _ := b.newKey(t, keys.Setup)
	track := func(identity, feature, event string, quantity int64) metering.Decision {
		d, err := usage.Track(labelled(store.Usage{Scope: b.application.Scope(), KeyID: key.ID, Identity: identity, FeatureKey: feature,
			Usage: metering.Usage{TransactionID: ids.New(), EventID: event, EntityID: "x", Quantity: quantity}}, identity))
		noError(t, err)
		return d
	}
	request := func(id ids.ID, identity string, status int) {
		db.Stats().RecordRequest(b.application.Scope(), reports.Request{
			ID: id, At: moment, Method: "POST", Route: "/v1/events", Status: status, Code: fault.InsufficientBalance, KeyID: key.ID,
			Identity: identity, Feature: "messages", Message: "about " + identity, Authenticated: true,
		})
	}
	b.startFree(t, former)
	b.buy(t, former)
	b.deposit(t, depositOf(former, "tokens", 100_000, "a deposit"))
	b.deposit(t, depositOf("bob", "tokens", 100, "another deposit"))
	_, _, err := b.Transfer(t.Context(), transferOf(former, "bob", "tokens", 10))
	noError(t, err)
	kept := track(former, "messages", "kept event", 1)
	noError(t, kept.Err())
	_, _, err = b.Reverse(t.Context(), reversalOf("kept event", nil))
	noError(t, err)
	denied := track(former, "messages", "denied event", 1_000_000_000)
	if denied.Err() == nil {
		t.Fatal("the usage was accepted")
	}
	request(ids.New(), former, 409)
	_, err = b.PutAlertRule(t.Context(), metering.AlertRule{ID: ids.New(), Key: "low", Kind: metering.AlertBalance, CreditKey: "tokens", Thresholds: []metering.Amount{5}, Identity: former, CreatedAt: moment})
	noError(t, err)
	w, err := b.Wallet(t.Context(), former)
	noError(t, err)
	hooks := notify.Endpoint{ID: ids.New(), URL: "https://example.com/hooks", Status: notify.Enabled, SealedSecret: []byte("sealed"), CreatedAt: moment}
	noError(t, b.Notifications().CreateEndpoint(t.Context(), hooks))
	_, err = b.Notifications().Number(t.Context(), moment)
	noError(t, err)
	sent, err := b.Notifications().DueDeliveries(t.Context(), hooks.ID, moment, 100)
	noError(t, err)
	// answer has the receiver repeat the identity in its answer to a notification.
	answer := func(id, identity string) {
		i := slices.IndexFunc(sent, func(d notifications.Delivery) bool { return d.Identity == id })
		_, err := b.Notifications().Finish(t.Context(), notifications.Attempt{
			ID: ids.New(), EndpointID: hooks.ID, NotificationID: sent[i].ID, URL: hooks.URL, Status: 404, Answer: "I don't know " + identity, StartedAt: moment,
		}, notify.Result{Status: 404}, moment, 0)
		noError(t, err)
	}
	answer(former, former)
	answer("bob", "bob")
	b.sealAll(t)
	noError(t, db.Stats().WriteStats(t.Context()))
	renamed := renameOf(former, erased)
	_, _, err = b.Rename(t.Context(), renamed)
	noError(t, err)
	request(ids.New(), erased, 200)
	requested := erasureOf(erased)
	late := ids.New() // of a request while the customer is erased
	exec(t, connect(t, url), `INSERT INTO verifications (app_id, org_id, kind, claimed_at, claimed_until, lines) SELECT app_id, org_id, 'all', 0, 0, ARRAY[$2, 'other'] FROM app_state WHERE app_id = $1`,
		b.application.ID, w.ID.Format(ids.Wallet)+" (customer \""+erased+"\"): broken rule: a test")
	// The fixture calls no provider, and names leases and customers by identities.
	exec(t, connect(t, url), `UPDATE provider_ops SET state = 'done'`)
	exec(t, connect(t, url), `UPDATE topups SET customer_id = 'cus_1'`)
	exec(t, connect(t, url), `DELETE FROM leases`)
	lease, held, err := b.Queue().Lease(t.Context(), queue.IdentityLease(erased), ids.New(), time.Hour)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	noError(t, b.Queue().Release(t.Context(), lease))
	before := b.balances(t)
	e, duplicate, err := b.Erase(t.Context(), requested)
	if err != nil || duplicate || e.WalletID != w.ID {
		t.Fatalf("got %+v, %t, %v", e, duplicate, err)
	}
	repeatRename := func() {
		renamed.ID = ids.New()
		if w, duplicate, err := b.Rename(t.Context(), renamed); !fault.Is(err, fault.IdempotencyConflict) || duplicate || !w.ID.IsZero() {
			t.Errorf("a repeated rename is answered with %+v, %t, %v", w, duplicate, err)
		}
	}
	repeatRename()
	request(late, erased, 409) // written by a node that was late
	answer(former, erased)
	noError(t, db.Stats().WriteStats(t.Context()))
	b.settle(t, w.ID)
	repeatRename()
	for _, identity := range []string{former, erased, queue.IdentityLease(erased)} {
		if found := storetest.TablesWith(t, url, identity); len(found) > 0 {
			t.Errorf("%s is still in %v", identity, found)
		}
	}
	if found := storetest.TablesWith(t, url, "I don't know bob"); len(found) != 1 {
		t.Errorf("the answer about another customer is in %v", found)
	}
	if after := b.balances(t); after != before {
		t.Errorf("the sums went from %s to %s", before, after)
	}
	if d := track(erased, "messages", "kept event", 1); d.Verdict != metering.Duplicate {
		t.Errorf("a repeated event id is answered with %v", d.Verdict)
	}
	b.sealAll(t)
	soundBooks(t, url, b.tenant)
	t.Run("once for a key", func(t *testing.T) {
		requested.ID = ids.New()
		if e, duplicate, err := b.Erase(t.Context(), requested); err != nil || !duplicate || e.WalletID != w.ID {
			t.Errorf("got %+v, %t, %v", e, duplicate, err)
		}
		if found := storetest.TablesWith(t, url, queue.IdentityLease(erased)); len(found) > 0 {
			t.Errorf("its lease is in %v again", found)
		}
		if _, _, err := b.Erase(t.Context(), erasureOf(erased)); !fault.Is(err, fault.WalletNotFound) {
			t.Errorf("erased twice: %v", err)
		}
		requested.Identity = "bob"
		if _, _, err := b.Erase(t.Context(), requested); !fault.Is(err, fault.IdempotencyConflict) {
			t.Errorf("of another wallet: %v", err)
		}
	})
	t.Run("and a new wallet of the identity starts from nothing", func(t *testing.T) {
		b.deposit(t, depositOf(erased, "tokens", 7, "later"))
		again, err := b.Wallet(t.Context(), erased)
		noError(t, err)
		if again.ID == w.ID || again.Balances[0].Amount != 7 {
			t.Errorf("it is %+v", again)
		}
		soundBooks(t, url, b.tenant)
	})
}

func TestAnswersAreErasedInParts(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	b := newStorefront(t, openStore(t, url))
	b.deposit(t, depositOf("leaver", "tokens", 7, freshID()))
	w, err := b.Wallet(t.Context(), "leaver")
	noError(t, err)
	conn := connect(t, url)
	exec(t, conn, `
		INSERT INTO notifications (app_id, id, org_id, type, wallet_id, data, created_at, seq)
		SELECT $1, gen_random_uuid(), $2, 'deposit.created', $3, '{}', 1, n FROM generate_series(1, 250) n`,
		b.application.ID, b.application.OrgID, w.ID)
	exec(t, conn, `
		INSERT INTO delivery_attempts (app_id, id, org_id, endpoint_id, notification_id, url, error, answer, started_at, took_ms)
		SELECT $1, gen_random_uuid(), $2, $1, n.id, '', '', 'leaver', 0, 0
		FROM notifications n, generate_series(1, CASE WHEN n.seq = 1 THEN 5000 ELSE 2 END) WHERE n.app_id = $1 AND n.seq > 0`,
		b.application.ID, b.application.OrgID)
	_, _, err = b.Erase(t.Context(), erasureOf("leaver"))
	noError(t, err)
	b.settle(t, w.ID)
	if left := texts(t, conn, `SELECT answer FROM delivery_attempts WHERE answer <> '' AND app_id = '`+b.application.ID.String()+`'`); len(left) > 0 {
		t.Errorf("%d answers stay", len(left))
	}
}

// TestARepeatedErasureIsRecognizedByItsIdentity repeats a key after the identity got a wallet
// again. Once the identity is forgotten, it looks like a request about another.
func TestARepeatedErasureIsRecognizedByItsIdentity(t *testing.T) {
	t.Parallel()
	b := newStorefront(t, openStore(t, storetest.URL(t)))
	b.deposit(t, depositOf("leaver", "tokens", 7, freshID()))
	requested := erasureOf("leaver")
	first, _, err := b.Erase(t.Context(), requested)
	noError(t, err)
	b.deposit(t, depositOf("leaver", "tokens", 5, freshID()))
	b.deposit(t, depositOf("bob", "tokens", 5, freshID()))
	again := func(identity string) (store.Erasure, bool, error) {
		repeated := requested
		repeated.ID, repeated.Identity = ids.New(), identity
		return b.Erase(t.Context(), repeated)
	}
	if e, duplicate, err := again("leaver"); err != nil || !duplicate || e.WalletID != first.WalletID {
		t.Errorf("the repeated request is answered with %+v, %t, %v", e, duplicate, err)
	}
	for _, other := range []string{"bob", "without a wallet"} {
		if e, _, err := again(other); !fault.Is(err, fault.IdempotencyConflict) {
			t.Errorf("a request about %q is answered with %+v, %v", other, e, err)
		}
	}
	b.settle(t, first.WalletID)
	if e, _, err := again("leaver"); !fault.Is(err, fault.IdempotencyConflict) {
		t.Errorf("after the identity is forgotten it is answered with %+v, %v", e, err)
	}
	if w, err := b.Wallet(t.Context(), "leaver"); err != nil || w.Balances[0].Amount != 5 {
		t.Errorf("the new wallet is %+v, %v", w, err)
	}
}

func TestVerificationsThatBeganBeforeAnErasureDoNotNameTheCustomer(t *testing.T) {
	t.Parallel()
	db := openStore(t, storetest.URL(t))
	b := newStorefront(t, db)
	b.deposit(t, depositOf("leaver", "tokens", 7, freshID()))
	w, err := b.Wallet(t.Context(), "leaver")
	noError(t, err)
	if claimed, err := b.Verification().Claim(t.Context(), verify.AllEntries, moment, time.Hour, time.Hour); err != nil || !claimed {
		t.Fatal(claimed, err)
	}
	found := []verify.Difference{{WalletID: w.ID, Identity: "leaver", Check: "a rule", Detail: "broken"}, {Check: "another rule", Detail: "broken"}}
	_, _, err = b.Erase(t.Context(), erasureOf("leaver"))
	noError(t, err)
	noError(t, b.Verification().Finish(t.Context(), verify.Run{Kind: verify.AllEntries, StartedAt: moment, FinishedAt: moment, Differences: 2}, found))
	runs, err := b.Verification().Runs(t.Context())
	noError(t, err)
	if lines := strings.Join(runs[0].Lines, "\n"); strings.Contains(lines, "leaver") || len(runs[0].Lines) != 2 || !strings.HasPrefix(lines, w.ID.Format(ids.Wallet)) {
		t.Errorf("the lines are %s", lines)
	}
}

// balances is the sum of all balances of the application, by credit.
func (a tenant) balances(tb testing.TB) string {
	tb.Helper()
	list, _, err := a.Wallets(tb.Context(), store.Page{Limit: 100})
	noError(tb, err)
	var all []string
	for _, w := range list {
		for _, b := range w.Balances {
			all = append(all, w.ID.String()+" "+b.CreditKey+" "+b.Amount.String())
		}
	}
	return strings.Join(all, "\n")
}

func TestRefusedErasuresChangeNothing(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := openStore(t, url)
	b := newStorefront(t, db)
	b.subscribe(t, "paying", "sub_"+freshID())
	b.checkout(t, "buying", b.plan)
	b.topUp(t, "topping")
	b.deposit(t, depositOf("ann", "tokens", 100, freshID()))
	named := erasureOf("ann")
	named.Reason = "ann asked"
	other := erasureOf("ann")
	other.WalletID = ids.New()
	for name, c := range map[string]struct {
		erasure store.Erasure
		code    fault.Code
		says    string
	}{
		"of an unknown identity":        {erasureOf("unknown"), fault.WalletNotFound, ""},
		"of another wallet":             {other, fault.WalletNotFound, ""},
		"with a paid subscription":      {erasureOf("paying"), fault.WalletInUse, "paid subscription"},
		"with an open checkout":         {erasureOf("buying"), fault.WalletInUse, "still open"},
		"with an open top-up":           {erasureOf("topping"), fault.WalletInUse, "still open"},
		"with a reason that names them": {named, fault.InvalidRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := b.Erase(t.Context(), c.erasure); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s and %q", err, c.code, c.says)
			}
			if c.erasure.Identity != "unknown" {
				_, err := b.Wallet(t.Context(), c.erasure.Identity)
				noError(t, err)
			}
		})
	}
	t.Run("while an operation of the identity runs", func(t *testing.T) {
		fence, held, err := b.Queue().Lease(t.Context(), queue.IdentityLease("ann"), ids.New(), time.Hour)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		for range 2 {
			if _, _, err := b.Erase(t.Context(), erasureOf("ann")); !fault.Is(err, fault.OperationInProgress) {
				t.Errorf("an erasure: %v", err)
			}
			if _, _, err := b.Rename(t.Context(), renameOf("ann", "eve")); !fault.Is(err, fault.OperationInProgress) {
				t.Errorf("a rename: %v", err)
			}
		}
		noError(t, b.Queue().Release(t.Context(), fence))
		_, _, err = b.Erase(t.Context(), erasureOf("ann"))
		noError(t, err)
	})
}

// TestErasuresAgainstUsage erases wallets while two nodes use, fill and move them.
func TestErasuresAgainstUsage(t *testing.T) {
	t.Parallel()
	const calls = 240
	url := storetest.FreshURL(t)
	s := newShop(t, url, 2)
	names := []string{"ann", "bob", "cid"}
	var deposited, accepted, erased atomic.Int64
	fill := func(n node, identity string) {
		_, _, err := s.on(n).Deposit(context.WithoutCancel(t.Context()), depositOf(identity, "tokens", 5*messagePrice, freshID()))
		if err != nil {
			t.Error(err)
		}
		deposited.Add(1)
	}
	for _, identity := range names {
		fill(s.nodes[0], identity)
	}
	round := func(i int) {
		n, identity := s.nodes[i%2], names[i%3]
		switch i % 12 {
		case 0, 7:
			_, _, err := s.on(n).Erase(context.WithoutCancel(t.Context()), erasureOf(identity))
			if err == nil {
				erased.Add(1)
			} else if !fault.Is(err, fault.WalletNotFound) && !fault.Is(err, fault.OperationInProgress) {
				t.Error(err)
			}
		case 1, 6, 9:
			fill(n, identity)
		case 2:
			_, _, err := s.on(n).Transfer(context.WithoutCancel(t.Context()), transferOf(identity, names[(i+1)%3], "tokens", 1))
			if err != nil && !fault.Is(err, fault.WalletNotFound) && !fault.Is(err, fault.InsufficientBalance) {
				t.Error(err)
			}
		default:
			if o := trackOutcome(n, s.message(identity, freshID())); o.String() == "accepted" {
				accepted.Add(1)
			} else if o.String() != string(fault.InsufficientBalance) {
				t.Errorf("answered with %s", o)
			}
		}
	}
	// Events may all come after the erasures.
	for erased.Load() == 0 || accepted.Load() == 0 {
		atOnce(calls, round)
	}
	list, _, err := s.Wallets(t.Context(), store.Page{Limit: 100})
	noError(t, err)
	var left metering.Amount
	tombstones := int64(0)
	for _, w := range list {
		for _, b := range w.Balances {
			left += b.Amount
		}
		if metering.IsTombstone(w.Identity) {
			tombstones++
			s.settle(t, w.ID)
		}
	}
	if want := metering.Amount(5*deposited.Load()-accepted.Load()) * messagePrice; left != want || tombstones != erased.Load() {
		t.Errorf("%d tombstones of %d erasures; the wallets hold %s, want %s", tombstones, erased.Load(), left, want)
	}
	soundBooks(t, url, s.tenant)
}

// erase erases a wallet of the history.
func (h *history) erase(rt *rapid.T) {
	identity := anyIdentity.Draw(rt, "identity")
	requested := erasureOf(identity)
	_, duplicate, err := h.on(h.nodes[anyNode.Draw(rt, "node")]).Erase(h.t.Context(), requested)
	if !h.hasWallet(identity) {
		if !fault.Is(err, fault.WalletNotFound) {
			rt.Fatalf("an erasure of %s: %v, the model says %s", identity, err, fault.WalletNotFound)
		}
		return
	}
	w := h.model.wallets[identity]
	if err != nil || duplicate {
		rt.Fatalf("an erasure of %s: %t, %v", identity, duplicate, err)
	}
	h.said["erased"]++
	h.moved = nil // its identities are gone, so that it is not recognized
	tombstone := metering.Tombstone(requested.ID)
	h.erased = append(h.erased, tombstone)
	h.model.rename(identity, tombstone)
	w.subscription = nil
	for i := range h.model.events {
		if h.model.events[i].identity == tombstone {
			h.model.events[i].Properties = ""
		}
	}
	list, _, err := h.Wallets(h.t.Context(), store.Page{Limit: 100})
	noError(h.t, err)
	for _, w := range list {
		if w.Identity == tombstone {
			h.settle(h.t, w.ID)
		}
	}
}

// erasureCalls come after those that rename: then the tenant with the same names has the second identity.
var erasureCalls = []call[store.App]{
	{"Erase", "", fault.WalletNotFound, "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		_, _, err := a.Erase(ctx, erasureOf("again@example.com"))
		if fault.Is(err, fault.WalletNotFound) {
			_, _, err = a.Erase(ctx, erasureOf("renamed@example.com"))
		}
		return nil, err
	}},
}

// The release before knows no pending seals: it seals a renamed wallet that had no seal yet.
func TestSealOfTheNewIdentityBesideAPendingOne(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 10*messagePrice)
	mustAccept(t, s.nodes[0], s.message("ann", "first"))
	w, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	_, _, err = s.Rename(t.Context(), renameOf("ann", "eve"))
	noError(t, err)
	conn := connect(t, url)
	exec(t, conn, `CREATE TEMP TABLE pending AS SELECT * FROM pending_seals`)
	exec(t, conn, `DELETE FROM pending_seals`)
	s.sealAll(t)
	exec(t, conn, `INSERT INTO pending_seals SELECT * FROM pending`)
	mustAccept(t, s.nodes[0], s.message("eve", "second"))

	s.sealAll(t) // no difference
	exec(t, conn, `UPDATE usage_events SET entity_id = 'x'`)
	v, err := s.Verification().Verify(t.Context(), verify.Options{})
	if noError(t, err); len(v.Differences) == 0 {
		t.Error("changed entries were not found")
	}
	if _, err := s.Verification().Reseal(t.Context(), w.ID, verify.ResealInput{Last: true, Most: math.MaxInt64}); err == nil {
		t.Error("changed entries were accepted")
	}
	exec(t, conn, `UPDATE usage_events SET entity_id = NULL`)
	reseal(t, s.Verification(), w.ID, true)
	if pending := texts(t, conn, `SELECT wallet_id::text FROM pending_seals`); len(pending) > 0 {
		t.Errorf("seals of %v are pending", pending)
	}
	s.sealAll(t)
	exec(t, conn, `UPDATE wallets SET identity = 'mallory'`)
	v, err = s.Verification().Verify(t.Context(), verify.Options{})
	if noError(t, err); len(v.Differences) == 0 {
		t.Error("another identity was not found")
	}
}
