package reports

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// DepositQuery asks for what came into all wallets of an application, newest first unless
// it says otherwise.
type DepositQuery struct {
	Kind      metering.EntryKind // any of deposit, grant and top-up when empty
	CreditKey string             // all when empty
	Identity  string             // of a customer, in a usual spelling; all when empty
	From, To  int64              // by the application's clock, half-open; 0 for no end
	Oldest    bool               // oldest first; Before is then the id that the page follows
	pg.Page
}

type DepositFound struct {
	ledger.Deposit
	Kind       metering.EntryKind
	WalletID   ids.ID
	SourceKind string
	SourceID   string
}

// The moments bound the ids as well, so that the list begins where it should: an id
// is never younger than its entry, and older by no more than the clock is ahead.
const (
	depositsFound = `
		SELECT` + ledger.DepositColumns + `, j.kind, j.wallet_id, j.source_kind, j.source_id
		FROM (`

	withTheirNames = `
			LIMIT $6
		) j
		JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
		ORDER BY j.id `
)

// allDeposits is for any kind: nearly all entries came in, so the others are passed over.
func allDeposits(name, order string) pg.Statement {
	return pg.Declare(name, depositsFound+`
			SELECT id, wallet_id, seq, kind, credit_id, delta_nanocredits, idempotency_key, created_at, source_kind, source_id
			FROM journal WHERE app_id = $1 AND id < $2 AND id > $3 AND created_at >= $4 AND created_at < $5
			  AND kind IN ('deposit', 'grant', 'top-up')
			ORDER BY id `+order+withTheirNames+order)
}

// someDeposits is for one kind or credit, of which there may be hardly any among millions.
// Each credit has its own stretch of the index for each kind, and the first of all are among
// the first of each. The stretch is bounded as a whole, and sorted so, because the planner
// cannot know that the kind is rare, and would look for it among all of them.
func someDeposits(name, order string) pg.Statement {
	return pg.Declare(name, depositsFound+`
			SELECT d.id, d.wallet_id, d.seq, d.kind, d.credit_id, d.delta_nanocredits, d.idempotency_key, d.created_at, d.source_kind, d.source_id
			FROM credits k CROSS JOIN unnest($7::text[]) AS t (kind) CROSS JOIN LATERAL (
				SELECT id, wallet_id, seq, kind, credit_id, delta_nanocredits, idempotency_key, created_at, source_kind, source_id
				FROM journal WHERE app_id = $1 AND (kind, credit_id, id) < (t.kind, k.id, $2) AND (kind, credit_id, id) > (t.kind, k.id, $3)
				  AND created_at >= $4 AND created_at < $5
				ORDER BY kind `+order+`, credit_id `+order+`, id `+order+` LIMIT $6
			) d
			WHERE k.app_id = $1 AND ($8::uuid IS NULL OR k.id = $8)
			ORDER BY d.id `+order+withTheirNames+order)
}

// customerDeposits is for one wallet, in the order of its journal. The page follows a
// deposit of the wallet.
func customerDeposits(name, order, after, end string) pg.Statement {
	return pg.Declare(name, `
		SELECT`+ledger.DepositColumns+`, j.kind, j.wallet_id, j.source_kind, j.source_id
		FROM (
			SELECT id, wallet_id, seq, kind, credit_id, delta_nanocredits, idempotency_key, created_at, source_kind, source_id
			FROM journal WHERE app_id = $1 AND wallet_id = $2
			  AND seq `+after+` coalesce((SELECT p.seq FROM journal p WHERE p.app_id = $1 AND p.id = $3 AND p.wallet_id = $2), `+end+`)
			  AND created_at >= $4 AND created_at < $5 AND kind = ANY ($7) AND ($8::uuid IS NULL OR credit_id = $8)
			ORDER BY seq `+order+` LIMIT $6
		) j
		JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
		ORDER BY j.seq `+order)
}

var (
	listCustomerDeposits       = customerDeposits("list deposits of a customer", "DESC", "<", "9223372036854775807")
	listOldestCustomerDeposits = customerDeposits("list deposits of a customer, oldest first", "ASC", ">", "0")

	listAllDeposits        = allDeposits("list deposits of all wallets", "DESC")
	listSomeDeposits       = someDeposits("list deposits of kinds and credits", "DESC")
	listOldestDeposits     = allDeposits("list deposits of all wallets, oldest first", "ASC")
	listSomeOldestDeposits = someDeposits("list deposits of kinds and credits, oldest first", "ASC")
)

var selectClockOffset = pg.Declare("select clock offset for the desk", `
	SELECT clock_offset FROM app_state WHERE app_id = $1`)

// lastMoment is the end of the year 9999.
const lastMoment = 253_402_300_799_999

// clockSlack is how much the clocks of nodes may differ.
const clockSlack = 60_000

// FindDeposits answers a query, and reports whether there are more.
func (a App) FindDeposits(ctx context.Context, q DepositQuery) (list []DepositFound, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		// The planner takes the policies for filters that hardly a row passes, so for a file,
		// which is longer than a page, it would sort all deposits there are.
		if _, err := tx.Conn.Exec(ctx, "SET LOCAL enable_sort = off"); err != nil {
			return fmt.Errorf("store: deposits: %w", err)
		}
		if q.Identity != "" {
			list, err = tx.customerDeposits(ctx, q)
			return err
		}
		ahead, err := pg.Find(ctx, tx, selectClockOffset, pgx.RowTo[int64], pg.ErrNoAppState)
		if err != nil {
			return err
		}
		all, some := listAllDeposits, listSomeDeposits
		before, after, to := q.Start(), pg.IDAt(q.From-ahead-clockSlack), q.To
		if q.Oldest {
			all, some, before = listOldestDeposits, listSomeOldestDeposits, pg.Page{}.Start()
			if pg.LessID(after, q.Before) {
				after = q.Before
			}
		}
		if to == 0 {
			to = lastMoment
		} else if end := pg.IDAt(to + clockSlack); pg.LessID(end, before) {
			before = end
		}
		args := []any{before, after, q.From, to, q.OneMore()}
		if q.Kind == "" && q.CreditKey == "" {
			list, err = pg.Collect(ctx, tx, all, readDepositFound, args...)
			return err
		}
		kinds, creditID, err := tx.depositFilter(ctx, q)
		if err != nil {
			return err
		}
		list, err = pg.Collect(ctx, tx, some, readDepositFound, append(args, kinds, creditID)...)
		return err
	})
	list, more = pg.Cut(list, q.Limit)
	return list, more, err
}

func (tx appTx) customerDeposits(ctx context.Context, q DepositQuery) ([]DepositFound, error) {
	wallets, err := tx.customer(ctx, q.Identity)
	if err != nil || len(wallets) == 0 {
		return nil, err
	}
	kinds, creditID, err := tx.depositFilter(ctx, q)
	if err != nil {
		return nil, err
	}
	statement := listCustomerDeposits
	if q.Oldest {
		statement = listOldestCustomerDeposits
	}
	return pg.Collect(ctx, tx, statement, readDepositFound, wallets[0], q.Before, q.From, cmp.Or(q.To, lastMoment), q.OneMore(), kinds, creditID)
}

// depositFilter is which kinds are asked for, and which credit if it is one.
func (tx appTx) depositFilter(ctx context.Context, q DepositQuery) (kinds []string, creditID *ids.ID, err error) {
	kinds = []string{string(metering.EntryDeposit), string(metering.EntryGrant), string(metering.EntryTopUp)}
	if q.Kind != "" {
		kinds = []string{string(q.Kind)}
	}
	if q.CreditKey == "" {
		return kinds, nil, nil
	}
	credit, err := tx.Credit(ctx, q.CreditKey)
	return kinds, &credit.ID, err
}

func readDepositFound(row pgx.CollectableRow) (d DepositFound, err error) {
	var sourceKind, sourceID *string
	d.Deposit, err = ledger.ReadDeposit(extendedRow{row, []any{&d.Kind, &d.WalletID, &sourceKind, &sourceID}})
	d.SourceKind, d.SourceID = pg.OrZero(sourceKind), pg.OrZero(sourceID)
	return d, err
}

var listDepositsOf = pg.Declare("list deposits of a wallet by its id", `
	SELECT`+ledger.DepositColumns+`, j.kind, j.wallet_id, j.source_kind, j.source_id
	FROM journal j
	JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
	JOIN credits c ON c.app_id = $1 AND c.id = j.credit_id
	WHERE j.app_id = $1 AND j.wallet_id = $2 AND j.seq < $3 AND j.kind IN ('deposit', 'grant', 'top-up')
	ORDER BY j.seq DESC LIMIT $4`)

// DepositsOf lists what came into one wallet, newest first, and reports whether
// there are more.
func (a App) DepositsOf(ctx context.Context, p JournalPage) (list []DepositFound, more bool, err error) {
	list, err = pg.ListAll(ctx, a.app, listDepositsOf, readDepositFound, p.WalletID, p.before(), p.Limit+1)
	list, more = pg.Cut(list, p.Limit)
	return list, more, err
}
