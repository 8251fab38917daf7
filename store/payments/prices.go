package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

var (
	selectPlanByID = pg.Declare("select plan by id", `
		SELECT`+ledger.PlanColumns+`
		FROM plans WHERE app_id = $1 AND id = $2`)

	// The plan's terms are about to be frozen. If the plan dropped a feature now, the
	// feature's price could change before the frozen terms reference it.
	holdPlan = pg.Declare("hold plan", `
		SELECT`+ledger.PlanColumns+`
		FROM plans WHERE app_id = $1 AND key = $2 FOR SHARE`)

	lockPlanByID = pg.Declare("lock plan by id", `
		SELECT`+ledger.PlanColumns+`
		FROM plans WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE`)

	updatePlanSync = pg.Declare("update plan sync", `
		UPDATE plans SET sync_status = $3, sync_error = $4, product_id = $5, price_id = $6
		WHERE app_id = $1 AND id = $2`)

	insertPlanPrice = pg.Declare("insert plan price", pg.Insert("plan_prices", `org_id, connection_id, price_id, plan_id, number, terms, created_at`)+`
		ON CONFLICT (app_id, price_id) DO NOTHING`)

	// Another price of the same number was deleted at the provider, or had another amount.
	supersedePrices = pg.Declare("supersede prices", `
		UPDATE plan_prices SET archive_after = $4
		WHERE app_id = $1 AND plan_id = $2 AND number <= $3 AND price_id <> $6 AND connection_id = $5 AND archive_after IS NULL
		RETURNING price_id`)

	archivePrice = pg.Declare("archive price", `
		UPDATE plan_prices SET archived_at = $3 WHERE app_id = $1 AND price_id = $2`)

	selectPriceTerms = pg.Declare("select price terms", `
		SELECT price_id, terms FROM plan_prices WHERE app_id = $1 AND price_id = ANY ($2)`)
)

func (a App) PlanByID(ctx context.Context, id ids.ID) (billing.Plan, error) {
	return pg.FindOne(ctx, a.app, selectPlanByID, ledger.ReadPlan, fault.New(fault.PlanNotFound), id)
}

// SyncedPlan is a plan's state at the provider.
type SyncedPlan struct {
	PlanID     ids.ID
	Began      billing.Sync // the plan's state when the job began
	Connection ids.ID
	ProductID  string
	PriceID    string
	Terms      billing.Terms // that the price sells
}

// PlanSynced stores a plan's product and price at the provider. The price is stored
// with its terms, and earlier prices are archived once no open checkout can sell them.
// The result of an account that was replaced meanwhile is discarded.
func (a App) PlanSynced(ctx context.Context, f queue.Fence, done SyncedPlan, now int64) (p billing.Plan, err error) {
	terms, err := ledger.FreezeTerms(done.Terms)
	if err != nil {
		return p, err
	}
	err = a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		if p, err = pg.Find(ctx, tx, lockPlanByID, ledger.ReadPlan, fault.New(fault.PlanNotFound), done.PlanID); err != nil {
			return err
		}
		connection, err := tx.connection(ctx)
		if err != nil || connection.ID != done.Connection {
			return err
		}
		before := p
		p = p.Synced(done.Began, done.ProductID, done.PriceID)
		if err := tx.writeSync(ctx, before, p); err != nil {
			return err
		}
		number := done.Began.PriceNumber
		if _, err := tx.ExecAny(ctx, insertPlanPrice, pg.Named{
			"org_id": a.app.Scope.OrgID, "connection_id": done.Connection, "price_id": done.PriceID, "plan_id": p.ID,
			"number": number, "terms": terms, "created_at": now,
		}); err != nil {
			return err
		}
		archiveAfter := now + billing.PriceArchiveDelay
		former, err := pg.Collect(ctx, tx, supersedePrices, pgx.RowTo[string], p.ID, number, archiveAfter, done.Connection, done.PriceID)
		if err != nil {
			return err
		}
		for _, price := range former {
			if err := tx.Enqueue(ctx, queue.Job{Kind: queue.JobArchive, Object: price, Connection: done.Connection, DueAt: archiveAfter}); err != nil {
				return err
			}
		}
		return tx.ScheduleWake(ctx)
	})
	return p, err
}

// PlanRefused stores why the provider rejected the plan.
func (a App) PlanRefused(ctx context.Context, f queue.Fence, plan ids.ID, began billing.Sync, reason string) error {
	return a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		p, err := pg.Find(ctx, tx, lockPlanByID, ledger.ReadPlan, fault.New(fault.PlanNotFound), plan)
		if err != nil {
			return err
		}
		return tx.writeSync(ctx, p, p.SyncRefused(began, pg.CutText(reason, queue.MaxError)))
	})
}

func (tx appTx) writeSync(ctx context.Context, before, p billing.Plan) error {
	if err := tx.Exec(ctx, updatePlanSync, 1, p.ID, p.Sync.Status, pg.OrNull(p.Sync.Error), pg.OrNull(p.Sync.ProductID), pg.OrNull(p.Sync.PriceID)); err != nil {
		return err
	}
	return tx.announceSync(ctx, before, p)
}

// PriceArchived marks a price as archived.
func (a App) PriceArchived(ctx context.Context, priceID string, now int64) error {
	return a.app.ExecAny(ctx, archivePrice, priceID, now)
}

// pricesNamed returns the terms of our prices that the provider's subscription names.
func (tx appTx) pricesNamed(ctx context.Context, remote billing.ProviderSubscription) (map[string]billing.Terms, error) {
	named := []string{remote.PriceID}
	if remote.Pending != nil {
		named = append(named, remote.Pending.PriceID)
	}
	if remote.Next != nil {
		named = append(named, remote.Next.PriceID)
	}
	for _, invoice := range remote.Invoices {
		for _, line := range invoice.Lines {
			named = append(named, line.PriceID)
		}
	}
	return pg.CollectMap(ctx, tx, selectPriceTerms, func(row pgx.CollectableRow) (price string, terms billing.Terms, err error) {
		var text []byte
		if err := row.Scan(&price, &text); err != nil {
			return price, terms, err
		}
		terms, err = ledger.ThawTerms(text)
		return price, terms, err
	}, named)
}
