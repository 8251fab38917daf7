package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

var (
	insertPlan = pg.Declare("insert plan", pg.Insert("plans", "org_id,"+ledger.PlanColumns))

	lockPlan = pg.Declare("lock plan", `
		SELECT`+ledger.PlanColumns+`
		FROM plans WHERE app_id = $1 AND key = $2 FOR NO KEY UPDATE`)

	// Features are locked before a plan refers to them, so that no price changes between
	// the check and the reference.
	holdFeatures = pg.Declare("hold features", `
		SELECT id FROM features WHERE app_id = $1 AND key = ANY ($2) ORDER BY id FOR SHARE`)

	listPlans = pg.Declare("list plans", `
		SELECT`+ledger.PlanColumns+`
		FROM plans WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`)

	updatePlan = pg.Declare("update plan", `
		UPDATE plans SET name = @name, amount_cents = @amount_cents, currency = @currency, billing_interval = @billing_interval, terms = @terms,
			topups_enabled = @topups_enabled, active = @active, revision = @revision, sync_status = @sync_status, sync_error = @sync_error,
			sync_version = @sync_version, price_number = @price_number, product_id = @product_id, price_id = @price_id
		WHERE app_id = $1 AND id = @id`)
)

// CreatePlan keeps a plan that the rule makes of the catalog it names.
func (a App) CreatePlan(ctx context.Context, draft billing.PlanDraft, make func(billing.Catalog) (billing.Plan, error)) (billing.Plan, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (p billing.Plan, err error) {
		catalog, err := tx.catalogOf(ctx, draft.Limits, draft.Grants, draft.Multipliers)
		if err != nil {
			return p, err
		}
		if p, err = make(catalog); err != nil {
			return p, err
		}
		if err := tx.InsertBounded(ctx, ledger.BoundOfPlans, func() error { return tx.insertPlan(ctx, p) }); err != nil {
			return p, err
		}
		if err := tx.syncPlans(ctx, p); err != nil {
			return p, err
		}
		return p, tx.Audit(ctx, "plan.create", p.Key, nil, factsOfPlan(p))
	})
}

// insertPlan keeps a new plan and what it refers to. The caller syncs it.
func (tx appTx) insertPlan(ctx context.Context, p billing.Plan) error {
	terms, err := ledger.EncodeTerms(p.Terms().Metering(), p.Grants)
	if err != nil {
		return err
	}
	err = tx.Exec(ctx, insertPlan, 1, pg.Named{
		"org_id": tx.Scope.OrgID, "id": p.ID, "key": p.Key, "name": p.Name, "amount_cents": p.AmountCents,
		"currency": p.Currency, "billing_interval": p.Interval, "terms": terms, "topups_enabled": p.TopupsEnabled,
		"active": p.Active, "revision": p.Revision, "sync_status": p.Sync.Status, "sync_error": pg.OrNull(p.Sync.Error),
		"sync_version": p.Sync.Version, "price_number": p.Sync.PriceNumber, "product_id": pg.OrNull(p.Sync.ProductID),
		"price_id": pg.OrNull(p.Sync.PriceID), "created_at": p.CreatedAt,
	})
	if pg.SQLState(err) == pg.UniqueViolation {
		return fault.Newf(fault.AlreadyExists, "A plan with the key %q already exists. Choose another key, or update that plan.", p.Key)
	}
	if err != nil {
		return err
	}
	return tx.Refer(ctx, p.ID, p.Terms().Metering())
}

// updatePlan keeps the new revision of a plan and what it refers to. The caller syncs it.
func (tx appTx) updatePlan(ctx context.Context, p billing.Plan) error {
	terms, err := ledger.EncodeTerms(p.Terms().Metering(), p.Grants)
	if err != nil {
		return err
	}
	if err := tx.Exec(ctx, updatePlan, 1, pg.Named{
		"id": p.ID, "name": p.Name, "amount_cents": p.AmountCents, "currency": p.Currency, "billing_interval": p.Interval,
		"terms": terms, "topups_enabled": p.TopupsEnabled, "active": p.Active, "revision": p.Revision,
		"sync_status": p.Sync.Status, "sync_error": pg.OrNull(p.Sync.Error), "sync_version": p.Sync.Version,
		"price_number": p.Sync.PriceNumber, "product_id": pg.OrNull(p.Sync.ProductID), "price_id": pg.OrNull(p.Sync.PriceID),
	}); err != nil {
		return err
	}
	return tx.Refer(ctx, p.ID, p.Terms().Metering())
}

func (a App) Plan(ctx context.Context, key string) (billing.Plan, error) {
	return pg.FindOne(ctx, a.app, ledger.SelectPlan, ledger.ReadPlan, fault.New(fault.PlanNotFound), key)
}

// Plans lists plans, newest first, and reports whether there are more.
func (a App) Plans(ctx context.Context, p Page) (list []billing.Plan, more bool, err error) {
	return pg.PageOf(ctx, a.app, p, listPlans, ledger.ReadPlan)
}

// UpdatePlan applies a patch and gives the plan as it then is.
func (a App) UpdatePlan(ctx context.Context, key string, patch billing.PlanPatch) (billing.Plan, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (p billing.Plan, err error) {
		was, err := pg.Find(ctx, tx, lockPlan, ledger.ReadPlan, fault.New(fault.PlanNotFound), key)
		if err != nil {
			return p, err
		}
		catalog, err := tx.catalogOf(ctx, pg.OrZero(patch.Limits), pg.OrZero(patch.Grants), pg.OrZero(patch.Multipliers))
		if err != nil {
			return p, err
		}
		if p, err = was.Patch(patch, catalog); err != nil || p.Revision == was.Revision {
			return p, err
		}
		if err := tx.updatePlan(ctx, p); err != nil {
			return p, err
		}
		if err := tx.syncPlans(ctx, p); err != nil {
			return p, err
		}
		return p, tx.Audit(ctx, "plan.update", p.Key, factsOfPlan(was), factsOfPlan(p))
	})
}

// catalogOf loads what the lists of a plan name, and holds the features still.
// What is not there is missing from it; the plan says so.
func (tx appTx) catalogOf(ctx context.Context, limits []metering.Limit, grants []billing.Grant, multipliers []metering.Multiplier) (billing.Catalog, error) {
	catalog := billing.Catalog{Features: map[string]metering.Feature{}, Credits: map[string]metering.Credit{}}
	var featureKeys []string
	for _, l := range limits {
		featureKeys = append(featureKeys, l.FeatureKey)
	}
	for _, m := range multipliers {
		featureKeys = append(featureKeys, m.FeatureKey)
	}
	if _, err := pg.Collect(ctx, tx, holdFeatures, pgx.RowTo[[16]byte], featureKeys); err != nil {
		return catalog, err
	}
	for _, key := range featureKeys {
		feature, err := tx.feature(ctx, key)
		if fault.Is(err, fault.FeatureNotFound) {
			continue
		}
		if err != nil {
			return catalog, err
		}
		catalog.Features[key] = feature
	}
	for _, g := range grants {
		credit, err := tx.Credit(ctx, g.CreditKey)
		if fault.Is(err, fault.CreditNotFound) {
			continue
		}
		if err != nil {
			return catalog, err
		}
		catalog.Credits[g.CreditKey] = credit
	}
	return catalog, nil
}

// syncPlans enqueues the sync of those plans that are pending, all at once: the hint of the
// queue is locked after its last row.
func (tx appTx) syncPlans(ctx context.Context, plans ...billing.Plan) error {
	var jobs []queue.Job
	for _, p := range plans {
		if p.Sync.Status == billing.SyncPending {
			jobs = append(jobs, queue.Job{Kind: queue.JobPlan, Object: p.ID.String()})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if err := tx.Enqueue(ctx, jobs...); err != nil {
		return err
	}
	return tx.ScheduleWake(ctx)
}
