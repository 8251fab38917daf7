package reports

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

const (
	// DefaultKeepDenials is the default retention of denials.
	DefaultKeepDenials = 30 * 24 * time.Hour
	// denialsScanned is how many denials a filtered page reads before it returns a
	// partial page.
	denialsScanned = 5_000
	// prunedDenials is how many expired denials are deleted with each write: more than
	// are stored in the interval between two writes.
	prunedDenials = 500
)

// Denial is usage that was refused, or a check that was answered with no, with the
// decision as it was made: the gates read off it are those of that moment.
type Denial struct {
	ID        ids.ID
	RequestID ids.ID
	KeyID     ids.ID
	Identity  string
	Check     bool
	Decision  metering.Decision

	// Set by reads.
	WalletID    ids.ID // zero when the identity has no wallet
	FeatureKey  string
	FeatureName string
	Unit        string
	KeyName     string

	recordedAt int64 // on this node; not stored
}

// At is when the usage was denied, by the application's clock.
func (d Denial) At() int64 { return d.Decision.Event.CreatedAt }

// DenialQuery filters denials, newest first. A request selects its own alone.
type DenialQuery struct {
	RequestID  ids.ID
	Identity   string // all when empty
	FeatureKey string // all when empty
	Reason     fault.Code
	From, To   int64 // half-open, in milliseconds by the application's clock; 0 for none
	pg.Page
}

func (q DenialQuery) to() int64 { return cmp.Or(q.To, lastMoment) }

const (
	storedDenialColumns = `
		id, request_id, key_id, at, identity, feature_id, credit_id, reason, gate, event_id, entity_id, quantity, billable, pricing_mode,
		cost_nanocredits, quantity_per_unit, basis_points, amount_nanocredits, balance_nanocredits, debt_nanocredits,
		allowance_limit, allowance_used, allowance_start, allowance_end, allowance_overage`

	denialJoins = `
		LEFT JOIN LATERAL (SELECT key, name, unit FROM features WHERE app_id = $1 AND id = d.feature_id LIMIT 1) f ON true
		LEFT JOIN LATERAL (SELECT key FROM credits WHERE app_id = $1 AND id = d.credit_id LIMIT 1) c ON true
		LEFT JOIN LATERAL (SELECT name FROM api_keys WHERE app_id = $1 AND id = d.key_id LIMIT 1) k ON true
		LEFT JOIN LATERAL (SELECT id FROM wallets WHERE app_id = $1 AND identity = d.identity LIMIT 1) w ON true`

	// The filters see a bounded number of rows.
	filteredDenials = `
		WHERE ($5::uuid IS NULL OR feature_id = $5) AND ($6::text IS NULL OR reason = $6) AND at >= $7 AND at < $8
		ORDER BY id DESC LIMIT $9`
)

var (
	denialColumns = pg.Prefixed("d", storedDenialColumns) +
		`, w.id, coalesce(f.key, ''), coalesce(f.name, ''), coalesce(f.unit, ''), coalesce(c.key, ''), coalesce(k.name, '')`

	putDenials = pg.Declare("put denials", `
		INSERT INTO denial_records (app_id, org_id, `+storedDenialColumns+`)
		SELECT s.app_id, s.org_id, `+pg.Prefixed("t", storedDenialColumns)+`
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::text[], $7::uuid[], $8::uuid[], $9::text[], $10::text[],
			$11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::text[], $16::numeric[], $17::bigint[], $18::bigint[], $19::numeric[],
			$20::numeric[], $21::numeric[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::text[]) AS t (`+storedDenialColumns+`)
		WHERE s.app_id = $1`)

	PruneDenials = pg.Declare("prune denials", `
		DELETE FROM denial_records WHERE app_id = $1 AND id IN (
			SELECT d.id FROM denial_records d WHERE d.app_id = $1 AND d.id < $2 ORDER BY d.id LIMIT $3)`)

	listDenials   = denialsWhere("list denials", "")
	listDenialsOf = denialsWhere("list denials of an identity", "identity = $10 AND ")

	denialScanEnd   = denialScanEndWhere("find end of denials scan", "")
	denialScanEndOf = denialScanEndWhere("find end of denials scan of an identity", "identity = $5 AND ")

	listDenialsByRequest = pg.Declare("list denials of a request", `
		SELECT `+denialColumns+` FROM (
			SELECT `+storedDenialColumns+` FROM denial_records WHERE app_id = $1 AND request_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4
		) d`+denialJoins+`
		ORDER BY d.id DESC`)

	selectDenial = pg.Declare("select denial", `
		SELECT `+denialColumns+` FROM (
			SELECT `+storedDenialColumns+` FROM denial_records WHERE app_id = $1 AND id = $2
		) d`+denialJoins)

	selectFeatureID = pg.Declare("select feature id for denials", `
		SELECT id FROM features WHERE app_id = $1 AND key = $2`)
)

func denialsWhere(name, condition string) pg.Statement {
	return pg.Declare(name, `
		SELECT `+denialColumns+` FROM (
			SELECT `+storedDenialColumns+` FROM (
				SELECT `+storedDenialColumns+` FROM denial_records
				WHERE app_id = $1 AND `+condition+`id < $2 AND id >= $3 ORDER BY id DESC LIMIT $4
			) scanned`+filteredDenials+`
		) d`+denialJoins+`
		ORDER BY d.id DESC`)
}

// denialScanEndWhere finds where a scan of this many denials ends.
func denialScanEndWhere(name, condition string) pg.Statement {
	return pg.Declare(name, `
		SELECT id FROM denial_records WHERE app_id = $1 AND `+condition+`id < $2 AND id >= $3 ORDER BY id DESC OFFSET $4 LIMIT 1`)
}

// writeDenials stores denials and deletes some expired ones.
func (tx appTx) writeDenials(ctx context.Context, list []Denial, oldest ids.ID) error {
	rows := newColumns(25)
	for i := range list {
		d, decision, e := &list[i], &list[i].Decision, &list[i].Decision.Event
		var event, overage *string
		if !d.Check {
			event = &e.EventID
		}
		var limit, used, start, end *int64
		if a := &decision.Allowance; a.Limited() {
			limit, used, start, end, overage = &a.Limit, &a.Used, &a.Period.Start, &a.Period.End, (*string)(&a.Overage)
		}
		rows.add(d.ID, d.RequestID, d.KeyID, e.CreatedAt, d.Identity, e.FeatureID, e.CreditID, string(decision.Code), string(decision.Gate),
			event, pg.OrNull(e.EntityID), e.Quantity, e.Charge.Billable, string(e.Charge.PricingMode),
			pg.Amount(e.Charge.Cost), e.Charge.QuantityPerUnit, e.Charge.BasisPoints, pg.Amount(e.Charge.Amount),
			pg.Amount(decision.Before.Amount), pg.Amount(decision.Before.Debt), limit, used, start, end, overage)
	}
	if err := rows.exec(ctx, tx, putDenials); err != nil {
		return err
	}
	_, err := tx.ExecAny(ctx, PruneDenials, oldest, prunedDenials)
	return err
}

// OldestDenial is the lowest id within the retention of denials.
func (s *Counters) OldestDenial() ids.ID {
	return pg.IDAt(s.db.Clock.Now() - s.keepDenials.Milliseconds())
}

// KeepsDenials is the retention of denials.
func (s *Counters) KeepsDenials() time.Duration { return s.keepDenials }

// Denials lists denials, newest first, and returns the next page, or nil at the end. A
// filter that skips very many denials returns a partial page.
func (a App) Denials(ctx context.Context, q DenialQuery) ([]Denial, *pg.Page, error) {
	if err := a.flushStats(ctx); err != nil {
		return nil, nil, err
	}
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]Denial, *pg.Page, error) {
		if q.RequestID.IsZero() {
			return tx.denials(ctx, q, a.node.OldestDenial())
		}
		list, err := pg.Collect(ctx, tx, listDenialsByRequest, readDenial, q.RequestID, q.Start(), q.OneMore())
		list, next := nextPage(list, q)
		return list, next, err
	})
}

func nextPage(list []Denial, q DenialQuery) ([]Denial, *pg.Page) {
	list, more := pg.Cut(list, q.Limit)
	if !more {
		return list, nil
	}
	return list, &pg.Page{Before: list[len(list)-1].ID, Limit: q.Limit}
}

func (tx appTx) denials(ctx context.Context, q DenialQuery, oldest ids.ID) (list []Denial, next *pg.Page, err error) {
	// A plan for a reason that no denial has would read the table for each row of the page.
	// Citus plans with the values only.
	if !tx.Distributed {
		if _, err := tx.Conn.Exec(ctx, "SET LOCAL plan_cache_mode = force_generic_plan"); err != nil {
			return nil, nil, fmt.Errorf("store: denials: %w", err)
		}
	}
	var feature *ids.ID
	if q.FeatureKey != "" {
		id, err := pg.Find(ctx, tx, selectFeatureID, pgx.RowTo[ids.ID], fault.New(fault.FeatureNotFound), q.FeatureKey)
		if err != nil {
			return nil, nil, err
		}
		feature = &id
	}
	// The application's clock is ahead of the real time in ids, never behind.
	before := q.Start()
	if end := pg.IDAt(q.to() + clockSlack); pg.LessID(end, before) {
		before = end
	}
	if q.From != 0 {
		offset, err := pg.Find(ctx, tx, selectClockOffset, pgx.RowTo[int64], pg.ErrNoAppState)
		if err != nil {
			return nil, nil, err
		}
		if from := pg.IDAt(q.From - offset - clockSlack); pg.LessID(oldest, from) {
			oldest = from
		}
	}
	args := []any{before, oldest, denialsScanned, feature, pg.OrNull(string(q.Reason)), q.From, q.to(), q.OneMore()}
	ends, endArgs := denialScanEnd, []any{before, oldest, denialsScanned - 1}
	statement := listDenials
	if q.Identity != "" {
		statement, args = listDenialsOf, append(args, q.Identity)
		ends, endArgs = denialScanEndOf, append(endArgs, q.Identity)
	}
	if list, err = pg.Collect(ctx, tx, statement, readDenial, args...); err != nil {
		return nil, nil, err
	}
	if list, next = nextPage(list, q); next != nil {
		return list, next, nil
	}
	end, err := pg.Collect(ctx, tx, ends, pgx.RowTo[ids.ID], endArgs...)
	if len(end) > 0 {
		next = &pg.Page{Before: end[0], Limit: q.Limit}
	}
	return list, next, err
}

func (a App) Denial(ctx context.Context, id ids.ID) (d Denial, err error) {
	if err := a.flushStats(ctx); err != nil {
		return d, err
	}
	return pg.FindOne(ctx, a.app, selectDenial, readDenial, fault.New(fault.PathNotFound), id)
}

func readDenial(row pgx.CollectableRow) (d Denial, err error) {
	decision, e := &d.Decision, &d.Decision.Event
	var event, entity, overage *string
	var limit, used, start, end *int64
	var wallet *ids.ID
	err = row.Scan(&d.ID, &d.RequestID, &d.KeyID, &e.CreatedAt, &d.Identity, &e.FeatureID, &e.CreditID, &decision.Code, &decision.Gate,
		&event, &entity, &e.Quantity, &e.Charge.Billable, &e.Charge.PricingMode,
		(*pg.Amount)(&e.Charge.Cost), &e.Charge.QuantityPerUnit, &e.Charge.BasisPoints, (*pg.Amount)(&e.Charge.Amount),
		(*pg.Amount)(&decision.Before.Amount), (*pg.Amount)(&decision.Before.Debt), &limit, &used, &start, &end, &overage,
		&wallet, &d.FeatureKey, &d.FeatureName, &d.Unit, &decision.Before.CreditKey, &d.KeyName)
	if err != nil {
		return d, fmt.Errorf("store: denial: %w", err)
	}
	decision.Verdict = metering.Refused
	decision.Before.CreditID, decision.After = e.CreditID, decision.Before
	d.Check, e.EventID, e.EntityID, d.WalletID, e.WalletID = event == nil, pg.OrZero(event), pg.OrZero(entity), pg.OrZero(wallet), pg.OrZero(wallet)
	e.OccurredAt = e.CreatedAt
	if overage != nil {
		decision.Allowance = metering.Allowance{
			Limit: pg.OrZero(limit), Used: pg.OrZero(used), Overage: metering.Overage(*overage),
			Period: metering.Period{Start: pg.OrZero(start), End: pg.OrZero(end)},
		}
	}
	return d, nil
}
