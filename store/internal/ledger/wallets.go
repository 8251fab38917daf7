package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// WalletColumns are the columns that ReadWallet reads.
const WalletColumns = `id, identity, billing_interval, billing_anchor, charged, created_at, last_seq, version`

// WalletColumnCount is how many they are.
const WalletColumnCount = 8

var (
	// EnsureWallets makes the wallets that are missing.
	EnsureWallets = pg.Declare("ensure wallets", `
		INSERT INTO wallets (app_id, id, org_id, identity, created_at)
		SELECT s.app_id, t.id, s.org_id, t.identity, $4
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::text[]) AS t (id, identity)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, identity) DO NOTHING`)

	// LockWallets locks wallets before they are read.
	//
	// The inner query runs once for each identity in the order of the array, so the
	// array's order is the order of the locks, whatever the planner thinks.
	LockWallets = pg.Declare("lock wallets", `
		SELECT `+pg.Prefixed("w", WalletColumns)+`
		FROM unnest($2::text[]) AS t (identity) CROSS JOIN LATERAL (
			SELECT `+WalletColumns+`
			FROM wallets WHERE app_id = $1 AND identity = t.identity
			FOR NO KEY UPDATE) w`)

	// SelectWallet reads the wallet of an identity.
	SelectWallet = pg.Declare("select wallet", `
		SELECT `+WalletColumns+`
		FROM wallets WHERE app_id = $1 AND identity = $2`)

	// ListWallets reads a page of wallets.
	ListWallets = pg.Declare("list wallets", `
		SELECT `+WalletColumns+`
		FROM wallets WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)

	selectBalances = pg.Declare("select balances", `
		SELECT b.wallet_id, b.credit_id, c.key, b.amount_nanocredits, b.debt_nanocredits
		FROM balances b JOIN credits c ON c.app_id = $1 AND c.id = b.credit_id
		WHERE b.app_id = $1 AND b.wallet_id = ANY ($2)
		ORDER BY c.key`)
)

// Wallet is a wallet with what only the store needs to know of it.
type Wallet struct {
	metering.Wallet
	LastSeq int64
	version int64
}

func ReadWallet(row pgx.CollectableRow) (Wallet, error) {
	var w Wallet
	var interval *metering.Interval
	var anchor *int64
	err := row.Scan(&w.ID, &w.Identity, &interval, &anchor, &w.Charged, &w.CreatedAt, &w.LastSeq, &w.version)
	if interval != nil && anchor != nil {
		w.BillingPeriod = &metering.BillingPeriod{Interval: *interval, Anchor: *anchor}
	}
	return w, err
}

// Wallet reads the wallet of an identity, with its balances.
func (tx Tx) Wallet(ctx context.Context, identity string) (metering.Wallet, error) {
	w, err := pg.Find(ctx, tx, SelectWallet, ReadWallet, fault.New(fault.WalletNotFound), identity)
	if err != nil {
		return metering.Wallet{}, err
	}
	wallets, err := tx.WithBalances(ctx, []Wallet{w})
	if err != nil {
		return metering.Wallet{}, err
	}
	return wallets[0], nil
}

// Position is where a list of one wallet's entries continues, by their numbers. It names the
// wallet, because an identity can get another one. The zero position is at no entry.
type Position struct {
	WalletID ids.ID // zero where the caller gives the number
	Seq      int64
}

// At is a position in the wallet, or the zero position for 0.
func (w Wallet) At(seq int64) (p Position) {
	if seq != 0 {
		p = Position{w.ID, seq}
	}
	return p
}

// WalletAt reads the wallet of an identity to list its entries from a position, which is
// refused if it is in another wallet: the identity was renamed or erased since.
func (tx Tx) WalletAt(ctx context.Context, identity string, p Position) (Wallet, error) {
	w, err := pg.Find(ctx, tx, SelectWallet, ReadWallet, fault.New(fault.WalletNotFound), identity)
	missing := fault.Is(err, fault.WalletNotFound)
	if err != nil && !missing {
		return w, err
	}
	if missing && p.Seq != 0 || !p.WalletID.IsZero() && p.WalletID != w.ID {
		err = fault.Newf(fault.InvalidRequest, "Invalid cursor. Start again without it.")
	}
	return w, err
}

// LockWallets locks the wallets that exist and gives them in the order of their
// identities. Every writer that reads wallets first locks all it needs
// here, at once: locked in one order, two transactions never wait for each other.
func (tx Tx) LockWallets(ctx context.Context, identities ...string) ([]Wallet, error) {
	slices.Sort(identities)
	return pg.Collect(ctx, tx, LockWallets, ReadWallet, slices.Compact(identities))
}

// WalletOf is the wallet of an identity among the locked ones, for one side of a transfer.
// With an id, it is a conflict if the identity has another wallet by now, or none.
func WalletOf(locked []Wallet, identity string, id ids.ID, side string) (*Wallet, error) {
	for i := range locked {
		if locked[i].Identity == identity && (id.IsZero() || locked[i].ID == id) {
			return &locked[i], nil
		}
	}
	if !id.IsZero() {
		return nil, fault.New(fault.RevisionConflict)
	}
	return nil, fault.Newf(fault.WalletNotFound, "The %s has no wallet. Create it with POST /v1/wallets or a deposit.", side)
}

// maxIdentityChanges is how often a wallet may get another identity while it is waited for.
const maxIdentityChanges = 100

// LockOrCreateWallet locks the wallet of an identity, and creates it first when it is
// missing. These are two statements: a row that a statement inserts, or that it
// waited for another to insert, is not there for its own lock. For a wallet that got
// another identity between them, it starts again.
func (tx Tx) LockOrCreateWallet(ctx context.Context, id ids.ID, identity string, now int64) (Wallet, error) {
	for range maxIdentityChanges {
		if _, err := tx.ExecAny(ctx, EnsureWallets, []ids.ID{id}, []string{identity}, now); err != nil {
			return Wallet{}, err
		}
		locked, err := tx.LockWallets(ctx, identity)
		if err != nil {
			return Wallet{}, err
		}
		if len(locked) == 1 {
			return locked[0], nil
		}
	}
	return Wallet{}, pg.ErrNoAppState
}

// WithBalances fills in the balances of the wallets, in the order of credit keys.
func (tx Tx) WithBalances(ctx context.Context, rows []Wallet) ([]metering.Wallet, error) {
	wallets := make([]metering.Wallet, len(rows))
	place := make(map[ids.ID]int, len(rows))
	walletIDs := make([]ids.ID, len(rows))
	for i, row := range rows {
		wallets[i] = row.Wallet
		walletIDs[i] = row.ID
		place[row.ID] = i
	}
	err := pg.Each(ctx, tx, selectBalances, func(row pgx.CollectableRow) error {
		var owner ids.ID
		var b metering.Balance
		err := row.Scan(&owner, &b.CreditID, &b.CreditKey, (*pg.Amount)(&b.Amount), (*pg.Amount)(&b.Debt))
		w := &wallets[place[owner]]
		w.Balances = append(w.Balances, b)
		return err
	}, walletIDs)
	return wallets, err
}

var SelectWalletByID = pg.Declare("select wallet by id", `
		SELECT `+WalletColumns+`
		FROM wallets WHERE app_id = $1 AND id = $2`)

// LockWalletByID locks a wallet by its id, which never changes, as its identity may.
func (tx Tx) LockWalletByID(ctx context.Context, id ids.ID) (Wallet, error) {
	for range pg.MaxAttempts {
		seen, err := pg.Find(ctx, tx, SelectWalletByID, ReadWallet, fault.New(fault.WalletNotFound), id)
		if err != nil {
			return Wallet{}, err
		}
		locked, err := tx.LockWallets(ctx, seen.Identity)
		if err != nil {
			return Wallet{}, err
		}
		if len(locked) == 1 && locked[0].ID == id {
			return locked[0], nil
		}
	}
	return Wallet{}, fmt.Errorf("store: wallet %s got another identity %d times", id, pg.MaxAttempts)
}
