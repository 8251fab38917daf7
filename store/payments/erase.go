package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

var (
	selectOpenBusiness = pg.Declare("select open business", `
		SELECT
			EXISTS (SELECT 1 FROM subscriptions s WHERE s.app_id = $1 AND s.wallet_id = $2 AND s.status IN `+ledger.LiveStatuses+` AND s.provider_id IS NOT NULL)
				OR EXISTS (SELECT 1 FROM subscriptions i WHERE i.app_id = $1 AND i.wallet_id = $2 AND i.status = 'incomplete' AND i.provider_id IS NOT NULL),
			EXISTS (SELECT 1 FROM subscription_changes c WHERE c.app_id = $1 AND c.wallet_id = $2 AND c.state IN ('requested', 'pending'))
				OR EXISTS (SELECT 1 FROM topups t WHERE t.app_id = $1 AND t.wallet_id = $2 AND t.status IN ('open', 'processing')),
			EXISTS (SELECT 1 FROM provider_ops o WHERE o.app_id = $1 AND o.wallet_id = $2 AND o.state = 'running')
		FROM app_state a WHERE a.app_id = $1`)

	// A repeated request of the wallet is refused then: its fingerprint is of the identity.
	redactOps = pg.Declare("redact ops", `
		UPDATE provider_ops SET fingerprint = $4, parameters = parameters - '{success,cancel}'::text[],
			answer = jsonb_set(answer, '{identity}', to_jsonb($3::text))
		WHERE app_id = $1 AND wallet_id = $2`)

	listCustomersOf = pg.Declare("list customers to relabel", `
		SELECT c.connection_id, c.provider_id FROM provider_customers c WHERE c.app_id = $1 AND c.wallet_id = $2`)

	selectIdentityOfCustomer = pg.Declare("select identity of customer", `
		SELECT w.identity
		FROM provider_customers c JOIN wallets w ON w.app_id = $1 AND w.id = c.wallet_id
		WHERE c.app_id = $1 AND c.connection_id = $2 AND c.provider_id = $3`)
)

type openBusiness struct{ Subscribed, Buying, Running bool }

// CheckErasable refuses to erase a wallet while money may still come or be owed for it.
func CheckErasable(ctx context.Context, tx ledger.Tx, wallet ids.ID) error {
	open, err := pg.Find(ctx, tx, selectOpenBusiness, pgx.RowToStructByPos[openBusiness], pg.ErrNoAppState, wallet)
	switch {
	case err != nil:
		return err
	case open.Subscribed:
		return fault.Newf(fault.WalletInUse, "The wallet has a paid subscription. Cancel it, wait until it has ended or end it at the payment provider, then erase the wallet.")
	case open.Buying:
		return fault.Newf(fault.WalletInUse, "The wallet has a checkout or a payment that is still open. Let it expire (at most 24 hours), or expire it at the payment provider, then erase the wallet.")
	case open.Running:
		return fault.New(fault.OperationInProgress)
	}
	return nil
}

// EndFree ends the free subscription of a locked wallet at once, so that nothing renews.
func EndFree(ctx context.Context, in ledger.Tx, w *ledger.Wallet, now int64) error {
	tx := appTx{in}
	s, err := tx.liveSubscription(ctx, w.Identity)
	if err != nil || s == nil || !s.Local() {
		return err
	}
	return tx.writeSubscription(ctx, w, s, s.End(now))
}

// Redact removes a wallet's earlier identity from the operations at the provider.
func Redact(ctx context.Context, tx ledger.Tx, wallet ids.ID, identity string) error {
	_, err := tx.ExecAny(ctx, redactOps, wallet, identity, make([]byte, len(billing.Fingerprint{})))
	return err
}

// RelabelCustomers schedules the update of a wallet's customers at the provider after its
// identity has changed.
func RelabelCustomers(ctx context.Context, tx ledger.Tx, wallet ids.ID, now int64) error {
	jobs, err := pg.Collect(ctx, tx, listCustomersOf, func(row pgx.CollectableRow) (job queue.Job, err error) {
		job.Kind, job.DueAt = queue.JobLabel, now
		err = row.Scan(&job.Connection, &job.Object)
		return job, err
	}, wallet)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, jobs...)
}

// IdentityOfCustomer returns the identity of a provider's customer.
func (a Accounts) IdentityOfCustomer(ctx context.Context, connection ids.ID, customerID string) (string, error) {
	return pg.FindOne(ctx, a.app, selectIdentityOfCustomer, pgx.RowTo[string], ErrUnknown, connection, customerID)
}
