package store

import (
	"context"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// WalletFilter selects wallets of a list.
type WalletFilter string

// The filters of wallets.
const (
	AllWallets    WalletFilter = ""
	WalletsInDebt WalletFilter = "debt"
	WalletsOnHold WalletFilter = "hold" // a payment for their subscription failed
	WalletsOfPlan WalletFilter = "plan" // whose live subscription is to one plan
)

// WalletQuery filters wallets, newest first. An identity selects those with that
// prefix, ordered by identity, whatever the filter: the exact match comes first.
type WalletQuery struct {
	Identity string
	After    string // the identity behind which the page starts
	Filter   WalletFilter
	PlanID   ids.ID // of WalletsOfPlan
	Page
}

// WalletFound is a wallet in a list, with its subscription if it has one.
type WalletFound struct {
	metering.Wallet
	Subscription *SubscriptionFound
}

var (
	searchWallets = declare("search wallets", `
		SELECT `+walletColumns+`
		FROM wallets WHERE app_id = $1 AND identity >= $2 AND identity <= $3 AND identity > $4
		ORDER BY identity LIMIT $5`)

	listDebtors = declare("list wallets in debt", `
		SELECT `+prefixed("w", walletColumns)+`
		FROM (
			SELECT DISTINCT wallet_id FROM debtors WHERE app_id = $1 AND wallet_id < $2 ORDER BY wallet_id DESC LIMIT $3
		) d JOIN wallets w ON w.app_id = $1 AND w.id = d.wallet_id
		ORDER BY w.id DESC`)

	listWalletsOnHold = declare("list wallets on hold", `
		SELECT `+prefixed("w", walletColumns)+`
		FROM (
			SELECT wallet_id FROM subscriptions
			WHERE app_id = $1 AND status IN ('past_due', 'unpaid') AND wallet_id < $2 ORDER BY wallet_id DESC LIMIT $3
		) s JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		ORDER BY w.id DESC`)

	listWalletsOfPlan = declare("list wallets of a plan", `
		SELECT `+prefixed("w", walletColumns)+`
		FROM (
			SELECT DISTINCT wallet_id FROM subscriptions
			WHERE app_id = $1 AND plan_id = $4 AND wallet_id < $2
			  AND status IN ('active', 'trialing', 'past_due', 'unpaid', 'paused')
			ORDER BY wallet_id DESC LIMIT $3
		) s JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		ORDER BY w.id DESC`)

	selectWalletByID = declare("select wallet by id", `
		SELECT `+walletColumns+`
		FROM wallets WHERE app_id = $1 AND id = $2`)
)

// FindWallets lists wallets and reports whether there are more.
func (a App) FindWallets(ctx context.Context, q WalletQuery) (list []WalletFound, more bool, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		rows, err := tx.queryWallets(ctx, q)
		if err != nil {
			return err
		}
		rows, more = cut(rows, q.Limit)
		wallets, err := tx.withBalances(ctx, rows)
		if err != nil {
			return err
		}
		list, err = tx.withSubscriptions(ctx, wallets)
		return err
	})
	return list, more, err
}

func (tx appTx) queryWallets(ctx context.Context, q WalletQuery) ([]wallet, error) {
	switch {
	case q.Identity != "":
		// Text is sorted bytewise, so every identity with the prefix lies between the
		// prefix and the prefix followed by the last character.
		return collect(ctx, tx, searchWallets, readWallet, q.Identity, q.Identity+string(utf8.MaxRune), q.After, q.oneMore())
	case q.Filter == WalletsInDebt:
		return collect(ctx, tx, listDebtors, readWallet, q.before(), q.oneMore())
	case q.Filter == WalletsOnHold:
		return collect(ctx, tx, listWalletsOnHold, readWallet, q.before(), q.oneMore())
	case q.Filter == WalletsOfPlan:
		return collect(ctx, tx, listWalletsOfPlan, readWallet, q.before(), q.oneMore(), q.PlanID)
	default:
		return collect(ctx, tx, listWallets, readWallet, q.before(), q.oneMore())
	}
}

// WalletByID reads a wallet with its balances and subscription in one snapshot.
func (a App) WalletByID(ctx context.Context, id ids.ID) (w WalletFound, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		row, err := find(ctx, tx, selectWalletByID, readWallet, fault.New(fault.WalletNotFound), id)
		if err != nil {
			return err
		}
		wallets, err := tx.withBalances(ctx, []wallet{row})
		if err != nil {
			return err
		}
		found, err := tx.withSubscriptions(ctx, wallets)
		if err == nil {
			w = found[0]
		}
		return err
	})
	return w, err
}

// withSubscriptions fills in the live subscriptions of the wallets.
func (tx appTx) withSubscriptions(ctx context.Context, wallets []metering.Wallet) ([]WalletFound, error) {
	list := make([]WalletFound, len(wallets))
	place := make(map[ids.ID]int, len(wallets))
	walletIDs := make([]ids.ID, len(wallets))
	for i, w := range wallets {
		list[i].Wallet, walletIDs[i], place[w.ID] = w, w.ID, i
	}
	_, err := collect(ctx, tx, selectLiveSubscriptions, func(row pgx.CollectableRow) (struct{}, error) {
		s, err := readSubscriptionFound(row)
		if err == nil {
			list[place[s.WalletID]].Subscription = &s
		}
		return struct{}{}, err
	}, walletIDs)
	return list, err
}
