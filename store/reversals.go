package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

// MaxReversalReason is the maximum length of a reversal's reason, in characters.
const MaxReversalReason = 200

// Reversal returns the charge of an event, or a part of it.
type Reversal struct {
	ID             ids.ID // of its journal entry
	EventID        string
	TransactionID  ids.ID           // of the event
	Amount         metering.Amount  // that was returned
	Requested      *metering.Amount // nil for all that is left
	Full           bool
	Reason         string
	IdempotencyKey string
	By             ids.ID // a user; zero for an API key
	CreatedAt      int64
	ClockOffset    int64 // when CreatedAt was read. Not set in one that is read
}

// repeats reports whether a stored reversal was made by the same request.
func (r Reversal) repeats(requested Reversal) bool {
	return r.EventID == requested.EventID && r.Reason == requested.Reason &&
		(r.Requested == nil) == (requested.Requested == nil) && pg.OrZero(r.Requested) == pg.OrZero(requested.Requested)
}

const reversalColumns = `
	entry_id, event_id, tx_id, amount_nanocredits, requested_nanocredits, whole, reason, idempotency_key, user_id, created_at`

var (
	selectReversible = pg.Declare("select event to reverse", `
		SELECT e.tx_id, e.wallet_id, e.quantity, e.period_start, e.period_end, e.deduplicated_from, e.amount_nanocredits, e.entity_id,
			e.allowance_start, e.allowance_end, p.feature_id, p.credit_id, c.key
		FROM (
			SELECT tx_id, wallet_id, quantity, period_start, period_end, deduplicated_from, amount_nanocredits, entity_id, allowance_start, allowance_end, price_number
			FROM usage_events WHERE app_id = $1 AND event_id = $2
			UNION ALL
			SELECT x.tx_id, x.wallet_id, x.quantity, x.period_start, x.period_end, x.deduplicated_from, x.amount_nanocredits, x.entity_id, x.allowance_start, x.allowance_end, x.price_number
			FROM unnest($3::uuid[]) AS t (id) CROSS JOIN LATERAL (`+pg.PackedByID+`) x
		) e
		JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
		JOIN credits c ON c.app_id = $1 AND c.id = p.credit_id`)

	selectReversalByKey = pg.Declare("select reversal by idempotency key", `
		SELECT`+reversalColumns+`
		FROM reversals WHERE app_id = $1 AND idempotency_key = $2`)

	sumReversals = pg.Declare("sum reversals", `
		SELECT coalesce(sum(amount_nanocredits), 0), coalesce(bool_or(whole), false)
		FROM reversals WHERE app_id = $1 AND wallet_id = $2 AND tx_id = $3`)

	// An event may have any number of reversals, so they are summed before the wallet is
	// locked. Those that were made until it was have entries after the wallet's last one.
	sumReversalsSoFar = pg.Declare("sum reversals so far", `
		SELECT r.amount, r.whole, w.last_seq
		FROM wallets w CROSS JOIN LATERAL (
			SELECT coalesce(sum(amount_nanocredits), 0) AS amount, coalesce(bool_or(whole), false) AS whole
			FROM reversals WHERE app_id = $1 AND wallet_id = w.id AND tx_id = $3) r
		WHERE w.app_id = $1 AND w.id = $2`)

	// The order makes the planner read only these entries, whatever it knows about the table.
	sumReversalsSince = pg.Declare("sum reversals since", `
		SELECT coalesce(sum(r.amount_nanocredits), 0), coalesce(bool_or(r.whole), false)
		FROM (SELECT id FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq > $4 ORDER BY seq OFFSET 0) j CROSS JOIN LATERAL (
			SELECT tx_id, amount_nanocredits, whole FROM reversals WHERE app_id = $1 AND entry_id = j.id LIMIT 1) r
		WHERE r.tx_id = $3`)

	insertReversal = pg.Declare("insert reversal", pg.Insert("reversals", `entry_id, org_id, wallet_id, tx_id, event_id, amount_nanocredits, requested_nanocredits,
			whole, reason, idempotency_key, user_id, created_at`))

	returnAllowance = pg.Declare("return allowance", `
		UPDATE counters SET used = used - $6
		WHERE app_id = $1 AND wallet_id = $2 AND feature_id = $3 AND period_start = $4 AND period_end = $5`)

	deleteBilled = pg.Declare("delete billed period", `
		DELETE FROM billed_periods
		WHERE app_id = $1 AND wallet_id = $2 AND feature_id = $3 AND period_start = $4 AND period_end = $5 AND entity_id = $6 AND tx_id = $7`)

	// The reversals of an event are found before they are sorted (OFFSET 0): else the
	// planner may read all of the application in their order.
	listReversals = pg.Declare("list reversals of events", `
		SELECT `+pg.Prefixed("r", reversalColumns)+`
		FROM unnest($2::uuid[], $3::uuid[]) AS t (wallet_id, tx_id) CROSS JOIN LATERAL (
			SELECT `+pg.Prefixed("x", reversalColumns)+`
			FROM (
				SELECT`+reversalColumns+`
				FROM reversals WHERE app_id = $1 AND wallet_id = t.wallet_id AND tx_id = t.tx_id
				OFFSET 0) x
			ORDER BY x.entry_id LIMIT $4) r
		ORDER BY r.entry_id`)
)

// Reverse returns the charge of an event to its wallet, or a part of it: the entry, its
// reason and the audit row are one transaction. A full reversal also returns the
// allowance and clears the deduplication period. A repeated idempotency key returns the
// first reversal, and a different request with it is refused.
func (a App) Reverse(ctx context.Context, requested Reversal) (r Reversal, duplicate bool, err error) {
	if requested.Reason == "" {
		return r, false, fault.Newf(fault.InvalidRequest, "Enter a reason for the reversal.")
	}
	var identity string
	err = pg.RetryKeyed(ctx, a.transactInTurn, func(ctx context.Context, tx appTx) error {
		r, identity, duplicate, err = tx.reverseCharge(ctx, requested)
		return err
	})
	if identity != "" {
		a.app.WalletChanged(identity)
	}
	return r, duplicate, err
}

func (tx appTx) reverseCharge(ctx context.Context, requested Reversal) (r Reversal, identity string, duplicate bool, err error) {
	stored := pg.EncodeEventID(requested.EventID)
	event, err := pg.Find(ctx, tx, selectReversible, readReversible, fault.New(fault.EventNotFound), stored, pg.PackableIDs(stored))
	if err != nil {
		return r, "", false, err
	}
	before, err := pg.Find(ctx, tx, sumReversalsSoFar, readReversedBefore, pgx.ErrNoRows, event.WalletID, event.TransactionID)
	if err != nil {
		return r, "", false, err
	}
	w, err := tx.LockWalletByID(ctx, event.WalletID)
	if err != nil {
		return r, "", false, err
	}
	same, err := pg.Collect(ctx, tx, selectReversalByKey, readReversal, requested.IdempotencyKey)
	if err != nil {
		return r, w.Identity, false, err
	}
	if len(same) == 1 {
		if !same[0].repeats(requested) {
			return r, w.Identity, false, fault.New(fault.IdempotencyConflict)
		}
		return same[0], w.Identity, same[0].ID != requested.ID, nil
	}
	since, err := pg.Find(ctx, tx, sumReversalsSince, readReversed, pgx.ErrNoRows, event.WalletID, event.TransactionID, before.seq)
	if err != nil {
		return r, w.Identity, false, err
	}
	decision, err := event.Reverse(before.and(since), requested.Requested)
	if err != nil {
		return r, w.Identity, false, err
	}
	r = requested
	r.TransactionID, r.Amount, r.Full = event.TransactionID, decision.Amount, decision.Full
	if err := tx.writeReversal(ctx, &w, event, &r, stored); err != nil {
		return r, w.Identity, false, err
	}
	return r, w.Identity, false, tx.Audit(ctx, "event.reverse", event.TransactionID.Format(ids.Transaction), nil, audit.Fields{
		"reversal": r.ID.Format(ids.Transaction), "creditKey": event.creditKey, "amountNanocredits": r.Amount.String(), "reason": r.Reason,
	})
}

// writeReversal writes what was decided under the wallet's lock.
func (tx appTx) writeReversal(ctx context.Context, w *ledger.Wallet, event reversible, r *Reversal, stored []byte) error {
	entry, err := tx.Post(ctx, w, ledger.Posting{
		ID: r.ID, Kind: metering.EntryReversal, Credit: metering.Credit{ID: event.CreditID, Key: event.creditKey},
		Delta: metering.Delta{Amount: r.Amount}, Reason: r.Reason, EventID: r.EventID, Now: r.CreatedAt, ClockOffset: r.ClockOffset,
		Change: func(b metering.Balance) (metering.Balance, error) { return b.Receive(r.Amount) },
	})
	if err != nil {
		return err
	}
	r.CreatedAt = entry.CreatedAt
	if err := tx.Exec(ctx, insertReversal, 1, pg.Named{
		"entry_id": r.ID, "org_id": tx.Scope.OrgID, "wallet_id": w.ID, "tx_id": r.TransactionID, "event_id": stored,
		"amount_nanocredits": pg.Amount(r.Amount), "requested_nanocredits": (*pg.Amount)(r.Requested), "whole": r.Full,
		"reason": r.Reason, "idempotency_key": r.IdempotencyKey, "user_id": pg.OrNull(r.By), "created_at": r.CreatedAt,
	}); err != nil {
		return err
	}
	if !r.Full {
		return nil
	}
	if key := event.Counter(); !key.Period.IsZero() {
		if err := tx.Exec(ctx, returnAllowance, 1, w.ID, key.FeatureID, key.Period.Start, key.Period.End, event.Quantity); err != nil {
			return err
		}
	}
	if key := event.Billed(); !key.Period.IsZero() {
		return tx.Exec(ctx, deleteBilled, 1, w.ID, key.FeatureID, key.Period.Start, key.Period.End, key.EntityID, r.TransactionID)
	}
	return nil
}

// maxReversals bounds how many reversals of one event are listed.
const maxReversals = 100

// EventKey names an event within its application.
type EventKey struct{ WalletID, TransactionID ids.ID }

// Reversals lists the reversals of events by transaction, the oldest first, and at most
// the first maxReversals of each: an event may have as many as nanocredits were charged.
func (a App) Reversals(ctx context.Context, events []EventKey) (map[ids.ID][]Reversal, error) {
	if len(events) == 0 {
		return nil, nil
	}
	wallets, transactions := make([]ids.ID, len(events)), make([]ids.ID, len(events))
	for i, e := range events {
		wallets[i], transactions[i] = e.WalletID, e.TransactionID
	}
	list, err := pg.ListAll(ctx, a.app, listReversals, readReversal, wallets, transactions, maxReversals)
	found := make(map[ids.ID][]Reversal)
	for _, r := range list {
		found[r.TransactionID] = append(found[r.TransactionID], r)
	}
	return found, err
}

// Reversed returns how much of an event was returned by all of its reversals.
func (a App) Reversed(ctx context.Context, e EventKey) (metering.Reversed, error) {
	return pg.FindOne(ctx, a.app, sumReversals, readReversed, pgx.ErrNoRows, e.WalletID, e.TransactionID)
}

// reversible is an event as far as its reversal depends on it.
type reversible struct {
	metering.Event
	creditKey string
}

func readReversible(row pgx.CollectableRow) (e reversible, err error) {
	var periodStart, periodEnd, allowanceStart, allowanceEnd *int64
	var original *ids.ID
	var entity *string
	err = row.Scan(&e.TransactionID, &e.WalletID, &e.Quantity, &periodStart, &periodEnd, &original, (*pg.Amount)(&e.Charge.Amount), &entity,
		&allowanceStart, &allowanceEnd, &e.FeatureID, &e.CreditID, &e.creditKey)
	e.Period = metering.Period{Start: pg.OrZero(periodStart), End: pg.OrZero(periodEnd)}
	e.Allowance.Period = metering.Period{Start: pg.OrZero(allowanceStart), End: pg.OrZero(allowanceEnd)}
	e.DeduplicatedFrom, e.EntityID = pg.OrZero(original), pg.OrZero(entity)
	return e, err
}

func readReversed(row pgx.CollectableRow) (r metering.Reversed, err error) {
	err = row.Scan((*pg.Amount)(&r.Amount), &r.Full)
	return r, err
}

// reversedBefore is what was returned up to an entry of the wallet.
type reversedBefore struct {
	metering.Reversed
	seq int64
}

// and adds what was returned since. No sum is more than the charge.
func (b reversedBefore) and(since metering.Reversed) metering.Reversed {
	return metering.Reversed{Amount: b.Amount + since.Amount, Full: b.Full || since.Full}
}

func readReversedBefore(row pgx.CollectableRow) (b reversedBefore, err error) {
	err = row.Scan((*pg.Amount)(&b.Amount), &b.Full, &b.seq)
	return b, err
}

func readReversal(row pgx.CollectableRow) (r Reversal, err error) {
	var event []byte
	var by *ids.ID
	var requested *pg.Amount
	err = row.Scan(&r.ID, &event, &r.TransactionID, (*pg.Amount)(&r.Amount), &requested, &r.Full, &r.Reason, &r.IdempotencyKey, &by, &r.CreatedAt)
	r.EventID, r.By, r.Requested = pg.EventIDOf(event), pg.OrZero(by), (*metering.Amount)(requested)
	return r, err
}
