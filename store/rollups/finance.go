package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/metering"
	"purser/store/internal/pg"
)

var (
	// Balances are added up in one statement, so the sum is that of one moment.
	recordLiability = pg.Declare("record liability", `
		INSERT INTO liability_days (app_id, day, credit_id, org_id, held_nanocredits, debt_nanocredits, at)
		SELECT s.app_id, $2, b.credit_id, s.org_id, b.held, b.debt, $3
		FROM app_state s CROSS JOIN (
			SELECT x.credit_id, sum(x.amount_nanocredits) AS held, sum(x.debt_nanocredits) AS debt
			FROM balances x WHERE x.app_id = $1 GROUP BY x.credit_id
		) b
		WHERE s.app_id = $1
		ON CONFLICT (app_id, day, credit_id) DO UPDATE SET
			held_nanocredits = excluded.held_nanocredits, debt_nanocredits = excluded.debt_nanocredits, at = excluded.at`)

	// A credit that no wallet has any more keeps its last sum.
	selectLiability = pg.Declare("select liability", `
		SELECT c.key, l.held_nanocredits::text, l.debt_nanocredits::text, l.at
		FROM credits c CROSS JOIN LATERAL (
			SELECT held_nanocredits, debt_nanocredits, at FROM liability_days WHERE app_id = $1 AND credit_id = c.id AND day >= $2 ORDER BY day DESC LIMIT 1
		) l
		WHERE c.app_id = $1
		ORDER BY c.key`)

	sumFlows = pg.Declare("sum credits by kind", `
		SELECT c.key, d.kind, sum(d.came_nanocredits)::text, sum(d.taken_nanocredits)::text
		FROM entry_days d JOIN credits c ON c.app_id = $1 AND c.id = d.credit_id
		WHERE d.app_id = $1 AND d.day >= $2 AND d.day < $3
		GROUP BY c.key, d.kind ORDER BY c.key`)
)

// Revenue is what was paid on one day in one currency. A refund or a dispute belongs to the
// day of its payment.
type Revenue struct {
	Day           int64 // its first millisecond, in UTC
	Currency      string
	TopUp         bool // a top-up, otherwise a plan
	AmountCents   int64
	ReturnedCents int64 // refunded or disputed
}

// Liability is what customers hold and owe of a credit.
type Liability struct {
	Credit     string // its key
	Held, Debt metering.Total
	At         int64 // when it was added up, by the application's clock
}

// Flow is how many credits of a kind of entries came and went.
type Flow struct {
	Credit      string // its key
	Kind        metering.EntryKind
	Came, Taken metering.Total
}

// Finance is the money of an application in a range of days.
type Finance struct {
	Revenue   []Revenue   // by day
	Liability []Liability // now, by credit
	Flows     []Flow      // by credit
}

// liabilityAge is how old a sum may be that is shown as the present one.
const liabilityAge = 7 * 24 * 3_600_000

// RecordLiability adds up what customers hold and owe. It reads every balance of the
// application.
func (a App) RecordLiability(ctx context.Context) error {
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		if err := setForRollUp(ctx, tx); err != nil {
			return err
		}
		now, err := tx.AppTime(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecAny(ctx, recordLiability, metering.DayOf(now).Start, now)
		return err
	})
}

// Finance reads the days from one moment to another, in UTC, and the liability now.
func (a App) Finance(ctx context.Context, from, to, now int64) (Finance, error) {
	return pg.Return(ctx, a.read, func(ctx context.Context, tx *pg.Tx) (f Finance, err error) {
		settled, err := readSettled(ctx, tx)
		if err != nil {
			return f, err
		}
		if f.Revenue, err = readRevenue(ctx, tx, from, to, settled.Revenue); err != nil {
			return f, err
		}
		f.Liability, err = pg.Collect(ctx, tx, selectLiability, func(row pgx.CollectableRow) (l Liability, err error) {
			err = row.Scan(&l.Credit, (*pg.Total)(&l.Held), (*pg.Total)(&l.Debt), &l.At)
			return l, err
		}, now-liabilityAge)
		if err != nil {
			return f, err
		}
		f.Flows, err = pg.Collect(ctx, tx, sumFlows, func(row pgx.CollectableRow) (l Flow, err error) {
			err = row.Scan(&l.Credit, &l.Kind, (*pg.Total)(&l.Came), (*pg.Total)(&l.Taken))
			return l, err
		}, metering.DayOf(from).Start, to)
		return f, err
	})
}
