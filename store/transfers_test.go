package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

func transferOf(from, to, credit string, amount metering.Amount) store.Transfer {
	return store.Transfer{
		ID: ids.New(), ToEntryID: ids.New(), From: from, To: to, CreditKey: credit, Amount: amount,
		Reason: "a team was split", IdempotencyKey: freshID(), CreatedAt: moment,
	}
}

// TestTransfersInBothDirections moves credits to and fro between three wallets on three
// nodes while they are used, a third of the requests twice.
func TestTransfersInBothDirections(t *testing.T) {
	t.Parallel()
	const calls, requests, deposit = 300, 200, 2_000
	url := storetest.FreshURL(t)
	s := newShop(t, url, 3)
	wallets := []string{"ann", "bob", "cid"}
	for _, identity := range wallets {
		s.credit(t, identity, deposit)
	}
	list := make([]store.Transfer, requests)
	for i := range list {
		list[i] = transferOf(wallets[i%3], wallets[(i+1+i%2)%3], "tokens", metering.Amount(1+i%9))
	}
	var made, repeated atomic.Int64
	atOnce(calls, func(i int) {
		request := list[i%requests]
		request.ID, request.ToEntryID = ids.New(), ids.New()
		_, duplicate, err := s.on(s.nodes[i%3]).Transfer(context.WithoutCancel(t.Context()), request)
		switch {
		case err != nil:
			t.Error(err)
		case duplicate:
			repeated.Add(1)
		default:
			made.Add(1)
		}
		if i%10 == 0 {
			mustAccept(t, s.nodes[i%3], s.message(wallets[i%3], freshID()))
		}
	})
	if made.Load() != requests || repeated.Load() != calls-requests {
		t.Errorf("%d were made, %d repeated", made.Load(), repeated.Load())
	}
	var left metering.Amount
	for _, identity := range wallets {
		left += s.balance(t, identity)
		for _, n := range s.nodes { // each has the wallet in its cache, or reads it
			if d, err := n.usage.Check(s.message(identity, "")); err != nil || d.Before.Amount != s.balance(t, identity) {
				t.Errorf("a check of %s sees %s, %v", identity, d.Before.Amount, err)
			}
		}
	}
	if want := 3*deposit - calls/10*messagePrice; left != want {
		t.Errorf("the wallets hold %s, want %s", left, want)
	}
	soundBooks(t, url, s.tenant)
	s.closeNodes()
	if n := deadlocks(t, url); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func TestRefusedTransfersChangeNothing(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.newCredit(t, "minutes")
	s.credit(t, "ann", metering.MaxAmount)
	s.credit(t, "bob", 5)
	before := journalOf(t, s.tenant)
	for name, c := range map[string]struct {
		transfer store.Transfer
		code     fault.Code
	}{
		"to itself":                   {transferOf("ann", "ann", "tokens", 1), fault.TransferToSelf},
		"of nothing":                  {transferOf("ann", "bob", "tokens", 0), fault.InvalidRequest},
		"of more than the balance":    {transferOf("bob", "ann", "tokens", 6), fault.InsufficientBalance},
		"of a credit that it lacks":   {transferOf("ann", "bob", "minutes", 1), fault.InsufficientBalance},
		"of an unknown credit":        {transferOf("ann", "bob", "none", 1), fault.CreditNotFound},
		"from an unknown wallet":      {transferOf("dan", "bob", "tokens", 1), fault.WalletNotFound},
		"to an unknown wallet":        {transferOf("bob", "dan", "tokens", 1), fault.WalletNotFound},
		"past 19 digits":              {transferOf("bob", "ann", "tokens", 1), fault.BalanceOverflow},
		"of all that the other holds": {transferOf("ann", "bob", "tokens", metering.MaxAmount), fault.BalanceOverflow},
		"without a reason": {func() store.Transfer {
			x := transferOf("bob", "ann", "tokens", 1)
			x.Reason = ""
			return x
		}(), fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := s.Transfer(t.Context(), c.transfer); !fault.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
	if after := journalOf(t, s.tenant); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the journal went from %v to %v", before, after)
	}
	if _, err := s.Wallet(t.Context(), "dan"); !fault.Is(err, fault.WalletNotFound) {
		t.Errorf("a refused transfer made a wallet: %v", err)
	}
	t.Run("and what fits is moved to the last", func(t *testing.T) {
		for _, x := range []store.Transfer{transferOf("ann", "bob", "tokens", metering.MaxAmount-5), transferOf("bob", "ann", "tokens", metering.MaxAmount-5)} {
			if _, _, err := s.Transfer(t.Context(), x); err != nil {
				t.Error(err)
			}
		}
	})
	soundBooks(t, url, s.tenant)
}

func TestTransfersBetweenCertainWallets(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.URL(t), 1)
	wallets := map[string]ids.ID{}
	for _, identity := range []string{"ann", "bob"} {
		s.credit(t, identity, 10)
		w, err := s.Wallet(t.Context(), identity)
		noError(t, err)
		wallets[identity] = w.ID
	}
	between := func(from, to string, fromID, toID ids.ID) error {
		x := transferOf(from, to, "tokens", 1)
		x.FromWalletID, x.ToWalletID = fromID, toID
		_, _, err := s.Transfer(t.Context(), x)
		return err
	}
	wantFault(t, between("ann", "bob", ids.New(), wallets["bob"]), fault.RevisionConflict)
	wantFault(t, between("ann", "bob", wallets["ann"], ids.New()), fault.RevisionConflict)
	wantFault(t, between("cid", "bob", wallets["ann"], wallets["bob"]), fault.RevisionConflict)
	wantFault(t, between("ann", "cid", wallets["ann"], wallets["bob"]), fault.RevisionConflict)
	for identity := range wallets {
		if w, err := s.Wallet(t.Context(), identity); err != nil || w.Balances[0].Amount != 10 {
			t.Errorf("%s has %+v, %v", identity, w, err)
		}
	}
	noError(t, between("ann", "bob", wallets["ann"], wallets["bob"]))
}

func TestTransferPaysDebtFirst(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.credit(t, "ann", 10)
	s.credit(t, "bob", 10)
	noError(t, store.TakeBack(t.Context(), s.App, "bob", "tokens", 14, moment))
	for _, c := range []struct{ amount, left, debt metering.Amount }{{3, 0, 1}, {1, 0, 0}, {2, 2, 0}} {
		_, _, err := s.Transfer(t.Context(), transferOf("ann", "bob", "tokens", c.amount))
		noError(t, err)
		w, err := s.Wallet(t.Context(), "bob")
		noError(t, err)
		if b := w.Balances[0]; b.Amount != c.left || b.Debt != c.debt {
			t.Errorf("after %s it holds %s and owes %s", c.amount, b.Amount, b.Debt)
		}
	}
	if n := len(texts(t, connect(t, url), `SELECT credit_id::text FROM debtors WHERE app_id = $1`, s.application.ID)); n != 0 {
		t.Errorf("%d debtors are listed", n)
	}
}

func TestRepeatedTransfer(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	s.newCredit(t, "minutes")
	for _, identity := range []string{"ann", "bob", "cid"} {
		s.credit(t, identity, 100)
	}
	first := transferOf("ann", "bob", "tokens", 30)
	_, duplicate, err := s.Transfer(t.Context(), first)
	if err != nil || duplicate {
		t.Fatalf("%t, %v", duplicate, err)
	}
	t.Run("returns the first", func(t *testing.T) {
		again := first
		again.ID, again.ToEntryID, again.CreatedAt = ids.New(), ids.New(), moment+5
		got, duplicate, err := s.Transfer(t.Context(), again)
		if err != nil || !duplicate || got != first {
			t.Errorf("got %+v, %t, %v", got, duplicate, err)
		}
	})
	for name, change := range map[string]func(*store.Transfer){
		"another amount":   func(x *store.Transfer) { x.Amount = 31 },
		"another reason":   func(x *store.Transfer) { x.Reason = "another" },
		"another credit":   func(x *store.Transfer) { x.CreditKey = "minutes" },
		"another sender":   func(x *store.Transfer) { x.From = "cid" },
		"another receiver": func(x *store.Transfer) { x.To = "cid" },
		"both exchanged":   func(x *store.Transfer) { x.From, x.To = x.To, x.From },
	} {
		t.Run("with "+name+" is refused", func(t *testing.T) {
			again := first
			again.ID, again.ToEntryID = ids.New(), ids.New()
			change(&again)
			if _, _, err := s.Transfer(t.Context(), again); !fault.Is(err, fault.IdempotencyConflict) {
				t.Errorf("got %v", err)
			}
		})
	}
	for identity, want := range map[string]metering.Amount{"ann": 70, "bob": 130, "cid": 100} {
		if left := s.balance(t, identity); left != want {
			t.Errorf("%s holds %s", identity, left)
		}
	}
	t.Run("is named in the journals of both wallets", func(t *testing.T) {
		for identity, other := range map[string]string{"ann": "bob", "bob": "ann"} {
			list, _, err := s.Reports().History(t.Context(), reports.HistoryQuery{Identity: identity, Kind: metering.EntryTransfer, Limit: 10})
			noError(t, err)
			if len(list) != 1 || list[0].Transfer == nil || list[0].Transfer.ID != first.ID || list[0].Transfer.Identity != other ||
				list[0].Reason != first.Reason || *list[0].IdempotencyKey != first.IdempotencyKey || list[0].Delta.Out != (identity == "ann") {
				t.Fatalf("%s has %+v", identity, list)
			}
			found, err := s.Reports().Transaction(t.Context(), list[0].ID)
			if err != nil || found.Entry.Transfer == nil || *found.Entry.Transfer != *list[0].Transfer {
				t.Errorf("the transaction is %+v, %v", found, err)
			}
		}
	})
	soundBooks(t, url, s.tenant)
}

// transfer moves credits between any two wallets, or to the same, on any node; sometimes
// the last one again.
func (h *history) transfer(rt *rapid.T) {
	n := h.on(h.nodes[anyNode.Draw(rt, "node")])
	if h.moved != nil && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
		again := *h.moved
		again.ID, again.ToEntryID = ids.New(), ids.New()
		if got, duplicate, err := n.Transfer(h.t.Context(), again); err != nil || !duplicate || got.ID != h.moved.ID {
			rt.Fatalf("a transfer sent again: %+v, %t, %v", got, duplicate, err)
		}
		return
	}
	requested := transferOf(anyIdentity.Draw(rt, "from"), anyIdentity.Draw(rt, "to"),
		rapid.SampledFrom([]string{"tokens", "minutes"}).Draw(rt, "credit"), someAmount.Draw(rt, "amount"))
	credit, err := h.Credit(h.t.Context(), requested.CreditKey)
	noError(h.t, err)
	want := fault.WalletNotFound
	if h.hasWallet(requested.From) && h.hasWallet(requested.To) {
		want = h.model.transfer(requested.From, requested.To, credit.ID, requested.Amount)
	}
	_, duplicate, err := n.Transfer(h.t.Context(), requested)
	if want != "" {
		h.said[string(want)]++
		if !fault.Is(err, want) {
			rt.Fatalf("a transfer of %s from %s to %s: %v, the model says %s", requested.Amount, requested.From, requested.To, err, want)
		}
		return
	}
	if err != nil || duplicate {
		rt.Fatalf("a transfer of %s from %s to %s: %t, %v", requested.Amount, requested.From, requested.To, duplicate, err)
	}
	h.said["transferred"]++
	h.moved = &requested
}

// receiver is a wallet of the fixture that credits were moved to.
const receiver = "received@example.com"

// transferred moves credits of the wallet whose charge was returned.
func (h fixture) transferred(tb testing.TB) {
	tb.Helper()
	_, _, err := h.CreateWallet(tb.Context(), ids.New(), receiver, moment)
	noError(tb, err)
	transfer := transferOf("returned@example.com", receiver, h.credit.Key, 7)
	transfer.IdempotencyKey = "first transfer"
	_, _, err = h.Transfer(tb.Context(), transfer)
	noError(tb, err)
}

func init() { appCalls = append(appCalls, transferCalls...) }

var transferCalls = []call[store.App]{
	{"Transfer", "", fault.WalletNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		_, _, err := a.Transfer(ctx, transferOf(receiver, "returned@example.com", h.credit.Key, 1))
		return nil, err
	}},
	{"Transfer", "its idempotency key", fault.WalletNotFound, fault.IdempotencyConflict, fault.IdempotencyConflict, func(ctx context.Context, a store.App, h fixture) (any, error) {
		requested := transferOf("returned@example.com", receiver, h.credit.Key, 8)
		requested.IdempotencyKey = "first transfer"
		_, _, err := a.Transfer(ctx, requested)
		return nil, err
	}},
}
