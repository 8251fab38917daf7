package store

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy/audit"
)

const walletColumns = `id, identity, billing_interval, billing_anchor, charged, created_at, last_seq, version`

const walletColumnCount = 8

var (
	ensureWallets = declare("ensure wallets", `
		INSERT INTO wallets (app_id, id, org_id, identity, created_at)
		SELECT s.app_id, t.id, s.org_id, t.identity, $4
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::text[]) AS t (id, identity)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, identity) DO NOTHING`)

	// The inner query runs once for each identity in the order of the array, so the
	// array's order is the order of the locks, whatever the planner thinks.
	lockWallets = declare("lock wallets", `
		SELECT `+prefixed("w", walletColumns)+`
		FROM unnest($2::text[]) AS t (identity) CROSS JOIN LATERAL (
			SELECT `+walletColumns+`
			FROM wallets WHERE app_id = $1 AND identity = t.identity
			FOR NO KEY UPDATE) w`)

	selectWallet = declare("select wallet", `
		SELECT `+walletColumns+`
		FROM wallets WHERE app_id = $1 AND identity = $2`)

	listWallets = declare("list wallets", `
		SELECT `+walletColumns+`
		FROM wallets WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)

	selectBalances = declare("select balances", `
		SELECT b.wallet_id, b.credit_id, c.key, b.amount_nanocredits, b.debt_nanocredits
		FROM balances b JOIN credits c ON c.app_id = $1 AND c.id = b.credit_id
		WHERE b.app_id = $1 AND b.wallet_id = ANY ($2)
		ORDER BY c.key`)

	setBillingPeriod = declare("set billing period", `
		UPDATE wallets SET billing_interval = $3, billing_anchor = $4, version = version + 1
		WHERE app_id = $1 AND id = $2`)
)

// wallet is a wallet with what only the store needs to know of it.
type wallet struct {
	metering.Wallet
	lastSeq int64
	version int64
}

func readWallet(row pgx.CollectableRow) (wallet, error) {
	var w wallet
	var interval *metering.Interval
	var anchor *int64
	err := row.Scan(&w.ID, &w.Identity, &interval, &anchor, &w.Charged, &w.CreatedAt, &w.lastSeq, &w.version)
	if interval != nil && anchor != nil {
		w.BillingPeriod = &metering.BillingPeriod{Interval: *interval, Anchor: *anchor}
	}
	return w, err
}

// CreateWallet keeps a new, empty wallet, or gives the one that the identity has.
func (a App) CreateWallet(ctx context.Context, id ids.ID, identity string, now int64) (w metering.Wallet, created bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		made, err := tx.execAny(ctx, ensureWallets, []ids.ID{id}, []string{identity}, now)
		if err != nil {
			return err
		}
		created = made == 1
		w, err = tx.wallet(ctx, identity)
		return err
	})
	return w, created, err
}

// Wallet reads the wallet of an identity, with its balances, as of one moment.
func (a App) Wallet(ctx context.Context, identity string) (w metering.Wallet, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		w, err = tx.wallet(ctx, identity)
		return err
	})
	return w, err
}

func (tx appTx) wallet(ctx context.Context, identity string) (metering.Wallet, error) {
	w, err := find(ctx, tx, selectWallet, readWallet, fault.New(fault.WalletNotFound), identity)
	if err != nil {
		return metering.Wallet{}, err
	}
	wallets, err := tx.withBalances(ctx, []wallet{w})
	if err != nil {
		return metering.Wallet{}, err
	}
	return wallets[0], nil
}

// Wallets lists wallets with their balances, newest first, and reports whether
// there are more.
func (a App) Wallets(ctx context.Context, p Page) (list []metering.Wallet, more bool, err error) {
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		rows, err := collect(ctx, tx, listWallets, readWallet, p.before(), p.oneMore())
		if err != nil {
			return err
		}
		rows, more = cut(rows, p.Limit)
		list, err = tx.withBalances(ctx, rows)
		return err
	})
	return list, more, err
}

// SetBillingPeriod sets when the wallet's billing periods start, as long as
// nothing was charged. It holds the wallet's lock, so no use slips in between.
func (a App) SetBillingPeriod(ctx context.Context, identity string, period metering.BillingPeriod) (w metering.Wallet, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		locked, err := tx.lockWallets(ctx, identity)
		if err != nil {
			return err
		}
		if len(locked) == 0 {
			return fault.New(fault.WalletNotFound)
		}
		if _, err = locked[0].SetBillingPeriod(period); err != nil {
			return err
		}
		if err := tx.exec(ctx, setBillingPeriod, 1, locked[0].ID, period.Interval, period.Anchor); err != nil {
			return err
		}
		if w, err = tx.wallet(ctx, identity); err != nil {
			return err
		}
		return tx.audit(ctx, "wallet.billing-period", identity, nil, audit.Fields{
			"interval": string(period.Interval), "anchor": strconv.FormatInt(period.Anchor, 10),
		})
	})
	a.walletChanged(identity)
	return w, err
}

// walletChanged tells the batcher of this node, if there is one, that a wallet has
// moved. Other nodes find out by its version; here that would only be slower.
func (a App) walletChanged(identity string) {
	a.store.usageCaches.Range(func(m, _ any) bool {
		m.(*usageCache).evictWallet(a.scope.AppID, identity)
		return true
	})
}

// lockWallets locks the wallets that exist and gives them in the order of their
// identities. Every writer of wallets comes through here with all it needs at
// once: locked in one order, two transactions never wait for each other.
func (tx appTx) lockWallets(ctx context.Context, identities ...string) ([]wallet, error) {
	slices.Sort(identities)
	return collect(ctx, tx, lockWallets, readWallet, slices.Compact(identities))
}

// lockOrMakeWallet locks the wallet of an identity, made first when it is
// missing. These are two statements: a row that a statement inserts, or that it
// waited for another to insert, is not there for its own lock.
func (tx appTx) lockOrMakeWallet(ctx context.Context, id ids.ID, identity string, now int64) (wallet, error) {
	if _, err := tx.execAny(ctx, ensureWallets, []ids.ID{id}, []string{identity}, now); err != nil {
		return wallet{}, err
	}
	locked, err := tx.lockWallets(ctx, identity)
	if err != nil {
		return wallet{}, err
	}
	if len(locked) != 1 {
		return wallet{}, errNoAppState
	}
	return locked[0], nil
}

// withBalances fills in the balances of the wallets, in the order of credit keys.
func (tx appTx) withBalances(ctx context.Context, rows []wallet) ([]metering.Wallet, error) {
	wallets := make([]metering.Wallet, len(rows))
	place := make(map[ids.ID]int, len(rows))
	walletIDs := make([]ids.ID, len(rows))
	for i, row := range rows {
		wallets[i] = row.Wallet
		walletIDs[i] = row.ID
		place[row.ID] = i
	}
	_, err := collect(ctx, tx, selectBalances, func(row pgx.CollectableRow) (struct{}, error) {
		var owner ids.ID
		var b metering.Balance
		err := row.Scan(&owner, &b.CreditID, &b.CreditKey, (*amount)(&b.Amount), (*amount)(&b.Debt))
		w := &wallets[place[owner]]
		w.Balances = append(w.Balances, b)
		return struct{}{}, err
	}, walletIDs)
	return wallets, err
}
