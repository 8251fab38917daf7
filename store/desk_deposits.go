package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
)

// DepositQuery asks for what came into all wallets of an application, newest first.
type DepositQuery struct {
	Kind      metering.EntryKind // any of deposit, grant and top-up when empty
	CreditKey string             // all when empty
	From, To  int64              // by the application's clock, half-open; 0 for no end
	Page
}

// DepositFound is a deposit in a list.
type DepositFound struct {
	Deposit
	Kind       metering.EntryKind
	WalletID   ids.ID
	SourceKind string
	SourceID   string
}

// The moments bound the ids as well, so that the list begins where it should: an id
// is never younger than its entry, and older by no more than the clock is ahead.
var listAllDeposits = declare("list deposits of all wallets", `
	SELECT`+depositColumns+`, j.kind, j.wallet_id, j.source_kind, j.source_id
	FROM (
		SELECT id, wallet_id, seq, kind, credit_id, delta_nanocredits, idempotency_key, created_at, source_kind, source_id
		FROM journal WHERE app_id = $1 AND id < $2 AND id >= $3
		  AND kind = ANY ($4) AND created_at >= $5 AND created_at < $6
		  AND ($7::uuid IS NULL OR credit_id = $7)
		ORDER BY id DESC LIMIT $8
	) j
	JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
	JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
	ORDER BY j.id DESC`)

var selectClockOffset = declare("select clock offset for the desk", `
	SELECT clock_offset FROM app_state WHERE app_id = $1`)

// lastMoment is the end of the year 9999.
const lastMoment = 253_402_300_799_999

// clockSlack is how much the clocks of nodes may differ.
const clockSlack = 60_000

// FindDeposits answers a query, and reports whether there are more.
func (a App) FindDeposits(ctx context.Context, q DepositQuery) (list []DepositFound, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		// With the kinds at hand, the planner can use the index that has only what was
		// paid for; without, it goes through the deposits to find that there are none.
		if _, err := tx.conn.Exec(ctx, "SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return fmt.Errorf("store: deposits: %w", err)
		}
		var creditID *ids.ID
		if q.CreditKey != "" {
			credit, err := tx.credit(ctx, q.CreditKey)
			if err != nil {
				return err
			}
			creditID = &credit.ID
		}
		ahead, err := find(ctx, tx, selectClockOffset, pgx.RowTo[int64], errNoAppState)
		if err != nil {
			return err
		}
		kinds := []string{string(metering.EntryDeposit), string(metering.EntryGrant), string(metering.EntryTopUp)}
		if q.Kind != "" {
			kinds = []string{string(q.Kind)}
		}
		before, to := q.before(), q.To
		if to == 0 {
			to = lastMoment
		} else if end := idAt(to + clockSlack); lessID(end, before) {
			before = end
		}
		list, err = collect(ctx, tx, listAllDeposits, readDepositFound,
			before, idAt(q.From-ahead-clockSlack), kinds, q.From, to, creditID, q.oneMore())
		return err
	})
	list, more = cut(list, q.Limit)
	return list, more, err
}

func readDepositFound(row pgx.CollectableRow) (d DepositFound, err error) {
	var sourceKind, sourceID *string
	d.Deposit, err = readDeposit(behind{row, []any{&d.Kind, &d.WalletID, &sourceKind, &sourceID}})
	d.SourceKind, d.SourceID = orZero(sourceKind), orZero(sourceID)
	return d, err
}

var listDepositsOf = declare("list deposits of a wallet by its id", `
	SELECT`+depositColumns+`, j.kind, j.wallet_id, j.source_kind, j.source_id
	FROM journal j
	JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
	JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
	WHERE j.app_id = $1 AND j.wallet_id = $2 AND j.seq < $3 AND j.kind IN ('deposit', 'grant', 'top-up')
	ORDER BY j.seq DESC LIMIT $4`)

// DepositsOf lists what came into one wallet, newest first, and reports whether
// there are more.
func (a App) DepositsOf(ctx context.Context, p JournalPage) (list []DepositFound, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = collect(ctx, tx, listDepositsOf, readDepositFound, p.WalletID, p.before(), p.Limit+1)
		return err
	})
	list, more = cut(list, p.Limit)
	return list, more, err
}
