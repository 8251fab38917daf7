package store

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// EventFound is an event with the names of all that it refers to.
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

// EventQuery asks for events, newest first. One with an event id asks for that one,
// whatever else it says. One with a wallet pages by the number of the wallet's
// entries; any other by transactions.
type EventQuery struct {
	EventID    string
	WalletID   ids.ID
	BeforeSeq  int64  // 0 for the newest of the wallet
	FeatureKey string // all when empty; not for a wallet's
	Page
}

const eventFoundColumns = `
	e.tx_id, e.event_id, e.wallet_id, w.identity, e.key_id, coalesce(k.name, ''), e.seq, e.quantity, e.created_at, e.occurred_at,
	e.period_start, e.period_end, e.allowance_limit, e.allowance_used, e.allowance_start, e.allowance_end, e.allowance_overage,
	e.basis_points, e.amount_nanocredits, e.balance_after, e.debt_after, e.quoted_nanocredits, e.deduplicated_from, e.entity_id,
	p.feature_id, f.key, f.name, f.unit, p.credit_id, c.key, p.cost_nanocredits, p.quantity_per_unit, p.pricing_mode, p.revision`

const storedEventColumns = `
	tx_id, event_id, wallet_id, key_id, seq, quantity, created_at, occurred_at, period_start, period_end,
	allowance_limit, allowance_used, allowance_start, allowance_end, allowance_overage, basis_points,
	amount_nanocredits, balance_after, debt_after, quoted_nanocredits, deduplicated_from, entity_id, price_number`

// What an event refers to is looked up for the page, and never for what is passed over.
const eventFoundJoins = `
	JOIN wallets w ON w.app_id = $1 AND w.id = e.wallet_id
	JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
	JOIN features f ON f.app_id = $1 AND f.id = p.feature_id
	JOIN credits c ON c.app_id = $1 AND c.id = p.credit_id
	LEFT JOIN api_keys k ON k.app_id = $1 AND k.id = e.key_id`

var (
	listEventsBetween = declare("list events between", `
		SELECT`+eventFoundColumns+`
		FROM (
			SELECT`+storedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND tx_id >= $2 AND tx_id < $3
			  AND ($5::bigint[] IS NULL OR price_number = ANY ($5))
			ORDER BY tx_id DESC LIMIT $4
		) e`+eventFoundJoins+`
		ORDER BY e.tx_id DESC`)

	listEventsOfWallet = declare("list events of a wallet", `
		SELECT`+eventFoundColumns+`
		FROM (
			SELECT`+storedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq < $3
			ORDER BY seq DESC LIMIT $4
		) e`+eventFoundJoins+`
		ORDER BY e.seq DESC`)

	selectEventFound = declare("select event by its id", `
		SELECT`+eventFoundColumns+`
		FROM usage_events e`+eventFoundJoins+`
		WHERE e.app_id = $1 AND e.event_id = $2`)

	selectTransaction = declare("select event by its transaction", `
		SELECT`+eventFoundColumns+`
		FROM usage_events e`+eventFoundJoins+`
		WHERE e.app_id = $1 AND e.tx_id = $2`)

	// A feature remembers that it was used, so those of one that never was need not
	// be looked for.
	selectPriceNumbers = declare("select prices of a feature", `
		SELECT p.number, f.deduplication_locked FROM features f JOIN prices p ON p.app_id = $1 AND p.feature_id = f.id
		WHERE f.app_id = $1 AND f.key = $2`)
)

// Events answers a query, and gives the page behind it: the zero Page when there is
// none.
//
// There is no index by application and time, which every use would have to pay for.
// Transactions are found through summaries of the table's blocks, over all
// applications, so the list looks at a short time first, and at longer ones before
// it. A list that has passed over very many events ends with what was found so far,
// and goes on from there.
func (a App) Events(ctx context.Context, q EventQuery) (list []EventFound, next *Page, err error) {
	if err := a.catchUp(ctx); err != nil {
		return nil, nil, err
	}
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		// With the values at hand, the planner knows whether blocks or the
		// application's own index are the shorter way.
		if _, err := tx.conn.Exec(ctx, "SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return fmt.Errorf("store: events: %w", err)
		}
		list, next, err = tx.events(ctx, q)
		return err
	})
	return list, next, err
}

func (tx appTx) events(ctx context.Context, q EventQuery) (list []EventFound, next *Page, err error) {
	switch {
	case q.EventID != "":
		id := byteaColumn
		id.eventID(q.EventID)
		list, err = collect(ctx, tx, selectEventFound, readEventFound, id.single())
		return list, nil, err
	case !q.WalletID.IsZero():
		before := q.BeforeSeq
		if before == 0 {
			before = math.MaxInt64
		}
		list, err = collect(ctx, tx, listEventsOfWallet, readEventFound, q.WalletID, before, q.oneMore())
		var more bool
		if list, more = cut(list, q.Limit); more {
			next = &Page{Limit: q.Limit}
		}
		return list, next, err
	}
	if q.FeatureKey == "" {
		return tx.eventsBackward(ctx, q, nil)
	}
	prices, err := collect(ctx, tx, selectPriceNumbers, pgx.RowToStructByPos[usedPrice], q.FeatureKey)
	if err != nil {
		return nil, nil, err
	}
	if len(prices) == 0 {
		return nil, nil, fault.New(fault.FeatureNotFound)
	}
	if !prices[0].Used {
		return nil, nil, nil
	}
	numbers := make([]int64, len(prices))
	for i, p := range prices {
		numbers[i] = p.Number
	}
	return tx.eventsBackward(ctx, q, numbers)
}

// usedPrice is a price, and whether its feature was ever used.
type usedPrice struct {
	Number int64
	Used   bool
}

func readEventFound(row pgx.CollectableRow) (e EventFound, err error) {
	var event []byte
	var occurred, periodStart, periodEnd, limit, used, allowanceStart, allowanceEnd, basisPoints *int64
	var overage, entity *string
	var debt, quoted *amount
	var deduplicated *ids.ID
	err = row.Scan(&e.TransactionID, &event, &e.WalletID, &e.Identity, &e.KeyID, &e.KeyName, &e.Seq, &e.Quantity, &e.CreatedAt, &occurred,
		&periodStart, &periodEnd, &limit, &used, &allowanceStart, &allowanceEnd, &overage,
		&basisPoints, (*amount)(&e.Charge.Amount), (*amount)(&e.BalanceAfter), &debt, &quoted, &deduplicated, &entity,
		&e.FeatureID, &e.FeatureKey, &e.FeatureName, &e.Unit, &e.CreditID, &e.CreditKey, (*amount)(&e.Charge.Cost), &e.Charge.QuantityPerUnit,
		&e.Charge.PricingMode, &e.Charge.FeatureRevision)
	if err != nil {
		return e, err
	}
	e.EventID, e.EntityID, e.DebtAfter = eventIDOf(event), orZero(entity), metering.Amount(orZero(debt))
	e.OccurredAt, e.DeduplicatedFrom = e.CreatedAt, orZero(deduplicated)
	if occurred != nil {
		e.OccurredAt = *occurred
	}
	e.Period = metering.Period{Start: orZero(periodStart), End: orZero(periodEnd)}
	e.Charge.BasisPoints, e.Charge.Billable = metering.ListPrice, e.Quantity
	if basisPoints != nil {
		e.Charge.BasisPoints = *basisPoints
	}
	if overage != nil {
		e.Allowance = metering.Allowance{
			Limit: orZero(limit), Used: orZero(used), Overage: metering.Overage(*overage),
			Period: metering.Period{Start: orZero(allowanceStart), End: orZero(allowanceEnd)},
		}
		e.Allowance.Covered = min(e.Allowance.Remaining(), e.Quantity)
		e.Charge.Billable -= e.Allowance.Covered
	}
	if e.Charge.PricingMode == metering.Callback {
		e.Quoted = &e.Charge.Amount // what a callback asked for is only kept when it differs
		if quoted != nil {
			asked := metering.Amount(*quoted)
			e.Quoted = &asked
		}
	}
	if !e.DeduplicatedFrom.IsZero() {
		e.Charge.Billable = 0
	}
	return e, nil
}
