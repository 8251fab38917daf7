package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/queue"
)

const topUpColumns = `
	t.id, w.identity, t.credit_id, c.key, t.amount_nanocredits, t.amount_cents, t.currency, t.connection_id, t.customer_id, t.live, t.session_id,
	t.url, t.expires_at, t.status, t.created_at`

const fromTopUps = `
	FROM topups t
	JOIN wallets w ON w.app_id = $1 AND w.id = t.wallet_id
	JOIN credits c ON c.app_id = $1 AND c.id = t.credit_id`

var (
	insertTopUp = pg.Declare("insert top-up", pg.Insert("topups", `id, org_id, wallet_id, credit_id, amount_nanocredits, amount_cents, currency, connection_id, customer_id,
			live, session_id, url, expires_at, status, created_at`))

	selectTopUp = pg.Declare("select top-up", `
		SELECT`+topUpColumns+fromTopUps+`
		WHERE t.app_id = $1 AND t.id = $2`)

	// A top-up whose session was never created does not block another. If the provider
	// created it nevertheless, its payment still counts.
	dropTopUp = pg.Declare("drop top-up", `
		UPDATE topups SET status = 'failed' WHERE app_id = $1 AND id = $2 AND status = 'open' AND session_id IS NULL`)

	updateTopUp = pg.Declare("update top-up", `
		UPDATE topups SET customer_id = $3, session_id = $4, url = $5, expires_at = $6, status = $7
		WHERE app_id = $1 AND id = $2`)
)

func readTopUp(row pgx.CollectableRow) (t billing.TopUp, err error) {
	var session, url *string
	err = row.Scan(&t.ID, &t.Identity, &t.Credit.CreditID, &t.Credit.CreditKey, (*pg.Amount)(&t.Credit.Amount), &t.AmountCents, &t.Currency,
		&t.ConnectionID, &t.CustomerID, &t.Live, &session, &url, &t.ExpiresAt, &t.Status, &t.CreatedAt)
	t.SessionID, t.URL = pg.OrZero(session), pg.OrZero(url)
	return t, err
}

func (tx appTx) insertTopUp(ctx context.Context, walletID ids.ID, t billing.TopUp) error {
	return tx.Exec(ctx, insertTopUp, 1, pg.Named{
		"id": t.ID, "org_id": tx.Scope.OrgID, "wallet_id": walletID, "credit_id": t.Credit.CreditID,
		"amount_nanocredits": pg.Amount(t.Credit.Amount), "amount_cents": t.AmountCents, "currency": t.Currency,
		"connection_id": t.ConnectionID, "customer_id": t.CustomerID, "live": t.Live, "session_id": pg.OrNull(t.SessionID),
		"url": pg.OrNull(t.URL), "expires_at": t.ExpiresAt, "status": t.Status, "created_at": t.CreatedAt,
	})
}

// ApplyTopUp applies the state of a checkout session to its top-up, and credits it once
// when it is paid.
func (a App) ApplyTopUp(ctx context.Context, f queue.Fence, topUp ids.ID, remote billing.ProviderSession, now int64, end *Completion) (t billing.TopUp, err error) {
	for range pg.MaxAttempts {
		err = a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
			t, err = tx.applyTopUp(ctx, topUp, remote, f.ClockOffset, now)
			if err != nil {
				return err
			}
			return tx.complete(ctx, end)
		})
		if !errors.Is(err, pg.ErrCommitUnknown) {
			break
		}
	}
	a.app.WalletChanged(t.Identity)
	return t, err
}

func (tx appTx) applyTopUp(ctx context.Context, id ids.ID, remote billing.ProviderSession, clockOffset, now int64) (billing.TopUp, error) {
	t, err := pg.Find(ctx, tx, selectTopUp, readTopUp, ErrUnknown, id)
	if err != nil {
		return t, err
	}
	locked, err := tx.LockWallets(ctx, t.Identity)
	if err != nil {
		return t, err
	}
	w := &locked[0]
	// Read again under the wallet's lock.
	if t, err = pg.Find(ctx, tx, selectTopUp, readTopUp, ErrUnknown, id); err != nil {
		return t, err
	}
	before := t.Status
	t, settled, alerts := t.ApplySession(remote)
	if err := tx.Exec(ctx, updateTopUp, 1, t.ID, t.CustomerID, pg.OrNull(t.SessionID), pg.OrNull(t.URL), t.ExpiresAt, t.Status); err != nil {
		return t, err
	}
	if err := tx.creditPayments(ctx, w, paymentContext{connection: t.ConnectionID, clockOffset: clockOffset}, settled, now); err != nil {
		return t, err
	}
	if err := tx.announceTopUp(ctx, w, before, t, now); err != nil {
		return t, err
	}
	return t, tx.raiseAlerts(ctx, w.ID, alerts, now)
}
