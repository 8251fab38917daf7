package reports

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/metering/monthly"
	"purser/store/internal/pg"
)

const (
	// MonthlyWallets is how many wallets one read for monthly files has.
	MonthlyWallets = 100
	// MonthlyRange is how many entries of each of several wallets one read has at most.
	MonthlyRange = 200
	// monthlyRangeOfOne is how many entries one read has of a wallet alone.
	monthlyRangeOfOne = 5_000
)

// MonthlyWallet is a wallet as far as monthly files depend on it.
type MonthlyWallet struct {
	ID      ids.ID
	LastSeq int64
	Sealed  int64 // entries up to this number were verified and sealed
}

// MonthlyPosition asks for the entries of a wallet after a number.
type MonthlyPosition struct {
	WalletID ids.ID
	After    int64
}

var (
	// Wallets' ids are in the order of their creation.
	selectFirstWallet = pg.Declare("select time of the first wallet", `
		SELECT created_at FROM wallets WHERE app_id = $1 ORDER BY id LIMIT 1`)

	listMonthlyWallets = pg.Declare("list wallets for monthly files", `
		SELECT w.id, w.last_seq, coalesce((SELECT s.seq FROM wallet_seals s WHERE s.app_id = $1 AND s.wallet_id = w.id), 0)
		FROM wallets w WHERE w.app_id = $1 AND w.id > $2
		ORDER BY w.id LIMIT $3`)

	listMonthlyEntries = pg.Declare("list entries for monthly files", `
		SELECT e.wallet_id, e.seq, e.id, e.kind, c.key, e.delta_nanocredits, e.balance_after, e.debt_after, e.created_at,
			e.idempotency_key, e.source_kind, e.source_id
		FROM unnest($2::uuid[], $3::bigint[]) AS t (wallet_id, after) CROSS JOIN LATERAL (
			SELECT wallet_id, seq, id, kind, credit_id, delta_nanocredits, balance_after, debt_after, created_at, idempotency_key, source_kind, source_id
			FROM journal WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq > t.after AND seq <= t.after + $4
			ORDER BY seq LIMIT $4) e CROSS JOIN LATERAL (
			SELECT key FROM credits WHERE app_id = $1 AND id = e.credit_id LIMIT 1) c`)

	// The prices of events are read once for all of them: see listMonthlyPrices.
	listMonthlyEvents = pg.Declare("list events for monthly files", `
		SELECT e.wallet_id, e.seq, e.tx_id, e.price_number, e.amount_nanocredits, e.balance_after, e.debt_after, e.created_at,
			e.event_id, e.quantity, e.basis_points, e.quoted_nanocredits, e.key_id, e.occurred_at, e.entity_id, e.period_start, e.period_end, e.deduplicated_from,
			e.allowance_limit, e.allowance_used, e.allowance_start, e.allowance_end, e.allowance_overage
		FROM unnest($2::uuid[], $3::bigint[]) AS t (wallet_id, after) CROSS JOIN LATERAL (
			(SELECT`+storedEventColumns+`
			FROM usage_events WHERE app_id = $1 AND wallet_id = t.wallet_id AND seq > t.after AND seq <= t.after + $4
			ORDER BY seq LIMIT $4)
			UNION ALL
			SELECT`+storedEventColumns+`
			FROM (
				SELECT`+pg.PackedColumns+`
				FROM `+pg.PackedBlock+`
				WHERE p.app_id = $1 AND p.wallet_id = t.wallet_id AND p.last_seq > t.after AND p.first_seq <= t.after + $4 AND u.seq > t.after AND u.seq <= t.after + $4
				ORDER BY u.seq LIMIT $4
			) packed) e`)

	listMonthlyPrices = pg.Declare("list prices for monthly files", `
		SELECT p.number, f.key, c.key, p.revision, p.pricing_mode, p.cost_nanocredits, p.quantity_per_unit
		FROM prices p
		JOIN features f ON f.app_id = $1 AND f.id = p.feature_id
		JOIN credits c ON c.app_id = $1 AND c.id = p.credit_id
		WHERE p.app_id = $1 AND p.number = ANY ($2)`)
)

// FirstWallet is when the application's first wallet was created, by its clock; 0 without
// wallets.
func (a App) FirstWallet(ctx context.Context) (at int64, err error) {
	found, err := pg.ListAll(ctx, a.app, selectFirstWallet, pgx.RowTo[int64])
	if len(found) == 1 {
		at = found[0]
	}
	return at, err
}

// MonthlyWallets lists at most MonthlyWallets wallets after one, in the order of their ids.
func (a App) MonthlyWallets(ctx context.Context, after ids.ID) ([]MonthlyWallet, error) {
	return pg.ListAll(ctx, a.app, listMonthlyWallets, pgx.RowToStructByPos[MonthlyWallet], after, MonthlyWallets)
}

// MonthlyEntries reads the next entries of wallets, a bounded number of each, in the order
// of their numbers. A wallet without further entries is not in the answer.
func (a App) MonthlyEntries(ctx context.Context, positions []MonthlyPosition) (found map[ids.ID][]monthly.Entry, err error) {
	wallets, after := make([]ids.ID, len(positions)), make([]int64, len(positions))
	for i, p := range positions {
		wallets[i], after[i] = p.WalletID, p.After
	}
	limit := MonthlyRange
	if len(positions) == 1 {
		limit = monthlyRangeOfOne
	}
	err = a.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		events, err := pg.Collect(ctx, tx, listMonthlyEvents, readMonthlyEvent, wallets, after, limit)
		if err != nil {
			return err
		}
		if err := tx.priceMonthly(ctx, events); err != nil {
			return err
		}
		entries, err := pg.Collect(ctx, tx, listMonthlyEntries, readMonthlyEntry, wallets, after, limit)
		found = mergeMonthly(events, entries)
		return err
	})
	return found, err
}

// monthlyPrice is the price that an event's price number refers to.
type monthlyPrice struct {
	Number             int64
	Feature, CreditKey string
	Revision           int64
	Mode               string
	Cost               pg.Amount
	QuantityPerUnit    int64
}

// priceMonthly fills in the prices of events.
func (tx appTx) priceMonthly(ctx context.Context, events []monthlyEntry) error {
	prices := map[int64]monthlyPrice{}
	for _, e := range events {
		prices[e.price] = monthlyPrice{}
	}
	found, err := pg.Collect(ctx, tx, listMonthlyPrices, pgx.RowToStructByPos[monthlyPrice], slices.Collect(maps.Keys(prices)))
	if err != nil {
		return err
	}
	for _, p := range found {
		prices[p.Number] = p
	}
	for i := range events {
		e := &events[i]
		p := prices[e.price]
		if p.Number != e.price {
			return fmt.Errorf("store: entry %d of wallet %s names price number %d, which does not exist", e.Seq, e.Wallet, e.price)
		}
		e.CreditKey, e.Event.Feature, e.Event.FeatureRevision = p.CreditKey, p.Feature, p.Revision
		e.Event.PricingMode, e.Event.Cost, e.Event.QuantityPerUnit = p.Mode, metering.Amount(p.Cost).String(), p.QuantityPerUnit
	}
	return nil
}

// mergeMonthly puts both kinds of entries of each wallet into one order. Each list has the
// entries of a wallet in order.
func mergeMonthly(lists ...[]monthlyEntry) map[ids.ID][]monthly.Entry {
	byWallet := map[ids.ID][]monthly.Entry{}
	for _, list := range lists {
		for _, e := range list {
			merged := append(byWallet[e.wallet], e.Entry)
			for i := len(merged) - 1; i > 0 && merged[i].Seq < merged[i-1].Seq; i-- {
				merged[i], merged[i-1] = merged[i-1], merged[i]
			}
			byWallet[e.wallet] = merged
		}
	}
	return byWallet
}

type monthlyEntry struct {
	wallet ids.ID
	price  int64 // of an event
	monthly.Entry
}

func readMonthlyEntry(row pgx.CollectableRow) (e monthlyEntry, err error) {
	var id ids.ID
	var change pg.Delta
	var balance, debt pg.Amount
	var sourceKind, sourceID *string
	err = row.Scan(&e.wallet, &e.Seq, &id, &e.Kind, &e.CreditKey, &change, &balance, &debt, &e.CreatedAt, &e.IdempotencyKey, &sourceKind, &sourceID)
	e.ID, e.Delta = id.Format(e.Kind.IDPrefix()), metering.Delta(change).String()
	e.setBalance(balance, debt)
	e.PaymentKind, e.PaymentID = pg.OrZero(sourceKind), pg.OrZero(sourceID)
	return e, err
}

func (e *monthlyEntry) setBalance(amount, debt pg.Amount) {
	e.Wallet, e.BalanceAfter = e.wallet.Format(ids.Wallet), metering.Amount(amount).String()
	if debt > 0 {
		e.DebtAfter = metering.Amount(debt).String()
	}
}

func readMonthlyEvent(row pgx.CollectableRow) (e monthlyEntry, err error) {
	var transaction, key ids.ID
	var original *ids.ID
	var event []byte
	var amount, balance pg.Amount
	var debt, quoted *pg.Amount
	var entity, overage *string
	var limit, used, start, end *int64
	v := &monthly.Event{}
	err = row.Scan(&e.wallet, &e.Seq, &transaction, &e.price, &amount, &balance, &debt, &e.CreatedAt,
		&event, &v.Quantity, &v.BasisPoints, &quoted, &key, &v.OccurredAt, &entity, &v.PeriodStart, &v.PeriodEnd, &original, &limit, &used, &start, &end, &overage)
	e.Kind, e.Event, e.ID = metering.EntryCharge, v, transaction.Format(ids.Transaction)
	e.Delta = metering.Delta{Amount: metering.Amount(amount), Out: true}.String()
	e.setBalance(balance, pg.OrZero(debt))
	v.ID, v.KeyID, v.EntityID = pg.EventIDOf(event), key.Format(ids.APIKey), pg.OrZero(entity)
	if quoted != nil {
		v.Quoted = metering.Amount(*quoted).String()
	}
	if original != nil {
		v.DeduplicatedFrom = original.Format(ids.Transaction)
	}
	if limit != nil {
		v.Allowance = &monthly.Allowance{Limit: *limit, Used: pg.OrZero(used), PeriodStart: pg.OrZero(start), PeriodEnd: pg.OrZero(end), Overage: pg.OrZero(overage)}
	}
	return e, err
}
