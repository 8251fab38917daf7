package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// WalletFilter selects wallets of a list.
type WalletFilter string

const (
	AllWallets    WalletFilter = ""
	WalletsInDebt WalletFilter = "debt"
	WalletsOnHold WalletFilter = "hold" // a payment for their subscription failed
	WalletsOfPlan WalletFilter = "plan" // whose live subscription is to one plan
)

type WalletQuery struct {
	Filter WalletFilter
	PlanID ids.ID // of WalletsOfPlan
	// Order is of all wallets alone: of the others there is no index. In other orders than
	// newest first, Before is the wallet that the page follows.
	Order WalletOrder
	pg.Page
}

// WalletOrder is the order of a list of wallets, by an index.
type WalletOrder string

const (
	NewestWallets WalletOrder = ""
	OldestWallets WalletOrder = "oldest"
	ByIdentity    WalletOrder = "identity"
)

// WalletFound is a wallet in a list, with its subscription if it has one.
type WalletFound struct {
	metering.Wallet
	Subscription *SubscriptionFound
}

var (
	listOldestWallets = pg.Declare("list wallets, oldest first", `
		SELECT `+ledger.WalletColumns+` FROM wallets WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT $3`)

	listWalletsByIdentity = pg.Declare("list wallets by identity", `
		SELECT `+ledger.WalletColumns+`
		FROM wallets WHERE app_id = $1 AND identity > coalesce((SELECT c.identity FROM wallets c WHERE c.app_id = $1 AND c.id = $2), '')
		ORDER BY identity LIMIT $3`)

	listDebtors = pg.Declare("list wallets in debt", `
		SELECT `+pg.Prefixed("w", ledger.WalletColumns)+`
		FROM (
			SELECT DISTINCT wallet_id FROM debtors WHERE app_id = $1 AND wallet_id < $2 ORDER BY wallet_id DESC LIMIT $3
		) d JOIN wallets w ON w.app_id = $1 AND w.id = d.wallet_id
		ORDER BY w.id DESC`)

	listWalletsOnHold = pg.Declare("list wallets on hold", `
		SELECT `+pg.Prefixed("w", ledger.WalletColumns)+`
		FROM (
			SELECT wallet_id FROM subscriptions
			WHERE app_id = $1 AND status IN ('past_due', 'unpaid') AND wallet_id < $2 ORDER BY wallet_id DESC LIMIT $3
		) s JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		ORDER BY w.id DESC`)

	listWalletsOfPlan = pg.Declare("list wallets of a plan", `
		SELECT `+pg.Prefixed("w", ledger.WalletColumns)+`
		FROM (
			SELECT DISTINCT wallet_id FROM subscriptions
			WHERE app_id = $1 AND plan_id = $4 AND wallet_id < $2
			  AND status IN `+ledger.LiveStatuses+`
			ORDER BY wallet_id DESC LIMIT $3
		) s JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		ORDER BY w.id DESC`)
)

// FindWallets lists wallets and reports whether there are more.
func (a App) FindWallets(ctx context.Context, q WalletQuery) ([]WalletFound, bool, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]WalletFound, bool, error) {
		rows, err := tx.queryWallets(ctx, q)
		if err != nil {
			return nil, false, err
		}
		rows, more := pg.Cut(rows, q.Limit)
		list, err := tx.describe(ctx, rows)
		return list, more, err
	})
}

// describe fills in the balances and live subscriptions of wallets.
func (tx appTx) describe(ctx context.Context, rows []ledger.Wallet) ([]WalletFound, error) {
	wallets, err := tx.WithBalances(ctx, rows)
	if err != nil {
		return nil, err
	}
	return tx.withSubscriptions(ctx, wallets)
}

func (tx appTx) queryWallets(ctx context.Context, q WalletQuery) ([]ledger.Wallet, error) {
	switch {
	case q.Filter == WalletsInDebt:
		return pg.Collect(ctx, tx, listDebtors, ledger.ReadWallet, q.Start(), q.OneMore())
	case q.Filter == WalletsOnHold:
		return pg.Collect(ctx, tx, listWalletsOnHold, ledger.ReadWallet, q.Start(), q.OneMore())
	case q.Filter == WalletsOfPlan:
		return pg.Collect(ctx, tx, listWalletsOfPlan, ledger.ReadWallet, q.Start(), q.OneMore(), q.PlanID)
	case q.Order == OldestWallets:
		return pg.Collect(ctx, tx, listOldestWallets, ledger.ReadWallet, q.Before, q.OneMore())
	case q.Order == ByIdentity:
		return pg.Collect(ctx, tx, listWalletsByIdentity, ledger.ReadWallet, q.Before, q.OneMore())
	default:
		return pg.Collect(ctx, tx, ledger.ListWallets, ledger.ReadWallet, q.Start(), q.OneMore())
	}
}

// WalletByID reads a wallet with its balances and subscription in one snapshot.
func (a App) WalletByID(ctx context.Context, id ids.ID) (WalletFound, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (w WalletFound, err error) {
		row, err := pg.Find(ctx, tx, ledger.SelectWalletByID, ledger.ReadWallet, fault.New(fault.WalletNotFound), id)
		if err != nil {
			return w, err
		}
		found, err := tx.describe(ctx, []ledger.Wallet{row})
		if err == nil {
			w = found[0]
		}
		return w, err
	})
}

// withSubscriptions fills in the live subscriptions of the wallets.
func (tx appTx) withSubscriptions(ctx context.Context, wallets []metering.Wallet) ([]WalletFound, error) {
	list := make([]WalletFound, len(wallets))
	place := make(map[ids.ID]int, len(wallets))
	walletIDs := make([]ids.ID, len(wallets))
	for i, w := range wallets {
		list[i].Wallet, walletIDs[i], place[w.ID] = w, w.ID, i
	}
	err := pg.Each(ctx, tx, selectLiveSubscriptions, func(row pgx.CollectableRow) error {
		s, err := readSubscriptionFound(row)
		if err == nil {
			list[place[s.WalletID]].Subscription = &s
		}
		return err
	}, walletIDs)
	return list, err
}
