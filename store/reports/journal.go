package reports

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// How far behind a page the entry is looked for that a balance had before. A credit
// that was not touched for longer is taken at its own word.
const openingReach = 1_000

// JournalLine is an entry of a wallet's journal with what explains it.
type JournalLine struct {
	metering.Entry
	CreditKey string

	// Of a charge.
	FeatureKey   string
	EventID      string
	EntityID     string
	Quantity     int64
	Deduplicated bool

	// Of what came in or was taken back.
	SourceKind string // the payment behind it
	SourceID   string
	Reason     string // of a manual adjustment, a reversal or a transfer
	ReversalOf string // the event that a reversal returns

	Transfer *TransferSide // of a transfer
}

// TransferSide is what an entry of a transfer says of the transfer and of the other
// wallet.
type TransferSide struct {
	ID       ids.ID // of the sender's entry
	Identity string // of the other wallet
	WalletID ids.ID
	By       ids.ID // a user; zero for an API key
}

// JournalPage asks for entries of one wallet that came before the one with the
// given number; zero asks for the newest.
type JournalPage struct {
	WalletID ids.ID
	Before   int64
	Limit    int
}

func (p JournalPage) before() int64 {
	return cmp.Or(p.Before, math.MaxInt64)
}

// transferOfEntry is the transfer of the entry l, as readTransfer reads it. Each side has
// an index of its own.
const transferOfEntry = `coalesce(
				(SELECT ARRAY[t.entry_id::text, w.identity, w.id::text, t.user_id::text, t.reason, t.idempotency_key]
				FROM transfers t JOIN wallets w ON w.app_id = $1 AND w.id = t.to_wallet_id
				WHERE t.app_id = $1 AND t.entry_id = l.id AND l.kind = 'transfer'),
				(SELECT ARRAY[t.entry_id::text, w.identity, w.id::text, t.user_id::text, t.reason, t.idempotency_key]
				FROM transfers t JOIN wallets w ON w.app_id = $1 AND w.id = t.wallet_id
				WHERE t.app_id = $1 AND t.to_entry_id = l.id AND l.kind = 'transfer'))`

const (
	// lineColumns are the columns of a line l, as readJournalLine reads them. The key of its
	// credit is read for the lines that are listed: with a join, Postgres may read all lines
	// once per credit.
	lineColumns = `
			l.id, l.seq, l.kind, l.credit_id, (SELECT c.key FROM credits c WHERE c.app_id = $1 AND c.id = l.credit_id), l.delta, l.balance_after, l.debt_after, l.idempotency_key, l.created_at,
			l.price_number, l.event_id, l.entity_id, l.quantity, l.deduplicated, l.source_kind, l.source_id,
			(SELECT a.reason FROM adjustments a WHERE a.app_id = $1 AND a.entry_id = l.id),
			(SELECT r.event_id FROM reversals r WHERE r.app_id = $1 AND r.entry_id = l.id AND l.kind = 'reversal'),
			(SELECT r.reason FROM reversals r WHERE r.app_id = $1 AND r.entry_id = l.id AND l.kind = 'reversal'),
			(SELECT r.idempotency_key FROM reversals r WHERE r.app_id = $1 AND r.entry_id = l.id AND l.kind = 'reversal'),
			` + transferOfEntry + `,
			(SELECT f.key FROM prices p JOIN features f ON f.app_id = $1 AND f.id = p.feature_id
				WHERE p.app_id = $1 AND p.number = l.price_number)`

	// entryLineColumns are the columns of l for the entry j.
	entryLineColumns = `
				j.id, j.seq, j.kind, j.credit_id, j.delta_nanocredits AS delta, j.balance_after, j.debt_after, j.idempotency_key,
				j.created_at, NULL::bigint AS price_number, NULL::bytea AS event_id, NULL::text AS entity_id, NULL::bigint AS quantity,
				false AS deduplicated, j.source_kind, j.source_id`

	// chargeLineColumns are the columns of l for the event e.
	chargeLineColumns = `
				e.tx_id, e.seq, 'charge', (SELECT p.credit_id FROM prices p WHERE p.app_id = $1 AND p.number = e.price_number),
				-e.amount_nanocredits, e.balance_after, coalesce(e.debt_after, 0), NULL,
				e.created_at, e.price_number, e.event_id, e.entity_id, e.quantity,
				e.deduplicated_from IS NOT NULL, NULL, NULL`
)

var (
	// Entries and charges are numbered together, so the newest of both are among the
	// newest of each.
	listJournal = pg.Declare("list journal", `
		SELECT`+lineColumns+`
		FROM (
			(SELECT`+entryLineColumns+`
			FROM journal j WHERE j.app_id = $1 AND j.wallet_id = $2 AND j.seq < $3
			ORDER BY j.seq DESC LIMIT $4)
			UNION ALL
			(SELECT`+chargeLineColumns+`
			FROM usage_events e WHERE e.app_id = $1 AND e.wallet_id = $2 AND e.seq < $3
			ORDER BY e.seq DESC LIMIT $4)
			UNION ALL
			(SELECT`+chargeLineColumns+`
			FROM (`+pg.PackedNewest+`) e
			ORDER BY e.seq DESC LIMIT $4)
		) l
		ORDER BY l.seq DESC LIMIT $4`)

	// The last entry of each of some credits before a number, if it is not too far
	// back. Each is looked for by itself and no further than it lies: a wallet's events
	// are on as many blocks.
	listOpenings = pg.Declare("list openings", `
		SELECT c.id, o.balance_after, o.debt_after
		FROM credits c CROSS JOIN LATERAL (
			(SELECT j.seq, j.balance_after, j.debt_after
			FROM journal j WHERE j.app_id = $1 AND j.wallet_id = $2 AND j.seq < $3 AND j.seq >= $4 AND j.credit_id = c.id
			ORDER BY j.seq DESC LIMIT 1)
			UNION ALL
			(SELECT e.seq, e.balance_after, coalesce(e.debt_after, 0)
			FROM usage_events e JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
			WHERE e.app_id = $1 AND e.wallet_id = $2 AND e.seq < $3 AND e.seq >= $4 AND p.credit_id = c.id
			ORDER BY e.seq DESC LIMIT 1)
			UNION ALL
			(SELECT e.seq, e.balance_after, coalesce(e.debt_after, 0)
			FROM (
				SELECT`+pg.PackedColumns+`
				FROM `+pg.PackedBlock+`
				WHERE p.app_id = $1 AND p.wallet_id = $2 AND p.first_seq < $3 AND p.last_seq >= $4 AND u.seq < $3 AND u.seq >= $4
			) e JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
			WHERE p.credit_id = c.id
			ORDER BY e.seq DESC LIMIT 1)
			ORDER BY 1 DESC LIMIT 1
		) o
		WHERE c.app_id = $1 AND c.id = ANY ($5)`)
)

// Journal lists the entries of a wallet, newest first, with the proof of their
// sums, and reports whether there are more.
func (a App) Journal(ctx context.Context, p JournalPage) (list []JournalLine, proof []metering.BalanceProof, more bool, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		list, err = pg.Collect(ctx, tx, listJournal, readJournalLine, p.WalletID, p.before(), p.Limit+1)
		if err != nil {
			return err
		}
		if list, more = pg.Cut(list, p.Limit); len(list) == 0 {
			return nil
		}
		entries := make([]metering.Entry, len(list))
		for i := range list {
			list[i].WalletID = p.WalletID
			entries[i] = list[i].Entry
		}
		openings, err := tx.openings(ctx, p.WalletID, entries)
		proof = metering.Prove(entries, openings)
		return err
	})
	return list, proof, more, err
}

// openings are what each credit of the entries had before them.
func (tx appTx) openings(ctx context.Context, walletID ids.ID, entries []metering.Entry) (map[ids.ID]metering.Balance, error) {
	first := entries[len(entries)-1].Seq
	openings := make(map[ids.ID]metering.Balance)
	var credits []ids.ID
	for _, e := range entries {
		if !slices.Contains(credits, e.CreditID) {
			credits = append(credits, e.CreditID)
		}
		if first <= openingReach { // all that there is will be seen: what is not there was nothing
			openings[e.CreditID] = metering.Balance{CreditID: e.CreditID}
		}
	}
	err := pg.Each(ctx, tx, listOpenings, func(row pgx.CollectableRow) error {
		var b metering.Balance
		err := row.Scan(&b.CreditID, (*pg.Amount)(&b.Amount), (*pg.Amount)(&b.Debt))
		openings[b.CreditID] = b
		return err
	}, walletID, first, first-openingReach, credits)
	return openings, err
}

func readJournalLine(row pgx.CollectableRow) (l JournalLine, err error) {
	var change pg.Delta
	var price, quantity *int64
	var event []byte
	var entity, sourceKind, sourceID, reason, reversalReason, reversalKey, feature *string
	var reversed []byte
	var transfer []*string
	err = row.Scan(&l.ID, &l.Seq, &l.Kind, &l.CreditID, &l.CreditKey, &change, (*pg.Amount)(&l.BalanceAfter), (*pg.Amount)(&l.DebtAfter),
		&l.IdempotencyKey, &l.CreatedAt, &price, &event, &entity, &quantity, &l.Deduplicated, &sourceKind, &sourceID, &reason,
		&reversed, &reversalReason, &reversalKey, &transfer, &feature)
	l.Delta = metering.Delta(change)
	if l.Kind == metering.EntryCharge {
		l.Delta.Out = true // of nothing as well
	}
	l.EventID, l.EntityID, l.Quantity = pg.EventIDOf(event), pg.OrZero(entity), pg.OrZero(quantity)
	l.SourceKind, l.SourceID, l.Reason, l.FeatureKey = pg.OrZero(sourceKind), pg.OrZero(sourceID), pg.OrZero(reason), pg.OrZero(feature)
	if l.Kind == metering.EntryReversal {
		l.ReversalOf, l.Reason, l.IdempotencyKey = pg.EventIDOf(reversed), pg.OrZero(reversalReason), reversalKey
	}
	if err == nil && transfer != nil {
		err = l.readTransfer(transfer)
	}
	return l, err
}

// readTransfer reads what transferOfEntry has selected.
func (l *JournalLine) readTransfer(columns []*string) (err error) {
	var parts [6]string
	for i := range parts {
		parts[i] = pg.OrZero(columns[i])
	}
	side := &TransferSide{Identity: parts[1]}
	if side.ID, err = pg.ParseUUID(parts[0]); err != nil {
		return err
	}
	if side.WalletID, err = pg.ParseUUID(parts[2]); err != nil {
		return err
	}
	if parts[3] != "" { // made by a user
		side.By, err = pg.ParseUUID(parts[3])
	}
	l.Transfer, l.Reason, l.IdempotencyKey = side, parts[4], &parts[5]
	return err
}
