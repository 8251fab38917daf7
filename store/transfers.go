package store

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

// Transfer moves credits from one wallet to another.
type Transfer struct {
	ID             ids.ID // of the sender's entry
	ToEntryID      ids.ID // of the receiver's entry
	From, To       string // identities
	FromWalletID   ids.ID // the wallet that a new transfer must be from; zero for any. Not set in one that is read
	ToWalletID     ids.ID // the same of the receiver's
	CreditKey      string
	Amount         metering.Amount
	Reason         string
	IdempotencyKey string
	By             ids.ID // a user; zero for an API key
	CreatedAt      int64
	ClockOffset    int64 // when CreatedAt was read. Not set in one that is read
}

// storedTransfer is a transfer with its wallets, whose identities may have changed.
type storedTransfer struct {
	Transfer
	from, to ids.ID
}

// repeats reports whether a stored transfer was made by the same request, by identities
// that its wallets have or had.
func (tx appTx) repeats(ctx context.Context, t storedTransfer, requested Transfer) (bool, error) {
	if t.CreditKey != requested.CreditKey || t.Amount != requested.Amount || t.Reason != requested.Reason {
		return false, nil
	}
	for _, side := range []struct {
		wallet         ids.ID
		now, requested string
	}{{t.from, t.From, requested.From}, {t.to, t.To, requested.To}} {
		if side.now == side.requested {
			continue
		}
		if had, err := pg.Find(ctx, tx, hadIdentity, pgx.RowTo[bool], pg.ErrNoAppState, side.wallet, side.requested); err != nil || !had {
			return false, err
		}
	}
	return true, nil
}

var (
	hadIdentity = pg.Declare("had identity", `
		SELECT EXISTS (SELECT 1 FROM identity_changes c WHERE c.app_id = $1 AND c.wallet_id = $2 AND c.from_identity = $3)`)

	selectTransferByKey = pg.Declare("select transfer by idempotency key", `
		SELECT t.entry_id, t.to_entry_id, s.identity, r.identity, c.key, t.amount_nanocredits, t.reason, t.idempotency_key, t.user_id, t.created_at,
			t.wallet_id, t.to_wallet_id
		FROM transfers t
		JOIN journal j ON j.app_id = $1 AND j.id = t.entry_id
		JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
		JOIN wallets s ON s.app_id = $1 AND s.id = t.wallet_id
		JOIN wallets r ON r.app_id = $1 AND r.id = t.to_wallet_id
		WHERE t.app_id = $1 AND t.idempotency_key = $2`)

	insertTransfer = pg.Declare("insert transfer", pg.Insert("transfers", `entry_id, org_id, wallet_id, to_entry_id, to_wallet_id, amount_nanocredits, reason, idempotency_key,
			user_id, created_at`))
)

// Transfer moves credits between two existing wallets: both entries, the reason and the
// audit row are one transaction. A repeated idempotency key returns the first transfer,
// and a different request with it is refused.
func (a App) Transfer(ctx context.Context, requested Transfer) (t Transfer, duplicate bool, err error) {
	if requested.Reason == "" {
		return t, false, fault.Newf(fault.InvalidRequest, "Enter a reason for the transfer.")
	}
	err = pg.RetryKeyed(ctx, a.transactInTurn, func(ctx context.Context, tx appTx) error {
		t, duplicate, err = tx.transfer(ctx, requested)
		return err
	})
	a.app.WalletChanged(requested.From)
	a.app.WalletChanged(requested.To)
	return t, duplicate, err
}

func (tx appTx) transfer(ctx context.Context, requested Transfer) (t Transfer, duplicate bool, err error) {
	locked, err := tx.LockWallets(ctx, requested.From, requested.To)
	if err != nil {
		return t, false, err
	}
	same, err := pg.Collect(ctx, tx, selectTransferByKey, readTransfer, requested.IdempotencyKey)
	if err != nil {
		return t, false, err
	}
	if len(same) == 1 {
		if repeated, err := tx.repeats(ctx, same[0], requested); err != nil || !repeated {
			return t, false, cmp.Or(err, error(fault.New(fault.IdempotencyConflict)))
		}
		return same[0].Transfer, same[0].ID != requested.ID, nil
	}
	from, err := ledger.WalletOf(locked, requested.From, requested.FromWalletID, "sender")
	if err != nil {
		return t, false, err
	}
	to, err := ledger.WalletOf(locked, requested.To, requested.ToWalletID, "receiver")
	if err != nil {
		return t, false, err
	}
	credit, err := tx.Credit(ctx, requested.CreditKey)
	if err != nil {
		return t, false, err
	}
	held, err := tx.WithBalances(ctx, []ledger.Wallet{*from, *to})
	if err != nil {
		return t, false, err
	}
	decision, err := held[0].Transfer(held[1], credit, requested.Amount)
	if err != nil {
		return t, false, err
	}
	err = tx.writeTransfer(ctx, from, to, credit, &requested, decision)
	return requested, false, err
}

// writeTransfer writes what was decided under the locks of both wallets.
func (tx appTx) writeTransfer(ctx context.Context, from, to *ledger.Wallet, credit metering.Credit, t *Transfer, decision metering.Transfer) error {
	post := func(w *ledger.Wallet, id ids.ID, out bool, after metering.Balance) (metering.Entry, error) {
		return tx.Post(ctx, w, ledger.Posting{
			ID: id, Kind: metering.EntryTransfer, Credit: credit, Delta: metering.Delta{Amount: t.Amount, Out: out}, Now: t.CreatedAt, ClockOffset: t.ClockOffset,
			Change: func(metering.Balance) (metering.Balance, error) { return after, nil },
		})
	}
	entry, err := post(from, t.ID, true, decision.From)
	if err == nil {
		_, err = post(to, t.ToEntryID, false, decision.To)
	}
	if err != nil {
		return err
	}
	t.CreatedAt = entry.CreatedAt
	if err := tx.Exec(ctx, insertTransfer, 1, pg.Named{
		"entry_id": t.ID, "org_id": tx.Scope.OrgID, "wallet_id": from.ID, "to_entry_id": t.ToEntryID, "to_wallet_id": to.ID,
		"amount_nanocredits": pg.Amount(t.Amount), "reason": t.Reason, "idempotency_key": t.IdempotencyKey,
		"user_id": pg.OrNull(t.By), "created_at": t.CreatedAt,
	}); err != nil {
		return err
	}
	// Wallets are named by their ids, which say nothing about a customer.
	return tx.Audit(ctx, "wallet.transfer", from.ID.Format(ids.Wallet), nil, audit.Fields{
		"toWallet": to.ID.Format(ids.Wallet), "creditKey": credit.Key, "amountNanocredits": t.Amount.String(), "reason": t.Reason,
		"transaction": t.ID.Format(ids.Transaction),
	})
}

func readTransfer(row pgx.CollectableRow) (t storedTransfer, err error) {
	var by *ids.ID
	err = row.Scan(&t.ID, &t.ToEntryID, &t.From, &t.To, &t.CreditKey, (*pg.Amount)(&t.Amount), &t.Reason, &t.IdempotencyKey, &by, &t.CreatedAt,
		&t.from, &t.to)
	t.By = pg.OrZero(by)
	return t, err
}
