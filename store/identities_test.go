package store_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/store/verify"
)

func renameOf(from, to string) store.Rename {
	return store.Rename{ID: ids.New(), From: from, To: to, IdempotencyKey: freshID(), CreatedAt: moment}
}

// settle runs what follows a change of identity, at once and after its delay.
func (a tenant) settle(tb testing.TB, wallet ids.ID) {
	tb.Helper()
	for _, after := range []time.Duration{0, 61 * time.Second} {
		next, err := a.FinishIdentityChange(tb.Context(), wallet, time.Now().Add(after).UnixMilli())
		noError(tb, err)
		reseal(tb, a.Verification(), wallet, next == 0)
	}
}

// reseal seals the entries of a wallet with its current identity, however many they are.
func reseal(tb testing.TB, a verify.App, wallet ids.ID, last bool) {
	tb.Helper()
	if done, err := a.Reseal(tb.Context(), wallet, verify.ResealInput{Last: last, Most: math.MaxInt64}); err != nil || !done {
		tb.Fatalf("sealed is %t: %v", done, err)
	}
}

func (a tenant) sealAll(tb testing.TB) {
	tb.Helper()
	v, err := a.Verification().Verify(tb.Context(), verify.Options{Record: true, Now: moment})
	noError(tb, err)
	if len(v.Differences) > 0 {
		tb.Errorf("the books differ: %v", v.Differences)
	}
}

// An identity gets another wallet, which happens to have the version of the one before.
func TestAChecksWalletIsTheOneThatHasTheIdentity(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	s.credit(t, "bob", 20*messagePrice)
	conn := connect(t, url)
	// The node may have forgotten a wallet for reasons of its own, so there are some.
	for i := range 8 {
		ann, poor := fmt.Sprint("ann ", i), fmt.Sprint("poor ", i)
		s.credit(t, ann, 20*messagePrice)
		s.credit(t, poor, messagePrice-1)
		s.warm(t, s.nodes[0], ann, true)
		ofAnn := ` WHERE app_id = '` + s.application.ID.String() + `' AND identity = '` + ann + `'`
		version := texts(t, conn, `SELECT version::text FROM wallets`+ofAnn)[0]
		for _, renamed := range []store.Rename{renameOf(ann, fmt.Sprint("gone ", i)), renameOf(poor, ann)} {
			_, _, err := s.on(s.nodes[1]).Rename(t.Context(), renamed)
			noError(t, err)
		}
		exec(t, conn, `UPDATE wallets SET version = `+version+ofAnn)
		mustAccept(t, s.nodes[0], s.message("bob", freshID())) // it reads what renames have changed of the application
		if d, err := s.nodes[0].usage.Check(s.message(ann, "")); answer(d, err) != "insufficient_balance" || d.Before.Amount != messagePrice-1 {
			t.Errorf("a check of the new wallet is %s with %s: %v", answer(d, err), d.Before.Amount, err)
		}
	}
}

// TestRenamedWalletIsTheSame renames a wallet that two nodes have in their caches, one of
// them together with another wallet.
func TestRenamedWalletIsTheSame(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 4)
	s.credit(t, "ann", 20*messagePrice)
	s.credit(t, "bob", 20*messagePrice)
	for _, n := range s.nodes {
		outcomes, err := n.usage.TrackBatch([]store.Usage{s.message("ann", freshID()), s.message("bob", freshID())})
		noError(t, err)
		if outcomes[0].Decision.Err() != nil || outcomes[1].Decision.Err() != nil {
			t.Fatalf("a batch is answered with %v", outcomes)
		}
		s.warm(t, n, "ann", true)
		s.warm(t, n, "bob", true)
	}
	before, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	s.sealAll(t)
	requested := renameOf("ann", "eve")
	w, duplicate, err := s.on(s.nodes[0]).Rename(t.Context(), requested)
	if err != nil || duplicate || w.ID != before.ID || w.Identity != "eve" || w.Balances[0].Amount != 12*messagePrice {
		t.Fatalf("got %+v, %t, %v", w, duplicate, err)
	}
	soundBooks(t, url, s.tenant) // the seal is of the old identity yet
	// Before the wallet is used again: usage would change its version.
	t.Run("the old identity has nothing on a node that has it in its cache", func(t *testing.T) {
		check := func(n node) {
			if d, err := n.usage.Check(s.message("ann", "")); err != nil || d.Before.Amount != 0 {
				t.Errorf("a check sees %s, %v", d.Before.Amount, err)
			}
		}
		batch := func(n node) {
			outcomes, err := n.usage.TrackBatch([]store.Usage{s.message("ann", freshID()), s.message("bob", freshID())})
			noError(t, err)
			if outcomes[0].Err == nil && outcomes[0].Decision.Err() == nil || outcomes[1].Err != nil || outcomes[1].Decision.Err() != nil {
				t.Errorf("a batch is answered with %v", outcomes)
			}
		}
		single := func(n node) {
			if o := trackOutcome(n, s.message("ann", freshID())); o.String() != string(fault.InsufficientBalance) {
				t.Errorf("usage is answered with %s", o)
			}
		}
		// The first one on a node finds its cache as it was.
		for i, uses := range [][]func(node){{check, batch, single}, {check, batch, single}, {batch, single, check}, {single, check, batch}} {
			for _, use := range uses {
				use(s.nodes[i])
			}
		}
		if got := s.balance(t, "eve"); got != 12*messagePrice {
			t.Errorf("the wallet was charged: it holds %s", got)
		}
	})
	t.Run("every node charges it under the new identity", func(t *testing.T) {
		for _, n := range s.nodes {
			mustAccept(t, n, s.message("eve", freshID()))
		}
		if got := s.balance(t, "eve"); got != 8*messagePrice {
			t.Errorf("it holds %s", got)
		}
	})
	t.Run("once for a key", func(t *testing.T) {
		again := requested
		again.ID = ids.New()
		if w, duplicate, err := s.on(s.nodes[1]).Rename(t.Context(), again); err != nil || !duplicate || w.ID != before.ID || w.Identity != "eve" {
			t.Errorf("got %+v, %t, %v", w, duplicate, err)
		}
		again.To = "eva"
		if _, _, err := s.Rename(t.Context(), again); !fault.Is(err, fault.IdempotencyConflict) {
			t.Errorf("another body: %v", err)
		}
	})
	for name, c := range map[string]struct {
		from, to string
		code     fault.Code
	}{
		"an unknown identity":             {"ann", "new", fault.WalletNotFound},
		"an identity that has a wallet":   {"eve", "bob", fault.IdentityTaken},
		"the identity that it has":        {"eve", "eve", fault.IdentityTaken},
		"an unknown identity into itself": {"new", "new", fault.WalletNotFound},
	} {
		t.Run("not to or from "+name, func(t *testing.T) {
			if _, _, err := s.Rename(t.Context(), renameOf(c.from, c.to)); !fault.Is(err, c.code) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("and a repeated transfer is found by the old identity", func(t *testing.T) {
		moved := transferOf("bob", "eve", "tokens", 1)
		_, _, err := s.Transfer(t.Context(), moved)
		noError(t, err)
		_, _, err = s.Rename(t.Context(), renameOf("bob", "rob"))
		noError(t, err)
		if _, duplicate, err := s.Transfer(t.Context(), moved); err != nil || duplicate {
			t.Errorf("its own retry: %t, %v", duplicate, err)
		}
		moved.ID = ids.New()
		if _, duplicate, err := s.Transfer(t.Context(), moved); err != nil || !duplicate {
			t.Errorf("sent again: %t, %v", duplicate, err)
		}
		moved.From = "cid"
		if _, _, err := s.Transfer(t.Context(), moved); !fault.Is(err, fault.IdempotencyConflict) {
			t.Errorf("of another identity: %v", err)
		}
	})
	t.Run("and a new wallet of the old identity starts from nothing", func(t *testing.T) {
		s.credit(t, "ann", messagePrice)
		for _, n := range s.nodes {
			if d, err := n.usage.Check(s.message("ann", "")); err != nil || d.Before.Amount != messagePrice {
				t.Errorf("a check sees %s, %v", d.Before.Amount, err)
			}
		}
		mustAccept(t, s.nodes[1], s.message("ann", freshID()))
	})
	s.settle(t, before.ID)
	soundBooks(t, url, s.tenant)
	s.sealAll(t)
	soundBooks(t, url, s.tenant)
}

// TestRenamesAgainstUsage renames a wallet to and fro while two nodes use both
// identities, with single events and batches.
func TestRenamesAgainstUsage(t *testing.T) {
	t.Parallel()
	const calls, deposit = 240, 1_000 * messagePrice
	url := storetest.FreshURL(t)
	s := newShop(t, url, 2)
	s.credit(t, "ann", deposit)
	names := []string{"ann", "eve"}
	var accepted, renamed atomic.Int64
	round := func(i int) {
		n := s.nodes[i%2]
		switch {
		case i%12 == 0:
			for j := range names {
				_, _, err := s.on(n).Rename(context.WithoutCancel(t.Context()), renameOf(names[j], names[1-j]))
				if err == nil {
					renamed.Add(1)
				} else if !fault.Is(err, fault.WalletNotFound) && !fault.Is(err, fault.OperationInProgress) {
					t.Error(err)
				}
			}
		case i%12 == 1:
			outcomes, err := n.usage.TrackBatch([]store.Usage{s.message("ann", freshID()), s.message("eve", freshID()), s.message("ann", freshID())})
			if err != nil {
				t.Error(err)
			}
			for _, o := range outcomes {
				if o.Err == nil && o.Decision.Err() == nil {
					accepted.Add(1)
				}
			}
		default:
			o := trackOutcome(n, s.message(names[i/2%2], freshID()))
			switch o.String() {
			case "accepted":
				accepted.Add(1)
			case string(fault.InsufficientBalance):
			default:
				t.Errorf("answered with %s", o)
			}
		}
	}
	// Every batch of a name may meet the wallet while it has the other.
	for renamed.Load() == 0 || accepted.Load() == 0 {
		atOnce(calls, round)
	}
	list, _, err := s.Wallets(t.Context(), store.Page{Limit: 10})
	noError(t, err)
	if want := deposit - metering.Amount(accepted.Load())*messagePrice; len(list) != 1 || list[0].Balances[0].Amount != want {
		t.Errorf("after %d accepted events and %d renames the wallets are %+v, want one with %s", accepted.Load(), renamed.Load(), list, want)
	}
	soundBooks(t, url, s.tenant)
}

// TestSealsOfRenamedWallets holds verification to finding what was changed around a
// change of identity.
func TestSealsOfRenamedWallets(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 10*messagePrice)
	mustAccept(t, s.nodes[0], s.message("ann", "first"))
	w, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	s.sealAll(t)
	conn := connect(t, url)
	differences := func() (n int) {
		v, err := s.Verification().Verify(t.Context(), verify.Options{Record: true, Now: moment})
		noError(t, err)
		for _, d := range v.Differences {
			if strings.Contains(d.Check, "sealed") {
				n++
			}
		}
		return n
	}
	_, _, err = s.Rename(t.Context(), renameOf("ann", "eve"))
	noError(t, err)
	_, _, err = s.Rename(t.Context(), renameOf("eve", "eva")) // before the first was followed
	noError(t, err)
	if n := differences(); n != 0 {
		t.Errorf("%d differences while the seal is of the old identity", n)
	}
	for name, c := range map[string]struct{ change, back string }{
		"another identity":  {`UPDATE wallets SET identity = 'mallory' WHERE identity = 'eva'`, `UPDATE wallets SET identity = 'eva' WHERE identity = 'mallory'`},
		"another entity":    {`UPDATE usage_events SET entity_id = 'x'`, `UPDATE usage_events SET entity_id = NULL`},
		"no pending seal":   {`UPDATE pending_seals SET wallet_id = app_id`, `UPDATE pending_seals SET wallet_id = (SELECT id FROM wallets)`},
		"another beginning": {`UPDATE pending_seals SET first_before = sha256('x')`, `UPDATE pending_seals SET first_before = (SELECT sha256('\x01'::bytea || uuid_send(app_id) || uuid_send(wallet_id) || 'ann'::bytea))`},
	} {
		exec(t, conn, c.change)
		if n := differences(); n == 0 {
			t.Errorf("%s was not found", name)
		}
		exec(t, conn, c.back)
	}
	exec(t, conn, `UPDATE usage_events SET entity_id = 'x'`)
	if _, err := s.Verification().Reseal(t.Context(), w.ID, verify.ResealInput{Last: true, Most: math.MaxInt64}); err == nil {
		t.Error("changed entries were sealed again")
	}
	exec(t, conn, `UPDATE usage_events SET entity_id = NULL`)
	mustAccept(t, s.nodes[0], s.message("eva", "second")) // not sealed yet
	s.settle(t, w.ID)
	if n := differences(); n != 0 {
		t.Errorf("%d differences after the new seal", n)
	}
	var pending int
	noError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pending_seals`).Scan(&pending))
	if pending != 0 {
		t.Errorf("%d seals are pending", pending)
	}
	exec(t, conn, `UPDATE wallets SET identity = 'mallory' WHERE identity = 'eva'`)
	if n := differences(); n == 0 {
		t.Error("another identity was not found after the new seal")
	}
}

func TestALargeWalletIsSealedAgainInParts(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 20*messagePrice)
	for range 8 {
		mustAccept(t, s.nodes[0], s.message("ann", freshID()))
	}
	w, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	s.sealAll(t) // nine entries
	reseal := func(restart bool) (done bool, err error) {
		return s.Verification().Reseal(t.Context(), w.ID, verify.ResealInput{Last: true, Restart: restart, Most: 4})
	}
	fourMore := func() (done bool) {
		t.Helper()
		done, err := reseal(false)
		noError(t, err)
		return done
	}
	_, _, err = s.Rename(t.Context(), renameOf("ann", "eve"))
	noError(t, err)
	if fourMore() {
		t.Error("four of nine entries are all of them")
	}
	_, _, err = s.Rename(t.Context(), renameOf("eve", "eva")) // what was read is of another identity
	noError(t, err)
	if parts := []bool{fourMore(), fourMore(), fourMore()}; !slices.Equal(parts, []bool{false, false, true}) {
		t.Errorf("nine entries are sealed after three parts: %v", parts)
	}
	soundBooks(t, url, s.tenant)

	conn := connect(t, url)
	_, _, err = s.Rename(t.Context(), renameOf("eva", "ann"))
	noError(t, err)
	exec(t, conn, `UPDATE usage_events SET entity_id = 'x' WHERE app_id = $1`, s.application.ID)
	if parts := []bool{fourMore(), fourMore()}; parts[0] || parts[1] {
		t.Error("nine entries are sealed after two parts")
	}
	for range 2 {
		if _, err := reseal(false); err == nil {
			t.Error("changed entries were sealed again")
		}
	}
	exec(t, conn, `UPDATE usage_events SET entity_id = NULL WHERE app_id = $1`, s.application.ID)
	if done, err := reseal(true); done || err != nil {
		t.Errorf("the first part of repaired entries: %v, %v", done, err)
	}
	if parts := []bool{fourMore(), fourMore()}; !slices.Equal(parts, []bool{false, true}) {
		t.Errorf("repaired entries are sealed after three parts: %v", parts)
	}
	soundBooks(t, url, s.tenant)
}

// rename gives a wallet of the history another identity.
func (h *history) rename(rt *rapid.T) {
	requested := renameOf(anyIdentity.Draw(rt, "from"), anyIdentity.Draw(rt, "to"))
	want := fault.Code("")
	switch {
	case !h.hasWallet(requested.From):
		want = fault.WalletNotFound
	case h.hasWallet(requested.To):
		want = fault.IdentityTaken
	}
	n := h.on(h.nodes[anyNode.Draw(rt, "node")])
	_, duplicate, err := n.Rename(h.t.Context(), requested)
	if want != "" {
		h.said[string(want)]++
		if !fault.Is(err, want) {
			rt.Fatalf("a rename of %s to %s: %v, the model says %s", requested.From, requested.To, err, want)
		}
		return
	}
	if err != nil || duplicate {
		rt.Fatalf("a rename of %s to %s: %t, %v", requested.From, requested.To, duplicate, err)
	}
	h.said["renamed"]++
	h.model.rename(requested.From, requested.To)
}

// rename moves a wallet with its whole history.
func (m *model) rename(from, to string) {
	m.wallets[to] = m.wallets[from]
	delete(m.wallets, from)
	for i := range m.events {
		if m.events[i].identity == from {
			m.events[i].identity = to
		}
	}
}

// renamed gives a wallet of the fixture another identity.
func (h fixture) renamed(tb testing.TB) {
	tb.Helper()
	_, _, err := h.CreateWallet(tb.Context(), ids.New(), "before@example.com", moment)
	noError(tb, err)
	rename := renameOf("before@example.com", "renamed@example.com")
	rename.IdempotencyKey = "first rename"
	_, _, err = h.Rename(tb.Context(), rename)
	noError(tb, err)
}

func init() {
	appCalls = append(append(appCalls, identityCalls...), erasureCalls...)
	verifyCalls = append(verifyCalls, call[verify.App]{"Reseal", "", "", "", "", func(ctx context.Context, a verify.App, h fixture) (any, error) {
		w, err := h.Wallet(ctx, h.deposit.Identity)
		if err != nil {
			return nil, err

		}
		_, err = a.Reseal(ctx, w.ID, verify.ResealInput{Last: true, Most: math.MaxInt64})
		return nil, err
	}})
}

var identityCalls = []call[store.App]{
	{"Rename", "", fault.WalletNotFound, "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		_, _, err := a.Rename(ctx, renameOf("renamed@example.com", "again@example.com"))
		return nil, err
	}},
	{"Rename", "its idempotency key", fault.WalletNotFound, fault.IdempotencyConflict, fault.IdempotencyConflict, func(ctx context.Context, a store.App, _ fixture) (any, error) {
		requested := renameOf("renamed@example.com", "other@example.com")
		requested.IdempotencyKey = "first rename"
		_, _, err := a.Rename(ctx, requested)
		return nil, err
	}},
	{"FinishIdentityChange", "", fault.WalletNotFound, fault.WalletNotFound, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		w, err := h.Wallet(ctx, h.deposit.Identity)
		if err != nil {
			return nil, err
		}
		_, err = a.FinishIdentityChange(ctx, w.ID, moment)
		return nil, err
	}},
}

// TestRowsOfAnIdentityAreThoseOfItsWallet renames a wallet whose identity another gets at
// once: a request that ran during the rename is of the first, a later one of the second.
func TestRowsOfAnIdentityAreThoseOfItsWallet(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := openStore(t, url)
	b := newStorefront(t, db)
	for again, acquire := range map[string]func(identity, other string){
		"by its creation": func(identity, _ string) { b.deposit(t, depositOf(identity, "tokens", 7, freshID())) },
		"by a rename": func(identity, other string) {
			_, _, err := b.Rename(t.Context(), renameOf(other, identity))
			noError(t, err)
		},
	} {
		t.Run(again, func(t *testing.T) {
			first, other := "ann "+again, "bob "+again
			record := func(message string) {
				db.Stats().RecordRequest(b.application.Scope(), reports.Request{
					ID: ids.New(), At: moment, Method: "POST", Route: "/v1/events", Status: 409, Identity: first, Message: message, Authenticated: true,
				})
			}
			b.deposit(t, depositOf(first, "tokens", 7, freshID()))
			b.deposit(t, depositOf(other, "tokens", 7, freshID()))
			w, err := b.Wallet(t.Context(), first)
			noError(t, err)
			renamed := renameOf(first, "eve "+again)
			record("during " + again)
			_, _, err = b.Rename(t.Context(), renamed)
			noError(t, err)
			acquire(first, other)
			record("later " + again)
			noError(t, db.Stats().WriteStats(t.Context()))
			b.settle(t, w.ID)
			got := texts(t, connect(t, url), `SELECT identity FROM recent_requests WHERE app_id = $1 AND message LIKE '% ' || $2 ORDER BY message`, b.application.ID, again)
			if want := []string{"eve " + again, first}; !slices.Equal(got, want) {
				t.Errorf("the rows are of %q, want %q", got, want)
			}
		})
	}
}

// TestRowsStayWithTheirCustomerWhoseIdentityMoves renames wallets to identities that others
// had a moment ago, whose rows may still come.
func TestRowsStayWithTheirCustomerWhoseIdentityMoves(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := openStore(t, url)
	conn := connect(t, url)
	type step struct{ from, to string }
	for _, order := range [][]string{{"ann", "bob"}, {"bob", "ann"}} {
		for name, c := range map[string]struct {
			steps     []step
			ann, bob  string // whom the rows of both are of at last
			immediate bool   // the jobs run after each change, and not only at the end
		}{
			"follows":                {[]step{{"ann", "eve"}, {"bob", "ann"}}, "eve", "ann", true},
			"follows at once":        {[]step{{"ann", "eve"}, {"bob", "ann"}}, "eve", "ann", false},
			"swap":                   {[]step{{"ann", "eve"}, {"bob", "ann"}, {"eve", "bob"}}, "bob", "ann", true},
			"swap at once":           {[]step{{"ann", "eve"}, {"bob", "ann"}, {"eve", "bob"}}, "bob", "ann", false},
			"to and fro":             {[]step{{"ann", "eve"}, {"bob", "ann"}, {"ann", "bob"}, {"eve", "ann"}}, "ann", "bob", true},
			"to and fro at once":     {[]step{{"ann", "eve"}, {"bob", "ann"}, {"ann", "bob"}, {"eve", "ann"}}, "ann", "bob", false},
			"goes on":                {[]step{{"ann", "eve"}, {"bob", "ann"}, {"ann", "zoe"}}, "eve", "zoe", true},
			"goes on at once":        {[]step{{"ann", "eve"}, {"bob", "ann"}, {"ann", "zoe"}}, "eve", "zoe", false},
			"follows one erased":     {[]step{{"ann", ""}, {"bob", "ann"}}, "", "ann", true},
			"is erased itself":       {[]step{{"ann", "eve"}, {"bob", "ann"}, {"ann", ""}}, "eve", "", true},
			"is erased itself later": {[]step{{"ann", "eve"}, {"bob", "ann"}, {"ann", ""}}, "eve", "", false},
		} {
			name += ", " + order[0] + " first"
			t.Run(name, func(t *testing.T) {
				b := newStorefront(t, db) // a node stores few failures of an application at once
				of := func(identity string) string {
					if identity == "" {
						return ""
					}
					return identity + " who " + name
				}
				record := func(identity string) {
					db.Stats().RecordRequest(b.application.Scope(), reports.Request{
						ID: ids.New(), At: moment, Method: "POST", Route: "/v1/events", Status: 409, Identity: of(identity), Message: identity + " " + name, Authenticated: true,
					})
				}
				wallets := map[string]ids.ID{}
				for _, identity := range []string{"ann", "bob"} {
					b.deposit(t, depositOf(of(identity), "tokens", 7, freshID()))
					w, err := b.Wallet(t.Context(), of(identity))
					noError(t, err)
					wallets[identity] = w.ID
					record(identity)
				}
				noError(t, db.Stats().WriteStats(t.Context()))
				follow := func(after time.Duration) (open bool) {
					for _, identity := range order {
						next, err := b.FinishIdentityChange(t.Context(), wallets[identity], time.Now().Add(after).UnixMilli())
						noError(t, err)
						open = open || next != 0
					}
					return open
				}
				for _, s := range c.steps {
					var err error
					if s.to == "" {
						_, _, err = b.Erase(t.Context(), erasureOf(of(s.from)))
					} else {
						_, _, err = b.Rename(t.Context(), renameOf(of(s.from), of(s.to)))
					}
					noError(t, err)
					if c.immediate {
						follow(0)
					}
				}
				follow(0)
				for minutes := 1; follow(time.Duration(minutes) * 61 * time.Second); minutes++ {
					if minutes == 5 {
						t.Fatal("the changes are never followed to their end")
					}
				}
				for _, table := range []string{"request_failures", "recent_requests"} {
					got := texts(t, conn, `SELECT message || ' is of ' || identity FROM `+table+` WHERE app_id = $1 AND message LIKE '% ' || $2 ORDER BY 1`, b.application.ID, name)
					var want []string
					for _, row := range [][2]string{{"ann", c.ann}, {"bob", c.bob}} {
						if row[1] != "" {
							want = append(want, row[0]+" "+name+" is of "+of(row[1]))
						}
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s has %q, want %q", table, got, want)
					}
				}
			})
		}
	}
}

// TestRowsOfAnIdentityAreFollowedInParts has a customer who was denied all the time: the
// wallet is not held for as long as all of their rows take.
func TestRowsOfAnIdentityAreFollowedInParts(t *testing.T) {
	t.Parallel()
	const rows, part = 2_500, 1_000
	url := storetest.FreshURL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 1)
	w, err := s.Wallet(t.Context(), "ann")
	noError(t, err)
	conn := connect(t, url)
	const early = `(lpad(to_hex(1700000000000 + n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid`
	for _, statement := range []string{
		`INSERT INTO denial_records (app_id, id, org_id, request_id, key_id, at, identity, feature_id, credit_id, reason, gate, quantity, billable, pricing_mode,
			cost_nanocredits, quantity_per_unit, basis_points, amount_nanocredits, balance_nanocredits, debt_nanocredits)
		SELECT $1, ` + early + `, $2, ` + early + `, $1, n, 'ann', $1, $1, 'insufficient_balance', 'balance', 1, 1, 'fixed', 1, 1, 10000, 1, 0, 0 FROM generate_series(1, $3::bigint) n`,
		`INSERT INTO request_failures (app_id, id, org_id, at, method, route, status, took_us, key_id, identity, feature)
		SELECT $1, ` + early + `, $2, n, 'POST', '/v1/events', 409, 1000, $1, 'ann', '' FROM generate_series(1, $3::bigint) n`,
	} {
		exec(t, conn, statement, s.application.ID, s.org.ID, int64(rows))
	}
	exec(t, conn, `CREATE TABLE parts (place text, xid xid8, changed bigint)`)
	exec(t, conn, `CREATE FUNCTION note_part() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		INSERT INTO public.parts SELECT TG_OP || ' ' || TG_TABLE_NAME, pg_current_xact_id(), count(*) FROM changed; RETURN NULL; END $$`)
	for _, table := range []string{"denial_records", "request_failures"} {
		for _, operation := range []string{"UPDATE", "DELETE"} {
			exec(t, conn, `CREATE TRIGGER note_`+operation+` AFTER `+operation+` ON `+table+` REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_part()`)
		}
	}
	want := func(operation, identity string, left int) {
		t.Helper()
		for _, table := range []string{"denial_records", "request_failures"} {
			got := texts(t, conn, `SELECT sum(changed)::text || ' in parts of ' || max(changed)::text FROM parts WHERE place = $1`, operation+" "+table)
			if want := fmt.Sprintf("%d in parts of %d", rows, part); got[0] != want {
				t.Errorf("%s of %s: %s, want %s", operation, table, got[0], want)
			}
			if n := len(texts(t, conn, `SELECT identity FROM `+table+` WHERE identity = $1`, identity)); n != left {
				t.Errorf("%s has %d rows of %s, want %d", table, n, identity, left)
			}
		}
	}
	_, _, err = s.Rename(t.Context(), renameOf("ann", "eve"))
	noError(t, err)
	s.settle(t, w.ID)
	want("UPDATE", "eve", rows)
	_, _, err = s.Erase(t.Context(), erasureOf("eve"))
	noError(t, err)
	s.settle(t, w.ID)
	want("DELETE", "eve", 0)
	var unsettled int
	noError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM identity_changes WHERE NOT settled OR from_identity IS NOT NULL`).Scan(&unsettled))
	if unsettled != 0 {
		t.Errorf("%d changes are not followed", unsettled)
	}
}
