package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

var (
	selectCustomer = pg.Declare("select customer", `
		SELECT c.provider_id
		FROM provider_customers c JOIN wallets w ON w.app_id = $1 AND w.id = c.wallet_id
		WHERE c.app_id = $1 AND c.connection_id = $2 AND w.identity = $3`)

	insertCustomer = pg.Declare("insert customer", `
		INSERT INTO provider_customers (app_id, connection_id, wallet_id, org_id, provider_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (app_id, connection_id, wallet_id) DO NOTHING`)

	deleteCustomer = pg.Declare("delete customer", `
		DELETE FROM provider_customers WHERE app_id = $1 AND connection_id = $2 AND provider_id = $3`)
)

// Customer returns the provider's customer id of the identity, or ErrUnknown.
func (a Accounts) Customer(ctx context.Context, connection ids.ID, identity string) (string, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (string, error) { return tx.customer(ctx, connection, identity) })
}

func (tx appTx) customer(ctx context.Context, connection ids.ID, identity string) (string, error) {
	return pg.Find(ctx, tx, selectCustomer, pgx.RowTo[string], ErrUnknown, connection, identity)
}

// ErrCustomerTaken means that the customer belongs to another wallet, which had the
// identity before it was renamed or erased.
var ErrCustomerTaken = errors.New("store: the customer belongs to another wallet")

// CustomerOwner is whose customer is stored: the wallet that has the identity or, without
// its id, the one that an operation is for. An operation proves by its fence that the
// identity was neither renamed nor erased since, and may create the wallet.
type CustomerOwner struct {
	Identity string
	WalletID ids.ID
	Fence    queue.Fence // unless the wallet's id is given
}

func (tx appTx) lockOwner(ctx context.Context, o CustomerOwner, newID ids.ID, now int64) (ledger.Wallet, error) {
	if o.WalletID.IsZero() {
		if err := tx.VerifyFence(ctx, o.Fence); err != nil {
			return ledger.Wallet{}, err
		}
		return tx.LockOrCreateWallet(ctx, newID, o.Identity, now)
	}
	locked, err := tx.LockWallets(ctx, o.Identity)
	if err != nil {
		return ledger.Wallet{}, err
	}
	if len(locked) == 0 || locked[0].ID != o.WalletID {
		return ledger.Wallet{}, fault.New(fault.WalletNotFound)
	}
	return locked[0], nil
}

// KeepCustomer stores the provider's customer id of the owner and returns the stored one:
// of two created at once, the first is used. Creating it at the provider takes seconds, in
// which the wallet may have been renamed or erased: then nothing is stored.
func (a Accounts) KeepCustomer(ctx context.Context, connection ids.ID, owner CustomerOwner, customerID string, now int64) (kept string, err error) {
	newID := ids.New()
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		w, err := tx.lockOwner(ctx, owner, newID, now)
		if err != nil {
			return err
		}
		_, err = tx.ExecAny(ctx, insertCustomer, connection, w.ID, a.app.Scope.OrgID, customerID, now)
		if pg.SQLState(err) == pg.UniqueViolation {
			return ErrCustomerTaken
		}
		if err != nil {
			return err
		}
		kept, err = tx.customer(ctx, connection, owner.Identity)
		return err
	})
	return kept, err
}

// ForgetCustomer removes a customer that was deleted at the provider.
func (a Accounts) ForgetCustomer(ctx context.Context, connection ids.ID, customerID string) error {
	return a.app.ExecAny(ctx, deleteCustomer, connection, customerID)
}
