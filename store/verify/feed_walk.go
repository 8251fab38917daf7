package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// feedWalk goes through a feed from its newest notification to its oldest.
type feedWalk struct {
	pass      *verifyPass
	from      int64 // numbers up to here are not read
	next      int64 // the number above the next page
	limit     int64
	endpoints map[ids.ID]*verifiedEndpoint
	done      bool
	page      feedPageRows
}

// feedPageRows is what one snapshot shows of a page.
type feedPageRows struct {
	start         int64 // the lowest number that has to be there
	notifications []feedRow
	entries       map[ids.ID]entryRow
	deliveries    map[ids.ID][]deliveryRow // by notification
}

// feedRow is a notification of the feed.
type feedRow struct {
	ID, Org ids.ID
	Seq     int64
	Type    notify.Type
	Wallet  *ids.ID
	Data    string // of an entry
}

// entry is the entry that the notification is about, and what it says of it.
func (n feedRow) entry() (id ids.ID, said notify.EntryData) {
	if json.Unmarshal([]byte(n.Data), &said) != nil {
		return id, said
	}
	// Notifications of release 0.1.0 call a grant and a top-up a transaction.
	for _, prefix := range []string{ids.Deposit, ids.Transaction} {
		if id, err := ids.Parse(prefix, said.ID); err == nil {
			return id, said
		}
	}
	return id, said // zero is no entry
}

// entryRow is an entry that a notification is about.
type entryRow struct {
	ID, Wallet           ids.ID
	Kind                 metering.EntryKind
	Credit               ids.ID
	Delta, Balance, Debt string
}

// deliveryRow is a delivery of a notification.
type deliveryRow struct {
	Endpoint, Notification, Org ids.ID
	Seq, Previous               int64
}

// step reads one page, within one snapshot.
func (w *feedWalk) step(ctx context.Context, tx appTx) error {
	w.page = feedPageRows{start: w.from + 1, entries: map[ids.ID]entryRow{}, deliveries: map[ids.ID][]deliveryRow{}}
	starts, err := pg.Collect(ctx, tx, verifyFeedStart, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	if len(starts) == 1 {
		w.page.start = max(w.page.start, starts[0])
	}
	w.page.notifications, err = pg.Collect(ctx, tx, verifyFeedPage, pgx.RowToStructByPos[feedRow], w.next, w.limit, ledger.EntryTypes(), w.page.start)
	if err != nil {
		return err
	}
	var page, entries []ids.ID
	for _, n := range w.page.notifications {
		page = append(page, n.ID)
		if n.Data != "" {
			id, _ := n.entry()
			entries = append(entries, id)
		}
	}
	announced, err := pg.Collect(ctx, tx, verifyAnnouncedEntries, pgx.RowToStructByPos[entryRow], entries)
	if err != nil {
		return err
	}
	for _, e := range announced {
		w.page.entries[e.ID] = e
	}
	deliveries, err := pg.Collect(ctx, tx, verifyPageDeliveries, pgx.RowToStructByPos[deliveryRow], page)
	for _, d := range deliveries {
		w.page.deliveries[d.Notification] = append(w.page.deliveries[d.Notification], d)
	}
	return err
}

func (w *feedWalk) differs(rule string, wallet *ids.ID, detail string, values ...any) {
	w.pass.report(Difference{Check: rule, WalletID: pg.OrZero(wallet), Detail: fmt.Sprintf(detail, values...)})
}

// compare checks the page that was read.
func (w *feedWalk) compare() {
	for _, n := range w.page.notifications {
		w.missing(n.Seq)
		w.next = n.Seq
		w.checkOrg(n.Org, n, "the notification")
		if n.Data != "" {
			w.compareEntry(n)
		}
		w.follow(n)
	}
	if w.done = int64(len(w.page.notifications)) < w.limit; w.done {
		w.missing(w.page.start - 1)
	}
	for _, e := range w.endpoints {
		if e.Next >= w.page.start && (w.done || e.Next >= w.next) {
			w.differs(ruleDeliveries, nil, "the deliveries of the endpoint %s lead to the notification %d, which is not in the feed", e.URL, e.Next)
			e.Next = 0
		}
	}
}

// missing reports the numbers between one and the lowest that was read.
func (w *feedWalk) missing(below int64) {
	switch first := max(below+1, w.page.start); {
	case first == w.next-1:
		w.differs(ruleFeed, nil, "there is no notification with the number %d", first)
	case first < w.next:
		w.differs(ruleFeed, nil, "there are no notifications with the numbers %d to %d", first, w.next-1)
	}
}

func (w *feedWalk) checkOrg(org ids.ID, n feedRow, what string) {
	if want := w.pass.app.app.Scope.OrgID; org != want {
		w.differs(ruleOrg, n.Wallet, "%s %d names the organization %s, expected %s", what, n.Seq, org.Format(ids.Organization), want.Format(ids.Organization))
	}
}

// follow goes back along the deliveries of each endpoint. A replay adds deliveries beside
// the way, which it does not come to.
func (w *feedWalk) follow(n feedRow) {
	for _, d := range w.page.deliveries[n.ID] {
		if d.Seq != n.Seq {
			w.differs(ruleDeliveries, n.Wallet, "a delivery of the notification %d has the number %d", n.Seq, d.Seq)
		}
		w.checkOrg(d.Org, n, "a delivery of the notification")
		if e := w.endpoints[d.Endpoint]; e != nil && e.Next == n.Seq {
			e.Next = min(d.Previous, n.Seq-1)
		}
	}
	for _, e := range w.endpoints {
		if e.Next == n.Seq {
			w.differs(ruleDeliveries, n.Wallet, "the notification %d was for the endpoint %s, but there is no delivery of it", n.Seq, e.URL)
			e.Next = 0 // what came before it is not known
		}
	}
}

// compareEntry holds what a notification says of a journal entry to the journal.
func (w *feedWalk) compareEntry(n feedRow) {
	id, said := n.entry()
	if n.Type == notify.DisputeClosed && said.Outcome == notify.DisputeLost {
		return // it moved nothing
	}
	e, exists := w.page.entries[id]
	kind, _ := ledger.EntryType(e.Kind, strings.HasPrefix(e.Delta, "-"))
	switch {
	case !exists:
		w.differs(ruleAnnounced, n.Wallet, "the notification %d (%s) is of an entry that the journal doesn't have", n.Seq, n.Type)
	case kind != n.Type, e.Wallet != pg.OrZero(n.Wallet), w.pass.catalog.credit(e.Credit) != said.CreditKey,
		e.Delta != said.Delta, e.Balance != said.Balance, e.Debt != said.Debt:
		w.differs(ruleAnnounced, &e.Wallet, "the notification %d (%s) says %s nanocredits of %s with a balance of %s and a debt of %s, but its entry is a %s of %s with %s and %s",
			n.Seq, n.Type, said.Delta, said.CreditKey, said.Balance, said.Debt, e.Kind, e.Delta, e.Balance, e.Debt)
	}
}
