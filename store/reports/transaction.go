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
	ByUserID ids.ID // who corrected the balance, or reversed the charge, by hand
	Reversed ids.ID // the transaction that a reversal returns
}

var selectEntry = pg.Declare("select journal entry", `
	SELECT j.id, j.seq, j.kind, j.credit_id, c.key, j.delta_nanocredits, j.balance_after, j.debt_after, j.idempotency_key, j.created_at,
		NULL::bigint, NULL::bytea, NULL::text, NULL::bigint, false, j.source_kind, j.source_id, a.reason,
		r.event_id, r.reason, r.idempotency_key, NULL::text,
		j.wallet_id, w.identity, coalesce(a.user_id, r.user_id), r.tx_id
	FROM journal j
	JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
	JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
	LEFT JOIN adjustments a ON a.app_id = $1 AND a.entry_id = j.id
	LEFT JOIN reversals r ON r.app_id = $1 AND r.entry_id = j.id
	WHERE j.app_id = $1 AND j.id = $2`)

// Transaction finds a balance change by its id.
func (a App) Transaction(ctx context.Context, id ids.ID) (t Transaction, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		entries, err := pg.Collect(ctx, tx, selectEntry, readEntryTransaction, id)
		if err != nil {
			return err
		}
		if len(entries) == 1 {
			t = entries[0]
			return nil
		}
		event, err := pg.Find(ctx, tx, selectTransaction, readEventFound, fault.New(fault.PathNotFound), id)
		t = Transaction{Event: &event, Identity: event.Identity, WalletID: event.WalletID}
		return err
	})
	return t, err
}

// readEntryTransaction reads an entry as readJournalLine does, and the columns after
// it.
func readEntryTransaction(row pgx.CollectableRow) (t Transaction, err error) {
	var by, reversed *ids.ID
	line, err := readJournalLine(extendedRow{row, []any{&t.WalletID, &t.Identity, &by, &reversed}})
	line.WalletID = t.WalletID
	t.Entry, t.ByUserID, t.Reversed = &line, pg.OrZero(by), pg.OrZero(reversed)
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
