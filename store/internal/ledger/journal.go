package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

var (
	selectBalance = pg.Declare("select balance and clock", `
		SELECT s.clock_offset, b.amount_nanocredits, b.debt_nanocredits
		FROM app_state s LEFT JOIN balances b ON b.app_id = $1 AND b.wallet_id = $2 AND b.credit_id = $3
		WHERE s.app_id = $1`)

	countBalances = pg.Declare("count balances", `
		SELECT count(*) FROM balances WHERE app_id = $1 AND wallet_id = $2`)

	upsertBalance = pg.Declare("upsert balance", `
		INSERT INTO balances (app_id, wallet_id, credit_id, org_id, amount_nanocredits, debt_nanocredits)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (app_id, wallet_id, credit_id) DO UPDATE
		SET amount_nanocredits = excluded.amount_nanocredits, debt_nanocredits = excluded.debt_nanocredits`)

	insertEntry = pg.Declare("insert entry", pg.Insert("journal", `id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits,
			balance_after, debt_after, idempotency_key, created_at, source_kind, source_id`))

	advanceWallet = pg.Declare("advance wallet", `
		UPDATE wallets SET last_seq = $3, version = version + $4
		WHERE app_id = $1 AND id = $2`)
)

// Posting is a requested change of one balance of a locked wallet.
type Posting struct {
	ID             ids.ID
	Kind           metering.EntryKind
	Credit         metering.Credit
	Delta          metering.Delta
	IdempotencyKey *string
	Source         billing.Source // the payment it comes from; zero for none
	Reason         string         // of an adjustment or a reversal
	EventID        string         // of a reversal
	Now            int64
	ClockOffset    int64 // of the application's clock, when Now was read
	Change         func(metering.Balance) (metering.Balance, error)
}

// Post changes a balance for everything but usage, which store.Engine charges in batches.
// It writes the journal entry and the notification. The wallet's lock must be held.
func (tx Tx) Post(ctx context.Context, w *Wallet, p Posting) (metering.Entry, error) {
	before, clockOffset, stored, err := tx.balance(ctx, w.ID, p.Credit)
	// The reversal of an event that an allowance covered returns no credits: the wallet may
	// hold as many others as it can.
	held := stored || p.Kind != metering.EntryReversal || p.Delta.Amount > 0
	if err == nil && held && !stored {
		err = tx.checkRoom(ctx, w.ID)
	}
	if err != nil {
		return metering.Entry{}, err
	}
	after, err := p.Change(before)
	if err != nil {
		return metering.Entry{}, err
	}
	// The clock may have been advanced before the wallet was locked, and earlier entries
	// have the later time.
	p.Now += clockOffset - p.ClockOffset
	w.LastSeq++
	e := metering.Entry{
		ID: p.ID, WalletID: w.ID, Seq: w.LastSeq, Kind: p.Kind, CreditID: p.Credit.ID, Delta: p.Delta,
		BalanceAfter: after.Amount, DebtAfter: after.Debt, IdempotencyKey: p.IdempotencyKey, CreatedAt: p.Now,
	}
	if held {
		if err := tx.Exec(ctx, upsertBalance, 1, w.ID, p.Credit.ID, tx.Scope.OrgID, pg.Amount(after.Amount), pg.Amount(after.Debt)); err != nil {
			return e, err
		}
	}
	if err := tx.Exec(ctx, insertEntry, 1, pg.Named{
		"id": e.ID, "org_id": tx.Scope.OrgID, "wallet_id": e.WalletID, "seq": e.Seq, "kind": e.Kind, "credit_id": e.CreditID,
		"delta_nanocredits": pg.Delta(e.Delta), "balance_after": pg.Amount(e.BalanceAfter), "debt_after": pg.Amount(e.DebtAfter),
		"idempotency_key": e.IdempotencyKey, "created_at": e.CreatedAt, "source_kind": pg.OrNull(p.Source.Kind),
		"source_id": pg.OrNull(p.Source.ID),
	}); err != nil {
		return e, err
	}
	if err := tx.updateDebtors(ctx, w.ID, before, after); err != nil {
		return e, err
	}
	if err := tx.announce(ctx, p, e, before, after); err != nil {
		return e, err
	}
	if after.Amount > before.Amount {
		if err := tx.recoverAlerts(ctx, w.ID, w.Identity, after, p.Now); err != nil {
			return e, err
		}
	}
	tx.Posted(e)
	return e, tx.Exec(ctx, advanceWallet, 1, w.ID, w.LastSeq, pg.VersionStep())
}

// Balance reads what a locked wallet holds of a credit: zero when it never held
// any, as long as it may hold one more.
func (tx Tx) Balance(ctx context.Context, walletID ids.ID, credit metering.Credit) (metering.Balance, error) {
	b, _, stored, err := tx.balance(ctx, walletID, credit)
	if err == nil && !stored {
		err = tx.checkRoom(ctx, walletID)
	}
	return b, err
}

// balance also reads the offset of the application's clock.
func (tx Tx) balance(ctx context.Context, walletID ids.ID, credit metering.Credit) (b metering.Balance, clockOffset int64, stored bool, err error) {
	b, err = pg.Find(ctx, tx, selectBalance, func(row pgx.CollectableRow) (metering.Balance, error) {
		var amount, debt *pg.Amount
		err := row.Scan(&clockOffset, &amount, &debt)
		stored = amount != nil
		return metering.Balance{CreditID: credit.ID, CreditKey: credit.Key, Amount: metering.Amount(pg.OrZero(amount)), Debt: metering.Amount(pg.OrZero(debt))}, err
	}, pg.ErrNoAppState, walletID, credit.ID)
	return b, clockOffset, stored, err
}

// checkRoom refuses one more credit in a wallet that holds as many as it may.
func (tx Tx) checkRoom(ctx context.Context, walletID ids.ID) error {
	held, err := pg.Find(ctx, tx, countBalances, pgx.RowTo[int], pgx.ErrNoRows, walletID)
	if err == nil && held >= metering.MaxBalances {
		err = fault.New(fault.TooManyBalances)
	}
	return err
}
