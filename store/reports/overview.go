package reports

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/sketch"
)

const dayMillis = 24 * hourMillis

// MaxOverviewDays is the longest period of an overview.
const MaxOverviewDays = 90

// Overview is the application's activity in a number of days including today, compared
// with as many before. It is read from the daily stats alone: some hundred rows for any
// number of wallets and events.
type Overview struct {
	Since   int64 // the first millisecond of the first day
	Days    []OverviewDay
	Now     Stats
	Before  Stats
	Hours   []OverviewDay  // of today, when the period is today
	Reasons []DenialReason // of this period, the most frequent first
	Top     []FeatureStats // of this period, the most used first
}

// OverviewDay is one bar of the chart: a day, or an hour of today.
type OverviewDay struct {
	Day    int64 // its first millisecond
	Uses   int64
	Denied int64
}

// Stats are the sums of a period.
type Stats struct {
	Uses        int64 // accepted or deduplicated
	Denied      int64 // uses and checks
	Active      int64 // different wallets
	ActiveExact bool  // otherwise within about 2 %
	Charged     []CreditTotal
	Deposited   []CreditTotal // deposits, grants and top-ups
}

// CreditTotal is a sum of one credit.
type CreditTotal struct {
	CreditID  ids.ID
	CreditKey string
	Total     metering.Total
}

// DenialReason is how often something was denied for one reason.
type DenialReason struct {
	Code  fault.Code
	Count int64
}

// FeatureStats is how often a feature was used and denied.
type FeatureStats struct {
	FeatureKey string
	Uses       int64
	Denied     int64
}

var (
	sumUses = pg.Declare("sum uses by day", `
		SELECT u.day, u.credit_id, c.key, sum(u.accepted + u.deduplicated)::bigint, sum(u.charged_nanocredits)::text
		FROM usage_days u JOIN credits c ON c.app_id = $1 AND c.id = u.credit_id
		WHERE u.app_id = $1 AND u.day >= $2 AND u.day < $3
		GROUP BY u.day, u.credit_id, c.key ORDER BY c.key, u.day`)

	// Bytewise collation: a language's takes several times as long.
	sumDenials = pg.Declare("sum denials by day", `
		SELECT d.day, d.reason COLLATE "C", sum(d.uses + d.checks)::bigint
		FROM denial_days d WHERE d.app_id = $1 AND d.day >= $2 AND d.day < $3
		GROUP BY 1, 2`)

	sumDeposits = pg.Declare("sum deposits by day", `
		SELECT d.day, d.credit_id, c.key, sum(d.entries)::bigint, sum(d.came_nanocredits)::text
		FROM entry_days d JOIN credits c ON c.app_id = $1 AND c.id = d.credit_id
		WHERE d.app_id = $1 AND d.day >= $2 AND d.day < $3 AND d.kind IN ('deposit', 'grant', 'top-up')
		GROUP BY d.day, d.credit_id, c.key ORDER BY c.key, d.day`)

	selectTodaysHours = pg.Declare("select hours of a day", `
		SELECT hour, uses, denials FROM activity_hours WHERE app_id = $1 AND hour >= $2 AND hour < $3`)

	selectActive = pg.Declare("select active days", `
		SELECT day, sketch FROM active_days WHERE app_id = $1 AND day >= $2 AND day < $3`)

	// Aggregated and limited before the features are joined: the planner underestimates
	// the rows and would scan all of them once for each feature.
	topFeatures = pg.Declare("top features", `
		SELECT f.key, t.uses, t.denied
		FROM (
			SELECT c.feature_id, sum(c.uses)::bigint AS uses, sum(c.denied)::bigint AS denied
			FROM (
				SELECT u.feature_id, u.accepted + u.deduplicated AS uses, 0 AS denied
				FROM usage_days u WHERE u.app_id = $1 AND u.day >= $2 AND u.day < $3
				UNION ALL
				SELECT d.feature_id, 0, d.uses + d.checks
				FROM denial_days d WHERE d.app_id = $1 AND d.day >= $2 AND d.day < $3
			) c
			GROUP BY c.feature_id ORDER BY 2 DESC, 3 DESC, 1 LIMIT $4
		) t JOIN features f ON f.app_id = $1 AND f.id = t.feature_id
		ORDER BY 2 DESC, 3 DESC, f.key`)
)

// readHours reads the hours of today from the hourly stats.
func (r *overviewReader) readHours(ctx context.Context, tx appTx) error {
	if len(r.Days) > 1 {
		return nil
	}
	for hour := r.since; hour < r.end; hour += hourMillis {
		r.Hours = append(r.Hours, OverviewDay{Day: hour})
	}
	return pg.Each(ctx, tx, selectTodaysHours, func(row pgx.CollectableRow) error {
		var hour, uses, denials int64
		err := row.Scan(&hour, &uses, &denials)
		if i := (hour - r.since) / hourMillis; err == nil && i < int64(len(r.Hours)) {
			r.Hours[i].Uses, r.Hours[i].Denied = uses, denials
		}
		return err
	}, r.since, r.end)
}

// topLength is how many features an overview names.
const topLength = 8

// OverviewPeriod is a number of days including today, in UTC.
func OverviewPeriod(now int64, days int) metering.Period {
	today := metering.DayOf(now)
	return metering.Period{Start: today.Start - int64(days-1)*dayMillis, End: today.End}
}

// Overview reads the last days, by the application's clock.
func (a App) Overview(ctx context.Context, now int64, days int) (o Overview, err error) {
	days = max(1, min(days, MaxOverviewDays))
	if err := a.flushStats(ctx); err != nil {
		return o, err
	}
	period := OverviewPeriod(now, days)
	r := overviewReader{end: period.End, since: period.Start, before: period.Start - int64(days)*dayMillis}
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		// The planner underestimates how many rows pass the policies and would sort ten
		// thousand rows to aggregate them, which takes twice as long.
		if _, err := tx.Conn.Exec(ctx, "SET LOCAL enable_sort = off"); err != nil {
			return fmt.Errorf("store: overview: %w", err)
		}
		r.Overview = Overview{Since: r.since, Days: make([]OverviewDay, days)}
		for i := range r.Days {
			r.Days[i].Day = r.since + int64(i)*dayMillis
		}
		return r.read(ctx, tx)
	})
	return r.Overview, err
}

// overviewReader collects the rows of both periods.
type overviewReader struct {
	Overview
	before, since, end int64
}

func (r *overviewReader) read(ctx context.Context, tx appTx) error {
	for _, step := range []func(context.Context, appTx) error{r.readUses, r.readDenials, r.readDeposits, r.readActive, r.readHours} {
		if err := step(ctx, tx); err != nil {
			return err
		}
	}
	top, err := pg.Collect(ctx, tx, topFeatures, pgx.RowToStructByPos[FeatureStats], r.since, r.end, topLength)
	r.Top = top
	return err
}

// period returns the period of a day, and the day's bar if it has one.
func (r *overviewReader) period(day int64) (*Stats, *OverviewDay) {
	if day < r.since {
		return &r.Before, &OverviewDay{}
	}
	return &r.Now, &r.Days[(day-r.since)/dayMillis]
}

func (r *overviewReader) readUses(ctx context.Context, tx appTx) error {
	rows, err := pg.Collect(ctx, tx, sumUses, readCreditDay, r.before, r.end)
	for _, row := range rows {
		stats, bar := r.period(row.day)
		stats.Uses += row.count
		bar.Uses += row.count
		stats.Charged = addTotal(stats.Charged, row.CreditTotal)
	}
	return err
}

func (r *overviewReader) readDeposits(ctx context.Context, tx appTx) error {
	rows, err := pg.Collect(ctx, tx, sumDeposits, readCreditDay, r.before, r.end)
	for _, row := range rows {
		stats, _ := r.period(row.day)
		stats.Deposited = addTotal(stats.Deposited, row.CreditTotal)
	}
	return err
}

func (r *overviewReader) readDenials(ctx context.Context, tx appTx) error {
	return pg.Each(ctx, tx, sumDenials, func(row pgx.CollectableRow) error {
		var day, count int64
		var reason fault.Code
		err := row.Scan(&day, &reason, &count)
		stats, bar := r.period(day)
		stats.Denied += count
		bar.Denied += count
		if stats == &r.Now {
			r.Reasons = addReason(r.Reasons, reason, count)
		}
		return err
	}, r.before, r.end)
}

func (r *overviewReader) readActive(ctx context.Context, tx appTx) error {
	now, before := sketch.New(), sketch.New()
	err := pg.Each(ctx, tx, selectActive, func(row pgx.CollectableRow) error {
		var day int64
		var text []byte
		if err := row.Scan(&day, &text); err != nil {
			return err
		}
		seen, err := sketch.Decode(text)
		if err != nil {
			return err
		}
		if day < r.since {
			before.Merge(seen)
		} else {
			now.Merge(seen)
		}
		return nil
	}, r.before, r.end)
	r.Now.Active, r.Now.ActiveExact = now.Count()
	r.Before.Active, r.Before.ActiveExact = before.Count()
	return err
}

// creditDay is a sum of one credit on one day.
type creditDay struct {
	CreditTotal
	day, count int64
}

func readCreditDay(row pgx.CollectableRow) (d creditDay, err error) {
	err = row.Scan(&d.day, &d.CreditID, &d.CreditKey, &d.count, (*pg.Total)(&d.Total))
	return d, err
}

func addTotal(list []CreditTotal, t CreditTotal) []CreditTotal {
	for i := range list {
		if list[i].CreditID == t.CreditID {
			list[i].Total = list[i].Total.Join(t.Total)
			return list
		}
	}
	return append(list, t)
}

// addReason keeps the list sorted; there are three reasons.
func addReason(list []DenialReason, code fault.Code, count int64) []DenialReason {
	at := -1
	for i := range list {
		if list[i].Code == code {
			list[i].Count += count
			at = i
		}
	}
	if at < 0 {
		list = append(list, DenialReason{code, count})
		at = len(list) - 1
	}
	for ; at > 0 && list[at].Count > list[at-1].Count; at-- {
		list[at], list[at-1] = list[at-1], list[at]
	}
	return list
}
