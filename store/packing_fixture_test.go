package store_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/packing"
	"purser/store/reports"
	"purser/store/verify"
)

// packedBooks are books with events of every kind and an id that can be packed, of the
// hour before.
type packedBooks struct {
	*books
	before int64 // the end of what is packed
	uses   []store.Usage
	first  []store.Outcome // of uses
}

// packable is an id with a time of its own.
func packable(ms int64) string {
	id := ids.New()
	var whole [8]byte
	binary.BigEndian.PutUint64(whole[:], uint64(ms))
	copy(id[:6], whole[2:])
	return id.String()
}

// anns is how many packable events ann has: more than a block and a rest.
const anns = packing.MaxBlock + 150

func keepPackedBooks(t *testing.T) *packedBooks {
	t.Helper()
	b := &packedBooks{books: keepBooks(t)}
	ctx := t.Context()
	for _, identity := range []string{"ann", "bob", "carl"} {
		idempotency := "more for " + identity
		_, _, err := b.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: identity, CreditKey: "tokens", Amount: 1_000_000, IdempotencyKey: &idempotency, CreatedAt: time.Now().UnixMilli()})
		noError(t, err)
	}
	hour := time.Now().Add(-time.Hour).UnixMilli()
	for i := range anns {
		b.uses = append(b.uses, b.useOf("ann", packable(hour+int64(i)), i))
	}
	for i := range 30 {
		b.uses = append(b.uses, b.useOf("bob", packable(hour-int64(i)), i))
	}
	for i := range packing.MinBlock - 1 {
		b.uses = append(b.uses, b.useOf("carl", packable(hour), i))
	}
	// These keep their rows: a text, a random UUID, and an id of a later time.
	for i, id := range []string{"text", "3f2b8c1e-7d4a-4e0b-9a55-0a1b2c3d4e5f", packable(time.Now().Add(24 * time.Hour).UnixMilli())} {
		b.uses = append(b.uses, b.useOf("bob", id, i))
	}
	for start := 0; start < len(b.uses); start += 400 {
		outcomes, err := b.usage.TrackBatch(fresh(b.uses[start:min(start+400, len(b.uses))]))
		noError(t, err)
		b.first = append(b.first, outcomes...)
	}
	for i, o := range b.first {
		if o.Err != nil || o.Decision.Err() != nil {
			t.Fatalf("%+v: %+v", b.uses[i], o)
		}
	}
	for i, id := range []int{0, 4, 7, anns + 2} {
		r := reversalOf(b.uses[id].EventID, nil)
		if r.CreatedAt = time.Now().UnixMilli(); i == 1 {
			r.Requested = amountOf(1)
		}
		_, _, err := b.Reverse(ctx, r)
		noError(t, err)
	}
	// As release 0.2.0 wrote them: some events name their organization.
	exec(t, b.conn, `UPDATE usage_events SET org_id = (SELECT org_id FROM app_state) WHERE seq % 2 = 0`)
	b.before = time.Now().UnixMilli() + 1
	soon(t, "usage that is added up", func() bool { return b.settle(t).Until >= b.before })
	b.verify(t, verify.Options{New: true, Record: true})
	return b
}

func (b *packedBooks) useOf(identity, event string, i int) store.Usage {
	use := store.Usage{Scope: b.scope, KeyID: b.key, Identity: identity, FeatureKey: []string{"plain", "daily", "quoted", "limited"}[i%4],
		Usage: metering.Usage{TransactionID: ids.New(), EventID: event, Quantity: 3, EntityID: fmt.Sprint("room ", i%40)}}
	if use.FeatureKey == "quoted" {
		use.Amount = amountOf(metering.Amount(90 + i%20))
	}
	if i%8 == 0 {
		use = labelled(use, fmt.Sprint("model ", i%3))
	}
	if i%10 == 0 {
		use.EntityID = ""
		if use.FeatureKey == "daily" {
			use.EntityID = "hall"
		}
	}
	return use
}

func (b *packedBooks) packer(t *testing.T) *packing.Packer {
	t.Helper()
	p, err := packing.Open(t.Context(), b.url, slog.New(slog.DiscardHandler))
	noError(t, err)
	t.Cleanup(func() { noError(t, p.Close()) })
	return p
}

func (b *packedBooks) pack(t *testing.T) packing.Result {
	t.Helper()
	r, err := b.packer(t).Pack(t.Context(), b.scope, b.before, b.before)
	noError(t, err)
	return r
}

// everything is what every reader returns, as text.
func (b *packedBooks) everything(t *testing.T) (lines []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	read := b.db.Reports(b.scope)
	add := func(name string, err error, values ...any) {
		t.Helper()
		noError(t, err)
		text, err := json.Marshal(values)
		noError(t, err)
		lines = append(lines, name+" "+string(text))
	}
	for _, identity := range []string{"ann", "bob", "carl"} {
		wallet, err := b.Wallet(ctx, identity)
		noError(t, err)
		for page := (reports.JournalPage{WalletID: wallet.ID, Limit: 70}); ; {
			list, proof, more, err := read.Journal(ctx, page)
			for _, p := range proof {
				if !p.Known || !p.Valid {
					t.Errorf("the journal of %s before %d: %+v", identity, page.Before, p)
				}
			}
			add("journal", err, identity, page, list, proof, more)
			if !more {
				break
			}
			page.Before = list[len(list)-1].Seq
		}
		for _, q := range []reports.HistoryQuery{{}, {Ascending: true}, {Kind: metering.EntryCharge, CreditKey: "tokens"}, {From: 1}} {
			for q.Identity, q.Limit = identity, 333; ; {
				list, next, err := read.History(ctx, q)
				add("history", err, list, next)
				if q.Position = next; next.Seq == 0 {
					break
				}
			}
		}
		for _, feature := range []string{"", "quoted"} {
			for q := (reports.HistoryQuery{Identity: identity, Limit: 250}); ; {
				list, next, err := read.EventsOfWallet(ctx, q, feature)
				add("events of wallet", err, list, next)
				if q.Position = next; next.Seq == 0 {
					break
				}
			}
			for q := (reports.EventQuery{Identity: identity, FeatureKey: feature, Page: store.Page{Limit: 250}}); ; {
				list, next, err := read.EventsOfCustomer(ctx, q)
				add("events of customer", err, list, next)
				if q.BeforeSeq = next; next == 0 {
					break
				}
			}
		}
		for q := (reports.EventQuery{WalletID: wallet.ID, Page: store.Page{Limit: 99}}); ; {
			list, next, err := read.Events(ctx, q)
			add("events by wallet", err, list, next)
			if next == nil {
				break
			}
			q.BeforeSeq = list[len(list)-1].Seq
		}
		for after := int64(0); ; {
			entries, events, err := read.ExportEntries(ctx, wallet.ID, after)
			add("export", err, entries, events)
			if len(entries) == 0 {
				break
			}
			after = entries[len(entries)-1].Seq
		}
		for after, more := int64(0), true; more; {
			found, err := read.MonthlyEntries(ctx, []reports.MonthlyPosition{{WalletID: wallet.ID, After: after}, {WalletID: ids.New()}})
			entries := found[wallet.ID]
			add("monthly", err, entries)
			if more = len(entries) > 0; more {
				after = entries[len(entries)-1].Seq
			}
		}
	}
	for i, use := range b.uses {
		if i%37 > 0 && i < anns+30 {
			continue
		}
		list, _, err := read.Events(ctx, reports.EventQuery{EventID: use.EventID})
		add("event", err, list)
		transaction, err := read.Transaction(ctx, b.first[i].Event.TransactionID)
		add("transaction", err, transaction)
		balances, err := read.BalancesAt(ctx, use.Identity, b.first[i].Event.CreatedAt)
		add("balances", err, balances)
	}
	return lines
}

// places counts the events in usage_events and in blocks, and those that are in both or have
// another number of entries than their wallet.
func (b *packedBooks) places(t *testing.T) (rows, packed string) {
	t.Helper()
	counts := texts(t, b.conn, `
		WITH events AS (
			SELECT wallet_id, seq, event_id FROM usage_events
			UNION ALL
			SELECT p.wallet_id, u.seq, '\x00'::bytea || uuid_send(u.id) FROM packed_events p CROSS JOIN LATERAL unnest(p.seqs, p.event_ids) u (seq, id))
		SELECT count(*)::text FROM usage_events
		UNION ALL SELECT coalesce(sum(events), 0)::text FROM packed_events
		UNION ALL SELECT format('%s %s', event_id, count(*)) FROM events GROUP BY event_id HAVING count(*) > 1
		UNION ALL SELECT format('wallet %s', w.id) FROM wallets w WHERE w.last_seq <>
			(SELECT count(*) FROM events e WHERE e.wallet_id = w.id) + (SELECT count(*) FROM journal j WHERE j.wallet_id = w.id)`)
	if len(counts) != 2 {
		t.Fatalf("events are in %v", counts)
	}
	return counts[0], counts[1]
}
