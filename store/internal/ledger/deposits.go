package ledger

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

const DepositColumns = `
	j.id, w.identity, j.seq, c.key, j.delta_nanocredits, j.idempotency_key, j.created_at`

// Deposit is credit that came into a wallet: by the caller, from a plan, or paid.
type Deposit struct {
	ID             ids.ID
	Identity       string
	WalletID       ids.ID // the wallet that a new deposit must go to; zero for any. Not set in one that is read
	Seq            int64
	CreditKey      string
	Amount         metering.Amount
	IdempotencyKey *string
	CreatedAt      int64
	ClockOffset    int64 // when CreatedAt was read. Not set in one that is read
}

func ReadDeposit(row pgx.CollectableRow) (d Deposit, err error) {
	var in pg.Delta
	err = row.Scan(&d.ID, &d.Identity, &d.Seq, &d.CreditKey, &in, &d.IdempotencyKey, &d.CreatedAt)
	d.Amount = in.Amount
	return d, err
}

// maxDepositScan is how many entries of the journal a page of deposits reads: most may be
// of another kind or credit.
const maxDepositScan = 20_000

var (
	selectDepositByKey = pg.Declare("select deposit by idempotency key", `
		SELECT`+DepositColumns+`
		FROM journal j
		JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
		WHERE j.app_id = $1 AND j.idempotency_key = $2`)

	listDeposits = pg.Declare("list deposits", `
		SELECT`+DepositColumns+`
		FROM (
			SELECT r.id, r.wallet_id, r.seq, r.credit_id, r.delta_nanocredits, r.idempotency_key, r.created_at
			FROM (
				SELECT id, wallet_id, seq, kind, credit_id, delta_nanocredits, idempotency_key, created_at
				FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq < $3 ORDER BY seq DESC LIMIT $6
			) r
			WHERE ($4::uuid IS NULL OR r.credit_id = $4) AND r.kind IN ('deposit', 'grant', 'top-up')
			ORDER BY r.seq DESC LIMIT $5
		) j
		JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
		ORDER BY j.seq DESC`)

	selectUnscanned = pg.Declare("select newest entry behind a page of deposits", `
		SELECT seq FROM journal WHERE app_id = $1 AND wallet_id = $2 AND seq < $3 ORDER BY seq DESC OFFSET $4 LIMIT 1`)
)

// Deposit adds credits to the wallet of an identity, made with the given id when it is
// missing, once for an idempotency key.
func (tx Tx) Deposit(ctx context.Context, walletID ids.ID, requested Deposit) (d Deposit, duplicate bool, err error) {
	if d, found, err := tx.depositByKey(ctx, requested.IdempotencyKey); found || err != nil {
		return d, found && d.ID != requested.ID, err
	}
	credit, err := tx.Credit(ctx, requested.CreditKey)
	if err != nil {
		return d, false, err
	}
	w, err := tx.LockOrCreateWallet(ctx, walletID, requested.Identity, requested.CreatedAt)
	if err != nil {
		return d, false, err
	}
	if !requested.WalletID.IsZero() && requested.WalletID != w.ID {
		return d, false, fault.New(fault.WalletNotFound)
	}
	entry, err := tx.Post(ctx, &w, Posting{
		ID: requested.ID, Kind: metering.EntryDeposit, Credit: credit, Delta: metering.Delta{Amount: requested.Amount},
		IdempotencyKey: requested.IdempotencyKey, Now: requested.CreatedAt, ClockOffset: requested.ClockOffset,
		Change: func(b metering.Balance) (metering.Balance, error) { return b.Receive(requested.Amount) },
	})
	if _, refused := errors.AsType[*fault.Fault](err); refused {
		// Another request with the key may have been the first to lock the wallet.
		if d, found, err := tx.depositByKey(ctx, requested.IdempotencyKey); found || err != nil {
			return d, found, err
		}
	}
	if err != nil {
		return d, false, err
	}
	requested.Seq, requested.CreatedAt = entry.Seq, entry.CreatedAt
	return requested, false, tx.Audit(ctx, "deposit.create", w.ID.Format(ids.Wallet), nil, audit.Fields{
		"deposit": requested.ID.Format(ids.Deposit), "creditKey": requested.CreditKey, "amountNanocredits": requested.Amount.String(),
	})
}

func (tx Tx) depositByKey(ctx context.Context, key *string) (d Deposit, found bool, err error) {
	list, err := pg.Collect(ctx, tx, selectDepositByKey, ReadDeposit, key)
	if found = len(list) == 1; found {
		d = list[0]
	}
	return d, found, err
}

// DepositPage asks for deposits of one wallet that came before a position; zero asks for
// the newest.
type DepositPage struct {
	Identity  string
	CreditKey string // all credits when empty
	Before    Position
	Limit     int
}

// Deposits lists what came into a wallet, newest first, and returns the position of the
// next page, or zero at the end. An identity without a wallet has none.
func (tx Tx) Deposits(ctx context.Context, p DepositPage) (list []Deposit, next Position, err error) {
	var creditID *ids.ID
	if p.CreditKey != "" {
		credit, err := tx.Credit(ctx, p.CreditKey)
		if err != nil {
			return nil, next, err
		}
		creditID = &credit.ID
	}
	w, err := tx.WalletAt(ctx, p.Identity, p.Before)
	if fault.Is(err, fault.WalletNotFound) {
		return nil, next, nil
	}
	if err != nil {
		return nil, next, err
	}
	before := cmp.Or(p.Before.Seq, math.MaxInt64)
	list, err = pg.Collect(ctx, tx, listDeposits, ReadDeposit, w.ID, before, creditID, p.Limit+1, maxDepositScan)
	if err != nil {
		return nil, next, err
	}
	if list, more := pg.Cut(list, p.Limit); more {
		return list, w.At(list[p.Limit-1].Seq), nil
	}
	rest, err := pg.Collect(ctx, tx, selectUnscanned, pgx.RowTo[int64], w.ID, before, maxDepositScan)
	if len(rest) > 0 {
		next = w.At(rest[0] + 1)
	}
	return list, next, err
}
