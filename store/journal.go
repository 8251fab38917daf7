package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
)

var (
	selectBalance = declare("select balance", `
		SELECT amount_nanocredits, debt_nanocredits
		FROM balances WHERE app_id = $1 AND wallet_id = $2 AND credit_id = $3`)

	countBalances = declare("count balances", `
		SELECT count(*) FROM balances WHERE app_id = $1 AND wallet_id = $2`)

	upsertBalance = declare("upsert balance", `
		INSERT INTO balances (app_id, wallet_id, credit_id, org_id, amount_nanocredits, debt_nanocredits)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (app_id, wallet_id, credit_id) DO UPDATE
		SET amount_nanocredits = excluded.amount_nanocredits, debt_nanocredits = excluded.debt_nanocredits`)

	insertEntry = declare("insert entry", `
		INSERT INTO journal (app_id, id, org_id, wallet_id, seq, kind, credit_id, delta_nanocredits,
			balance_after, debt_after, idempotency_key, created_at, source_kind, source_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`)

	advanceWallet = declare("advance wallet", `
		UPDATE wallets SET last_seq = $3, version = version + 1
		WHERE app_id = $1 AND id = $2`)
)

var errNoAppState = errors.New("store: the application has no state row")

// posting is a wished change of one balance of a locked wallet.
type posting struct {
	id             ids.ID
	kind           metering.EntryKind
	credit         metering.Credit
	delta          metering.Delta
	idempotencyKey *string
	source         billing.Source // the payment it comes from; zero for none
	now            int64
	change         func(metering.Balance) (metering.Balance, error)
}

// post is the one function that changes a balance, and it writes the journal
// entry beside it. The wallet's lock must be held.
func (tx appTx) post(ctx context.Context, w *wallet, p posting) (metering.Entry, error) {
	before, err := tx.balance(ctx, w.ID, p.credit)
	if err != nil {
		return metering.Entry{}, err
	}
	after, err := p.change(before)
	if err != nil {
		return metering.Entry{}, err
	}
	w.lastSeq++
	e := metering.Entry{
		ID: p.id, WalletID: w.ID, Seq: w.lastSeq, Kind: p.kind, CreditID: p.credit.ID, Delta: p.delta,
		BalanceAfter: after.Amount, DebtAfter: after.Debt, IdempotencyKey: p.idempotencyKey, CreatedAt: p.now,
	}
	if err := tx.exec(ctx, upsertBalance, 1, w.ID, p.credit.ID, tx.scope.OrgID, amount(after.Amount), amount(after.Debt)); err != nil {
		return e, err
	}
	if err := tx.exec(ctx, insertEntry, 1, e.ID, tx.scope.OrgID, e.WalletID, e.Seq, e.Kind, e.CreditID, delta(e.Delta),
		amount(e.BalanceAfter), amount(e.DebtAfter), e.IdempotencyKey, e.CreatedAt,
		orNull(p.source.Kind), orNull(p.source.ID)); err != nil {
		return e, err
	}
	if err := tx.updateDebtors(ctx, w.ID, before, after); err != nil {
		return e, err
	}
	*tx.posted = append(*tx.posted, e)
	return e, tx.exec(ctx, advanceWallet, 1, w.ID, w.lastSeq)
}

// balance reads what a locked wallet holds of a credit: zero when it never held
// any, as long as it may hold one more.
func (tx appTx) balance(ctx context.Context, walletID ids.ID, credit metering.Credit) (metering.Balance, error) {
	b := metering.Balance{CreditID: credit.ID, CreditKey: credit.Key}
	stored, err := collect(ctx, tx, selectBalance, func(row pgx.CollectableRow) (metering.Balance, error) {
		err := row.Scan((*amount)(&b.Amount), (*amount)(&b.Debt))
		return b, err
	}, walletID, credit.ID)
	if err != nil || len(stored) == 1 {
		return b, err
	}
	held, err := find(ctx, tx, countBalances, pgx.RowTo[int], pgx.ErrNoRows, walletID)
	if err == nil && held >= metering.MaxBalances {
		err = fault.New(fault.TooManyBalances)
	}
	return b, err
}
