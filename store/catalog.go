package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

var (
	// An apply locks the whole catalog, in the order in which plans and features are locked
	// one by one.
	lockPlans = pg.Declare("lock plans", `
		SELECT id FROM plans WHERE app_id = $1 ORDER BY id LIMIT $2 FOR NO KEY UPDATE`)

	lockFeatures = pg.Declare("lock features", `
		SELECT id FROM features WHERE app_id = $1 ORDER BY id LIMIT $2 FOR NO KEY UPDATE`)

	lockCredits = pg.Declare("lock credits", `
		SELECT id FROM credits WHERE app_id = $1 ORDER BY id LIMIT $2 FOR NO KEY UPDATE`)
)

// Catalog reads all credits, features and plans by their keys, in one snapshot.
func (a App) Catalog(ctx context.Context) (billing.CatalogState, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (billing.CatalogState, error) { return tx.readCatalog(ctx) })
}

// readCatalog reads one row past the limit of each kind, so that a catalog that is too
// large is recognized.
func (tx appTx) readCatalog(ctx context.Context) (state billing.CatalogState, err error) {
	all := Page{Limit: billing.MaxCatalogItems}
	if state.Credits, err = pg.Collect(ctx, tx, listCredits, ledger.ReadCredit, all.Start(), all.OneMore()); err != nil {
		return state, err
	}
	if state.Features, err = pg.Collect(ctx, tx, listFeatures, readFeature, all.Start(), all.OneMore()); err != nil {
		return state, err
	}
	if state.Plans, err = pg.Collect(ctx, tx, listPlans, ledger.ReadCatalogPlan(), all.Start(), all.OneMore()); err != nil {
		return state, err
	}
	slices.SortFunc(state.Credits, func(a, b metering.Credit) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(state.Features, func(a, b metering.Feature) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(state.Plans, func(a, b billing.Plan) int { return strings.Compare(a.Key, b.Key) })
	return state, state.CheckSize()
}

// ApplyCatalog keeps what the rule makes of the stored catalog: all of it, or nothing
// when an item is blocked or the catalog is not at the expected version.
func (a App) ApplyCatalog(ctx context.Context, expected string, now int64, source string, compare func(billing.CatalogState) (billing.CatalogDiff, error)) (diff billing.CatalogDiff, version string, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		for _, lock := range []pg.Statement{lockPlans, lockFeatures, lockCredits} {
			if _, err := pg.Collect(ctx, tx, lock, pgx.RowTo[[16]byte], billing.MaxCatalogItems+1); err != nil {
				return err
			}
		}
		state, err := tx.readCatalog(ctx)
		if err != nil {
			return err
		}
		if state.Version() != expected {
			return fault.New(fault.CatalogChanged)
		}
		if diff, err = compare(state); err != nil {
			return err
		}
		if err := diff.Refusal(); err != nil {
			return err
		}
		if err := tx.applyCatalog(ctx, diff, now); err != nil {
			// Another transaction created an item of the same key after the locks.
			if fault.Is(err, fault.AlreadyExists) {
				return fault.New(fault.CatalogChanged)
			}
			return err
		}
		if state, err = tx.readCatalog(ctx); err != nil {
			return err
		}
		version = state.Version()
		return tx.auditCatalog(ctx, diff, source)
	})
	return diff, version, err
}

// applyCatalog writes credits before features before plans: each refers to those before.
func (tx appTx) applyCatalog(ctx context.Context, diff billing.CatalogDiff, now int64) error {
	var prices int64
	for _, item := range diff.Features {
		if item.Action != billing.CatalogNone {
			prices++
		}
	}
	// The epoch before new rows, as everything that creates one.
	last, err := tx.AdvanceEpochBy(ctx, prices)
	if err != nil {
		return err
	}
	if err := writeItems(diff.Credits,
		func(c metering.Credit) error { return tx.insertCredit(ctx, c) },
		func(c metering.Credit) error { return tx.updateCredit(ctx, c) }); err != nil {
		return err
	}
	number := last - prices
	if err := writeItems(diff.Features,
		func(f metering.Feature) error { number++; return tx.insertFeature(ctx, f, number) },
		func(f metering.Feature) error { number++; return tx.updateFeature(ctx, f, number, now) }); err != nil {
		return err
	}
	var written []billing.Plan
	if err := writeItems(diff.Plans,
		func(p billing.Plan) error { written = append(written, p); return tx.insertPlan(ctx, p) },
		func(p billing.Plan) error { written = append(written, p); return tx.updatePlan(ctx, p) }); err != nil {
		return err
	}
	return tx.syncPlans(ctx, written...)
}

func writeItems[T any](items []billing.CatalogItem[T], create, update func(T) error) error {
	for _, item := range items {
		var err error
		switch item.Action {
		case billing.CatalogCreate:
			err = create(item.After)
		case billing.CatalogUpdate:
			err = update(item.After)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// auditCatalog records the apply, then each change as if it had been made by itself.
func (tx appTx) auditCatalog(ctx context.Context, diff billing.CatalogDiff, source string) error {
	created, updated := diff.Count(billing.CatalogCreate), diff.Count(billing.CatalogUpdate)
	if created+updated == 0 {
		return nil
	}
	fields := audit.Fields{"created": strconv.Itoa(created), "updated": strconv.Itoa(updated)}
	if source != "" {
		fields["copiedFrom"] = source
	}
	if err := tx.Audit(ctx, "catalog.apply", "", nil, fields); err != nil {
		return err
	}
	if err := auditItems(ctx, tx, "credit", diff.Credits, factsOfCredit); err != nil {
		return err
	}
	if err := auditItems(ctx, tx, "feature", diff.Features, factsOfFeature); err != nil {
		return err
	}
	return auditItems(ctx, tx, "plan", diff.Plans, factsOfPlan)
}

func auditItems[T any](ctx context.Context, tx appTx, kind string, items []billing.CatalogItem[T], facts func(T) audit.Fields) error {
	for _, item := range items {
		var err error
		switch item.Action {
		case billing.CatalogCreate:
			err = tx.Audit(ctx, kind+".create", item.Key, nil, facts(item.After))
		case billing.CatalogUpdate:
			err = tx.Audit(ctx, kind+".update", item.Key, facts(item.Before), facts(item.After))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
