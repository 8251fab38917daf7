package reports

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// EventFound is an event with the names of what it refers to.
type EventFound struct {
	metering.Event
	Seq         int64
	Identity    string
	FeatureKey  string
	FeatureName string
	Unit        string
	CreditKey   string
	KeyID       ids.ID
	KeyName     string
}

// EventQuery filters events, newest first. An event id selects that event alone. A
// wallet's events are paged by sequence number, all others by transaction id.
type EventQuery struct {
	EventID    string
	WalletID   ids.ID
	Identity   string // of EventsOfCustomer: in a usual spelling
	BeforeSeq  int64  // 0 for the newest
	FeatureKey string // all when empty; ignored for a wallet
	From, To   int64  // half-open, in milliseconds; 0 for none; ignored for a wallet
	pg.Page
}

func (q EventQuery) to() int64 { return cmp.Or(q.To, lastMoment) }

const eventFoundColumns = `
	e.tx_id, e.event_id, e.wallet_id, w.identity, e.key_id, coalesce(k.name, ''), e.seq, e.quantity, e.created_at, e.occurred_at,
	e.period_start, e.period_end, e.allowance_limit, e.allowance_used, e.allowance_start, e.allowance_end, e.allowance_overage,
	e.basis_points, e.amount_nanocredits, e.balance_after, e.debt_after, e.quoted_nanocredits, e.deduplicated_from, e.entity_id,
	p.feature_id, f.key, f.name, f.unit, p.credit_id, c.key, p.cost_nanocredits, p.quantity_per_unit, p.pricing_mode, p.revision, x.properties`

const storedEventColumns = `
	tx_id, event_id, wallet_id, key_id, seq, quantity, created_at, occurred_at, period_start, period_end,
	allowance_limit, allowance_used, allowance_start, allowance_end, allowance_overage, basis_points,
	amount_nanocredits, balance_after, debt_after, quoted_nanocredits, deduplicated_from, entity_id, price_number`

// References are looked up by key for the page's rows only. The planner underestimates
// how many rows pass the policies, and with plain joins it would scan all events of the
// page once for each price.
const eventFoundJoins = `
	CROSS JOIN LATERAL (SELECT identity FROM wallets WHERE app_id = $1 AND id = e.wallet_id LIMIT 1) w
	CROSS JOIN LATERAL (
		SELECT feature_id, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, revision
		FROM prices WHERE app_id = $1 AND number = e.price_number LIMIT 1
	) p
	CROSS JOIN LATERAL (SELECT key, name, unit FROM features WHERE app_id = $1 AND id = p.feature_id LIMIT 1) f
	CROSS JOIN LATERAL (SELECT key FROM credits WHERE app_id = $1 AND id = p.credit_id LIMIT 1) c
	LEFT JOIN LATERAL (SELECT name FROM api_keys WHERE app_id = $1 AND id = e.key_id LIMIT 1) k ON true
	LEFT JOIN LATERAL (
		SELECT properties::text AS properties FROM event_properties WHERE app_id = $1 AND wallet_id = e.wallet_id AND seq = e.seq LIMIT 1
	) x ON true`

var (
	listEventsAt = pg.Declare("list events by their places", `
		SELECT`+eventFoundColumns+`
		FROM unnest($2::uuid[], $3::bigint[]) AS t (wallet_id, seq)
		CROSS JOIN LATERAL (
			SELECT`+storedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq = t.seq LIMIT 1
		) e`+eventFoundJoins+`
		ORDER BY e.tx_id DESC`)

	listEventsOfWallet = pg.Declare("list events of a wallet", `
		SELECT`+eventFoundColumns+`
		FROM (
			(SELECT`+storedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq < $3
			ORDER BY seq DESC LIMIT $4)
			UNION ALL
			(SELECT`+storedEventColumns+` FROM (`+pg.PackedNewest+`) packed ORDER BY seq DESC LIMIT $4)
			ORDER BY seq DESC LIMIT $4
		) e`+eventFoundJoins+`
		ORDER BY e.seq DESC`)

	selectEventFound = pg.Declare("select event by its id", `
		SELECT`+eventFoundColumns+`
		FROM usage_events e`+eventFoundJoins+`
		WHERE e.app_id = $1 AND e.event_id = $2`)

	selectPackedFound = pg.Declare("select packed event by its id", `
		SELECT`+eventFoundColumns+`
		FROM unnest($2::uuid[]) AS t (id) CROSS JOIN LATERAL (`+pg.PackedByID+`) e`+eventFoundJoins)

	selectTransaction = pg.Declare("select event by its transaction", `
		SELECT`+eventFoundColumns+`
		FROM usage_events e`+eventFoundJoins+`
		WHERE e.app_id = $1 AND e.tx_id = $2`)

	selectPackedTransaction = pg.Declare("select packed event by its transaction", `
		SELECT`+eventFoundColumns+`
		FROM (`+pg.PackedByTransaction+`) e`+eventFoundJoins)

	// An unused feature is marked as such, so its events need no scan.
	selectUsedFeature = pg.Declare("select feature and whether it was used", `
		SELECT id, deduplication_locked FROM features WHERE app_id = $1 AND key = $2`)
)

// ofFeature is true for events of the feature $5, and for all when it is NULL. It looks up
// the price of each scanned event: a feature may have more prices than fit into memory, one
// for each change.
const ofFeature = `($5::uuid IS NULL OR (SELECT p.feature_id FROM prices p WHERE p.app_id = $1 AND p.number = price_number) = $5)`

// Events lists events and returns the next page, or nil at the end.
//
// There is no index by application and time, which every event would have to pay for. A
// BRIN index finds transactions, so the list scans a short window first, then longer
// ones before it. A list that has skipped very many events returns a partial page.
func (a App) Events(ctx context.Context, q EventQuery) ([]EventFound, *pg.Page, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]EventFound, *pg.Page, error) {
		return tx.events(ctx, q)
	})
}

func (tx appTx) events(ctx context.Context, q EventQuery) (list []EventFound, next *pg.Page, err error) {
	switch {
	case q.EventID != "":
		list, err = pg.Collect(ctx, tx, selectEventFound, readEventFound, pg.EncodeEventID(q.EventID))
		if err == nil && len(list) == 0 {
			list, err = pg.Collect(ctx, tx, selectPackedFound, readEventFound, pg.PackableIDs(pg.EncodeEventID(q.EventID)))
		}
		return list, nil, err
	case !q.WalletID.IsZero():
		before := cmp.Or(q.BeforeSeq, math.MaxInt64)
		list, err = pg.Collect(ctx, tx, listEventsOfWallet, readEventFound, q.WalletID, before, q.OneMore())
		var more bool
		if list, more = pg.Cut(list, q.Limit); more {
			next = &pg.Page{Limit: q.Limit}
		}
		return list, next, err
	case q.FeatureKey == "":
		return tx.eventsNewestFirst(ctx, q, nil)
	}
	feature, err := tx.usedFeature(ctx, q.FeatureKey)
	if err != nil || feature == nil {
		return nil, nil, err
	}
	return tx.eventsNewestFirst(ctx, q, feature)
}

// usedFeature is the id of a feature, nil when it was never used.
func (tx appTx) usedFeature(ctx context.Context, key string) (*ids.ID, error) {
	type feature struct {
		ID   ids.ID
		Used bool
	}
	f, err := pg.Find(ctx, tx, selectUsedFeature, pgx.RowToStructByPos[feature], fault.New(fault.FeatureNotFound), key)
	if err != nil || !f.Used {
		return nil, err
	}
	return &f.ID, nil
}

// eventsNewestFirst lists events of a feature, or all events for nil, newest first.
func (tx appTx) eventsNewestFirst(ctx context.Context, q EventQuery, feature *ids.ID) (list []EventFound, next *pg.Page, err error) {
	// A custom plan chooses between the BRIN index and the application's own index by
	// the values.
	if _, err := tx.Conn.Exec(ctx, "SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
		return nil, nil, fmt.Errorf("store: events: %w", err)
	}
	positions, next, err := tx.eventPositions(ctx, q, feature)
	if err != nil || len(positions) == 0 {
		return nil, next, err
	}
	// The rows have one sensible plan over five tables, so it is cached.
	if _, err := tx.Conn.Exec(ctx, "SET LOCAL plan_cache_mode = auto"); err != nil {
		return nil, nil, fmt.Errorf("store: events: %w", err)
	}
	wallets, seqs := make([]ids.ID, len(positions)), make([]int64, len(positions))
	for i, p := range positions {
		wallets[i], seqs[i] = p.WalletID, p.Seq
	}
	list, err = pg.Collect(ctx, tx, listEventsAt, readEventFound, wallets, seqs)
	return list, next, err
}

func readEventFound(row pgx.CollectableRow) (e EventFound, err error) {
	var event []byte
	var occurred, periodStart, periodEnd, limit, used, allowanceStart, allowanceEnd, basisPoints *int64
	var overage, entity, properties *string
	var debt, quoted *pg.Amount
	var deduplicated *ids.ID
	err = row.Scan(&e.TransactionID, &event, &e.WalletID, &e.Identity, &e.KeyID, &e.KeyName, &e.Seq, &e.Quantity, &e.CreatedAt, &occurred,
		&periodStart, &periodEnd, &limit, &used, &allowanceStart, &allowanceEnd, &overage,
		&basisPoints, (*pg.Amount)(&e.Charge.Amount), (*pg.Amount)(&e.BalanceAfter), &debt, &quoted, &deduplicated, &entity,
		&e.FeatureID, &e.FeatureKey, &e.FeatureName, &e.Unit, &e.CreditID, &e.CreditKey, (*pg.Amount)(&e.Charge.Cost), &e.Charge.QuantityPerUnit,
		&e.Charge.PricingMode, &e.Charge.FeatureRevision, &properties)
	if err != nil {
		return e, err
	}
	if e.Properties, err = metering.ParseProperties(pg.OrZero(properties)); err != nil {
		return e, err
	}
	e.EventID, e.EntityID, e.DebtAfter = pg.EventIDOf(event), pg.OrZero(entity), metering.Amount(pg.OrZero(debt))
	e.OccurredAt, e.DeduplicatedFrom = e.CreatedAt, pg.OrZero(deduplicated)
	if occurred != nil {
		e.OccurredAt = *occurred
	}
	e.Period = metering.Period{Start: pg.OrZero(periodStart), End: pg.OrZero(periodEnd)}
	e.Charge.BasisPoints, e.Charge.Billable = metering.ListPrice, e.Quantity
	if basisPoints != nil {
		e.Charge.BasisPoints = *basisPoints
	}
	if overage != nil {
		e.Allowance = metering.Allowance{
			Limit: pg.OrZero(limit), Used: pg.OrZero(used), Overage: metering.Overage(*overage),
			Period: metering.Period{Start: pg.OrZero(allowanceStart), End: pg.OrZero(allowanceEnd)},
		}
		e.Allowance.Covered = min(e.Allowance.Remaining(), e.Quantity)
		e.Charge.Billable -= e.Allowance.Covered
	}
	if e.Charge.PricingMode == metering.Callback {
		e.Quoted = &e.Charge.Amount // a callback's amount is stored only when it differs
		if quoted != nil {
			e.Quoted = new(metering.Amount(*quoted))
		}
	}
	if !e.DeduplicatedFrom.IsZero() {
		e.Charge.Billable = 0
	}
	return e, nil
}
