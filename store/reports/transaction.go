package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
)

// Transaction is one change of a balance with its explanation: an event, or an entry of
// another kind.
type Transaction struct {
	Event    *EventFound
	Entry    *JournalLine // without its wallet's charges
	Identity string
	WalletID ids.ID
	ByUserID ids.ID // who adjusted the balance, reversed the charge or made the transfer by hand
	Reversed ids.ID // the transaction that a reversal returns
}

var selectEntry = pg.Declare("select journal entry", `
	SELECT l.id, l.seq, l.kind, l.credit_id, c.key, l.delta_nanocredits, l.balance_after, l.debt_after, l.idempotency_key, l.created_at,
		NULL::bigint, NULL::bytea, NULL::text, NULL::bigint, false, l.source_kind, l.source_id, a.reason,
		r.event_id, r.reason, r.idempotency_key, `+transferOfEntry+`, NULL::text,
		l.wallet_id, w.identity, coalesce(a.user_id, r.user_id), r.tx_id
	FROM journal l
	JOIN credits c ON c.app_id = $1 AND c.id = l.credit_id
	JOIN wallets w ON w.app_id = $1 AND w.id = l.wallet_id
	LEFT JOIN adjustments a ON a.app_id = $1 AND a.entry_id = l.id
	LEFT JOIN reversals r ON r.app_id = $1 AND r.entry_id = l.id
	WHERE l.app_id = $1 AND l.id = $2`)

// Transaction finds a balance change by its id.
func (a App) Transaction(ctx context.Context, id ids.ID) (Transaction, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (t Transaction, err error) {
		entries, err := pg.Collect(ctx, tx, selectEntry, readEntryTransaction, id)
		if err != nil {
			return t, err
		}
		if len(entries) == 1 {
			return entries[0], nil
		}
		events, err := pg.Collect(ctx, tx, selectTransaction, readEventFound, id)
		if err == nil && len(events) == 0 {
			events, err = pg.Collect(ctx, tx, selectPackedTransaction, readEventFound, id)
		}
		if err != nil {
			return t, err
		}
		if len(events) == 0 {
			return t, fault.New(fault.PathNotFound)
		}
		return Transaction{Event: &events[0], Identity: events[0].Identity, WalletID: events[0].WalletID}, nil
	})
}

// readEntryTransaction reads an entry as readJournalLine does, and the columns after
// it.
func readEntryTransaction(row pgx.CollectableRow) (t Transaction, err error) {
	var by, reversed *ids.ID
	line, err := readJournalLine(extendedRow{row, []any{&t.WalletID, &t.Identity, &by, &reversed}})
	line.WalletID = t.WalletID
	t.Entry, t.ByUserID, t.Reversed = &line, pg.OrZero(by), pg.OrZero(reversed)
	if line.Transfer != nil {
		t.ByUserID = line.Transfer.By
	}
	return t, err
}

// extendedRow is a row with more columns than its reader scans.
type extendedRow struct {
	pgx.CollectableRow
	rest []any
}

// Scan reads the reader's columns, then the others.
func (b extendedRow) Scan(into ...any) error {
	return b.CollectableRow.Scan(append(into, b.rest...)...)
}
