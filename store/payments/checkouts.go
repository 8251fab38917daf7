package payments

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// CheckoutKind is what a hosted page sells.
type CheckoutKind string

// A page sells a subscription or credits.
const (
	SubscriptionCheckout CheckoutKind = "subscription"
	TopUpCheckout        CheckoutKind = "topup"
)

// Checkout is a hosted page: a change of kind checkout, or a top-up.
type Checkout struct {
	ID          ids.ID
	Kind        CheckoutKind
	Identity    string
	SessionID   string // empty until the provider has created it
	State       string // of the change, or the top-up's status
	URL         string
	ExpiresAt   int64
	CreatedAt   int64
	PlanKey     string // of a subscription
	CreditKey   string // of a top-up
	CustomerID  string // of a top-up
	Amount      metering.Amount
	AmountCents int64
	Currency    string
}

// IsOpen reports whether the customer can still pay. A pending subscription has no URL
// while its debit is processing.
func (c Checkout) IsOpen() bool {
	return c.State == "requested" || c.State == "open" || c.State == "pending" && c.URL != ""
}

// IsUnderWay reports whether the checkout may still be paid, or is being paid.
func (c Checkout) IsUnderWay() bool {
	return c.IsOpen() || c.State == "pending" || c.State == "processing"
}

// Both halves of a checkout have the same columns.
const (
	changeCheckouts = `
		SELECT c.id, 'subscription' AS kind, w.identity, c.session_id, c.state, c.payment_url AS url, c.expires_at, c.requested_at AS created_at,
			c.terms #>> '{sale,planKey}' AS plan_key, NULL::text AS credit_key, NULL::text AS customer_id, 0::numeric AS amount,
			(c.terms #>> '{sale,amountCents}')::bigint AS amount_cents, c.terms #>> '{sale,currency}' AS currency
		FROM subscription_changes c JOIN wallets w ON w.app_id = $1 AND w.id = c.wallet_id
		WHERE c.app_id = $1 AND c.kind = 'checkout'`

	topUpCheckouts = `
		SELECT t.id, 'topup' AS kind, v.identity, t.session_id, t.status AS state, t.url, t.expires_at, t.created_at,
			NULL::text AS plan_key, d.key AS credit_key, t.customer_id, t.amount_nanocredits AS amount, t.amount_cents, t.currency
		FROM topups t
		JOIN wallets v ON v.app_id = $1 AND v.id = t.wallet_id
		JOIN credits d ON d.app_id = $1 AND d.id = t.credit_id
		WHERE t.app_id = $1`
)

var (
	selectCheckoutBySession = pg.Declare("select checkout by session", changeCheckouts+` AND c.session_id = $2
		UNION ALL`+topUpCheckouts+` AND t.session_id = $2`)

	selectCheckoutByID = pg.Declare("select checkout by id", changeCheckouts+` AND c.id = $2
		UNION ALL`+topUpCheckouts+` AND t.id = $2`)

	// Each half is limited before the union: a page never costs more than two.
	listCheckouts = pg.Declare("list checkouts", `
		(`+changeCheckouts+` AND c.id < $2 AND ($3::text IS NULL OR $3 = 'subscription') AND ($4::text IS NULL OR c.state = $4)
		ORDER BY c.id DESC LIMIT $5)
		UNION ALL
		(`+topUpCheckouts+` AND t.id < $2 AND ($3::text IS NULL OR $3 = 'topup') AND ($4::text IS NULL OR t.status = $4)
		ORDER BY t.id DESC LIMIT $5)
		ORDER BY id DESC LIMIT $5`)

	// An identity's checkouts are found by the wallet's index.
	listCheckoutsOfWallet = pg.Declare("list checkouts of wallet", `
		(`+changeCheckouts+` AND c.wallet_id = $6 AND c.id < $2 AND ($3::text IS NULL OR $3 = 'subscription') AND ($4::text IS NULL OR c.state = $4)
		ORDER BY c.id DESC LIMIT $5)
		UNION ALL
		(`+topUpCheckouts+` AND t.wallet_id = $6 AND t.id < $2 AND ($3::text IS NULL OR $3 = 'topup') AND ($4::text IS NULL OR t.status = $4)
		ORDER BY t.id DESC LIMIT $5)
		ORDER BY id DESC LIMIT $5`)
)

func readCheckout(row pgx.CollectableRow) (c Checkout, err error) {
	var session, url, plan, credit, customer *string
	var expires *int64
	err = row.Scan(&c.ID, &c.Kind, &c.Identity, &session, &c.State, &url, &expires, &c.CreatedAt, &plan, &credit, &customer,
		(*pg.Amount)(&c.Amount), &c.AmountCents, &c.Currency)
	c.SessionID, c.URL, c.ExpiresAt = pg.OrZero(session), pg.OrZero(url), pg.OrZero(expires)
	c.PlanKey, c.CreditKey, c.CustomerID = pg.OrZero(plan), pg.OrZero(credit), pg.OrZero(customer)
	return c, err
}

// CheckoutBySession finds a checkout by the provider's session id.
func (a App) CheckoutBySession(ctx context.Context, sessionID string) (Checkout, error) {
	return pg.FindOne(ctx, a.app, selectCheckoutBySession, readCheckout, ErrUnknown, sessionID)
}

// CheckoutByID finds a checkout by our id.
func (a App) CheckoutByID(ctx context.Context, id ids.ID) (Checkout, error) {
	return pg.FindOne(ctx, a.app, selectCheckoutByID, readCheckout, ErrUnknown, id)
}

// CheckoutPage filters checkouts; an empty field does not filter.
type CheckoutPage struct {
	pg.Page
	WalletID ids.ID // in place of an identity, which may change between two pages
	Identity string
	Kind     CheckoutKind
	State    string
}

// Checkouts lists checkouts, newest first, and reports whether there are more.
func (a App) Checkouts(ctx context.Context, p CheckoutPage) (list []Checkout, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		// The planner underestimates how many rows pass the policies and would sort all
		// checkouts for one page.
		if _, err := tx.Conn.Exec(ctx, "SET LOCAL enable_sort = off"); err != nil {
			return fmt.Errorf("store: checkouts: %w", err)
		}
		asked := []any{p.Start(), pg.OrNull(p.Kind), pg.OrNull(p.State), p.OneMore()}
		wallet := p.WalletID
		switch {
		case !wallet.IsZero():
		case p.Identity == "":
			list, err = pg.Collect(ctx, tx, listCheckouts, readCheckout, asked...)
			return err
		default:
			wallets, err := pg.Collect(ctx, tx, ledger.SelectWallet, ledger.ReadWallet, p.Identity)
			if err != nil || len(wallets) == 0 {
				return err
			}
			wallet = wallets[0].ID
		}
		list, err = pg.Collect(ctx, tx, listCheckoutsOfWallet, readCheckout, append(asked, wallet)...)
		return err
	})
	list, more = pg.Cut(list, p.Limit)
	return list, more, err
}
