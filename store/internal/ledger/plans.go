package ledger

import (
	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/store/internal/pg"
)

// PlanColumns are the columns that ReadPlan reads.
const PlanColumns = `
	id, key, name, amount_cents, currency, billing_interval, terms, topups_enabled, active, revision,
	sync_status, sync_error, sync_version, price_number, product_id, price_id, created_at`

// SelectPlan finds a plan by its key.
var SelectPlan = pg.Declare("select plan", `
		SELECT`+PlanColumns+`
		FROM plans WHERE app_id = $1 AND key = $2`)

func ReadPlan(row pgx.CollectableRow) (billing.Plan, error) {
	var p billing.Plan
	var terms []byte
	var syncError, productID, priceID *string
	err := row.Scan(&p.ID, &p.Key, &p.Name, &p.AmountCents, &p.Currency, &p.Interval, &terms, &p.TopupsEnabled, &p.Active, &p.Revision,
		&p.Sync.Status, &syncError, &p.Sync.Version, &p.Sync.PriceNumber, &productID, &priceID, &p.CreatedAt)
	if err != nil {
		return p, err
	}
	p.Sync.Error, p.Sync.ProductID, p.Sync.PriceID = pg.OrZero(syncError), pg.OrZero(productID), pg.OrZero(priceID)
	lists, grants, err := DecodeTerms(terms)
	p.Limits, p.Multipliers, p.Grants = lists.Limits, lists.Multipliers, grants
	return p, err
}

// ReadCatalogPlan is ReadPlan for a catalog that is read as a whole. It counts terms while they
// arrive: those of all plans could take more memory than a server has.
func ReadCatalogPlan() pgx.RowToFunc[billing.Plan] {
	terms := 0
	return func(row pgx.CollectableRow) (billing.Plan, error) {
		p, err := ReadPlan(row)
		if terms += p.TermCount(); err == nil && terms > billing.MaxCatalogTerms {
			err = fault.New(fault.CatalogTooLarge)
		}
		return p, err
	}
}
