package payments

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

const changeColumns = `
	c.id, c.kind, c.subscription_id, c.replaces, c.terms, c.state, c.requested_at, c.session_id, c.invoice_id, c.payment_url, c.expires_at`

var (
	insertChange = pg.Declare("insert change", pg.Insert("subscription_changes", `id, org_id, wallet_id, kind, subscription_id, replaces, terms, state, requested_at,
			session_id, invoice_id, payment_url, expires_at`))

	updateChange = pg.Declare("update change", `
		UPDATE subscription_changes SET subscription_id = @subscription_id, state = @state, session_id = @session_id, invoice_id = @invoice_id, payment_url = @payment_url, expires_at = @expires_at
		WHERE app_id = $1 AND id = @id`)

	dropChange = pg.Declare("drop change", `
		UPDATE subscription_changes SET state = 'dropped'
		WHERE app_id = $1 AND id = $2 AND state IN ('requested', 'pending')`)

	selectChange = pg.Declare("select change", `
		SELECT`+changeColumns+`
		FROM subscription_changes c WHERE c.app_id = $1 AND c.id = $2`)

	// All changes of a subscription, the checkout that created it, and the changes that
	// would replace it.
	selectChangesOf = pg.Declare("select changes of subscription", `
		SELECT`+changeColumns+`
		FROM subscription_changes c WHERE c.app_id = $1 AND c.wallet_id = $2 AND (c.subscription_id = $3 OR c.replaces = $3)
		ORDER BY c.id`)

	selectOpenChanges = pg.Declare("select open changes", `
		SELECT`+changeColumns+`
		FROM subscription_changes c WHERE c.app_id = $1 AND c.wallet_id = $2 AND c.state IN ('requested', 'pending')
		ORDER BY c.id`)

	selectIdentityOfChange = pg.Declare("select identity of change", `
		SELECT w.identity
		FROM subscription_changes c JOIN wallets w ON w.app_id = $1 AND w.id = c.wallet_id
		WHERE c.app_id = $1 AND c.id = $2`)
)

func readChange(row pgx.CollectableRow) (billing.Change, error) {
	var c billing.Change
	var subscription, replaces *ids.ID
	var terms []byte
	var session, invoice, url *string
	var expires *int64
	err := row.Scan(&c.ID, &c.Kind, &subscription, &replaces, &terms, &c.State, &c.RequestedAt, &session, &invoice, &url, &expires)
	if err != nil {
		return c, err
	}
	c.SubscriptionID, c.Replaces = pg.OrZero(subscription), pg.OrZero(replaces)
	c.SessionID, c.InvoiceID, c.PaymentURL, c.ExpiresAt = pg.OrZero(session), pg.OrZero(invoice), pg.OrZero(url), pg.OrZero(expires)
	c.Target, err = ledger.ThawTerms(terms)
	return c, err
}

func (tx appTx) insertChange(ctx context.Context, walletID ids.ID, c billing.Change) error {
	terms, err := ledger.FreezeTerms(c.Target)
	if err != nil {
		return err
	}
	if err := tx.Exec(ctx, insertChange, 1, pg.Named{
		"id": c.ID, "org_id": tx.Scope.OrgID, "wallet_id": walletID, "kind": c.Kind,
		"subscription_id": pg.OrNull(c.SubscriptionID), "replaces": pg.OrNull(c.Replaces), "terms": terms, "state": c.State,
		"requested_at": c.RequestedAt, "session_id": pg.OrNull(c.SessionID), "invoice_id": pg.OrNull(c.InvoiceID),
		"payment_url": pg.OrNull(c.PaymentURL), "expires_at": pg.OrNull(c.ExpiresAt),
	}); err != nil {
		return err
	}
	return tx.referChange(ctx, c)
}

// referChange references the features of an open change, so that their prices cannot
// change, and drops the references of a closed one.
func (tx appTx) referChange(ctx context.Context, c billing.Change) error {
	if c.State == billing.ChangeRequested || c.State == billing.ChangePending {
		return tx.Refer(ctx, c.ID, c.Target.Metering())
	}
	return tx.Refer(ctx, c.ID)
}

// dropChange drops a change that was not paid for.
func (tx appTx) dropChange(ctx context.Context, id ids.ID) error {
	dropped, err := tx.ExecAny(ctx, dropChange, id)
	if err != nil || dropped == 0 {
		return err
	}
	return tx.Refer(ctx, id)
}

// writeChanges stores the state of changes. Changes that are no longer pending go
// first: a unique index allows one pending change of a kind.
func (tx appTx) writeChanges(ctx context.Context, changes []billing.Change) error {
	waits := func(c billing.Change) int {
		if c.State == billing.ChangePending {
			return 1
		}
		return 0
	}
	changes = slices.SortedStableFunc(slices.Values(changes), func(a, b billing.Change) int { return cmp.Compare(waits(a), waits(b)) })
	for _, c := range changes {
		if err := tx.Exec(ctx, updateChange, 1, pg.Named{
			"id": c.ID, "subscription_id": pg.OrNull(c.SubscriptionID), "state": c.State, "session_id": pg.OrNull(c.SessionID),
			"invoice_id": pg.OrNull(c.InvoiceID), "payment_url": pg.OrNull(c.PaymentURL), "expires_at": pg.OrNull(c.ExpiresAt),
		}); err != nil {
			return err
		}
		if err := tx.referChange(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (a App) Change(ctx context.Context, id ids.ID) (billing.Change, error) {
	return pg.FindOne(ctx, a.app, selectChange, readChange, ErrUnknown, id)
}

// PutChange replaces the change that an operation requests, such as a checkout for an
// upgrade without a card to charge. The operation's state is stored in the same
// transaction: one without the other would sell something else.
func (a App) PutChange(ctx context.Context, f queue.Fence, op billing.Operation, c billing.Change) error {
	return a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		rec, err := tx.operationByID(ctx, op.ID)
		if err != nil {
			return err
		}
		if rec.ChangeID == c.ID { // committed by an earlier attempt whose reply was lost
			return nil
		}
		locked, err := tx.LockWallets(ctx, rec.Identity)
		if err != nil {
			return err
		}
		if len(locked) == 0 {
			return ErrUnknown
		}
		if err := tx.dropChange(ctx, rec.ChangeID); err != nil {
			return err
		}
		if err := tx.insertChange(ctx, locked[0].ID, c); err != nil {
			return err
		}
		if err := tx.Exec(ctx, setOpChange, 1, op.ID, c.ID); err != nil {
			return err
		}
		return tx.putOperation(ctx, op)
	})
}

// ApplyCheckout applies the state of a hosted checkout session to its change. A live
// subscription that it would replace shows the change as pending.
func (a App) ApplyCheckout(ctx context.Context, f queue.Fence, change ids.ID, remote billing.ProviderSession, now int64, end *Completion) (c billing.Change, err error) {
	var identity string
	err = a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		if identity, err = pg.Find(ctx, tx, selectIdentityOfChange, pgx.RowTo[string], ErrUnknown, change); err != nil {
			return err
		}
		locked, err := tx.LockWallets(ctx, identity)
		if err != nil {
			return err
		}
		if c, err = pg.Find(ctx, tx, selectChange, readChange, ErrUnknown, change); err != nil {
			return err
		}
		c = c.After(remote)
		if err := tx.writeChanges(ctx, []billing.Change{c}); err != nil {
			return err
		}
		if err := tx.showPendingChange(ctx, &locked[0], c.Replaces, now); err != nil {
			return err
		}
		return tx.complete(ctx, end)
	})
	a.app.WalletChanged(identity)
	return c, err
}

// showPendingChange updates a live subscription with the pending change that would
// replace it. An upgrade that waits for its payment comes first, and only a report of the
// subscription says what becomes of it.
func (tx appTx) showPendingChange(ctx context.Context, w *ledger.Wallet, subscription ids.ID, now int64) error {
	if subscription.IsZero() {
		return nil
	}
	s, err := pg.Find(ctx, tx, selectSubscription, readSubscription, ErrUnknown, subscription)
	if err != nil || !s.InUse() {
		return err
	}
	changes, err := pg.Collect(ctx, tx, selectChangesOf, readChange, w.ID, subscription)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(changes, func(c billing.Change) bool { return c.Kind == billing.Upgrade && c.State == billing.ChangePending }) {
		return nil
	}
	return tx.writeSubscription(ctx, w, &s, s.Awaiting(changes, now))
}

// IdentityOfChange returns the identity that requested a change.
func (a App) IdentityOfChange(ctx context.Context, change ids.ID) (string, error) {
	return pg.FindOne(ctx, a.app, selectIdentityOfChange, pgx.RowTo[string], ErrUnknown, change)
}
