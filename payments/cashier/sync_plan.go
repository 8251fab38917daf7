package cashier

import (
	"context"
	"errors"
	"strconv"

	"github.com/google/uuid"

	"purser/billing"
	"purser/ids"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
	"purser/tenancy"
)

// RetrySync makes the plan's sync job due now.
func (c *Cashier) RetrySync(ctx context.Context, scope tenancy.Scope, planKey string) error {
	app := c.options.Store.App(scope)
	plan, err := app.Plan(ctx, planKey)
	if err != nil {
		return err
	}
	if err := c.options.Store.Queue(scope).Enqueue(ctx, queue.Job{Kind: queue.JobPlan, Object: plan.ID.String()}); err != nil {
		return err
	}
	c.Wake(scope)
	return nil
}

// syncPlan makes the provider's product and price match the plan. Both are found by
// references of ours, so a crash in between creates nothing twice, and changes made in
// the provider's dashboard are overwritten.
func (c *Cashier) syncPlan(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return 0, err
	}
	app := c.options.Store.Payments(acct.scope)
	return 0, c.withLease(ctx, acct.scope, planLease(ids.ID(id)), func(ctx context.Context, fence queue.Fence) error {
		plan, err := app.PlanByID(ctx, ids.ID(id))
		if err != nil {
			return ignoreNotFound(err)
		}
		price, err := c.pushPlan(ctx, acct, plan, job.Tries)
		if err != nil {
			return errors.Join(err, app.PlanRefused(ctx, fence, plan.ID, plan.Sync, errorMessage(err)))
		}
		terms := plan.Terms()
		terms.PriceID = price
		_, err = app.PlanSynced(ctx, fence, payments.SyncedPlan{
			PlanID: plan.ID, Began: plan.Sync, Connection: acct.ID, ProductID: plan.ProductReference(), PriceID: price, Terms: terms,
		}, c.nowAt(fence.ClockOffset))
		return err
	})
}

// pushPlan updates the product and returns the id of the plan's current price.
func (c *Cashier) pushPlan(ctx context.Context, acct account, plan billing.Plan, tries int) (priceID string, err error) {
	// The references make the calls safe to repeat. The keys only have to be unique,
	// also against an earlier attempt whose failure the provider has saved.
	key := "psr:" + plan.ID.Format(ids.Plan) + ":" + strconv.FormatInt(plan.Sync.Version, 10) + ":" + strconv.Itoa(tries) + ":" + ids.New().String()
	metadata := map[string]string{metaApp: acct.scope.AppID.Format(ids.Application), metaPlan: plan.Key}
	// Also of a plan that is no longer sold: at an inactive product, its subscribers could
	// not change to another plan.
	wanted := stripe.Product{ID: plan.ProductReference(), Name: plan.Name, Active: true}
	switch there, err := acct.provider.Product(ctx, wanted.ID); {
	case stripe.Is(err, stripe.NotFound):
		if err := acct.provider.CreateProduct(ctx, key+":product", wanted, metadata); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	case there != wanted:
		if err := acct.provider.UpdateProduct(ctx, key+":product", wanted); err != nil {
			return "", err
		}
	}
	price, err := currentPrice(ctx, acct, plan)
	switch {
	// A restored database may use a lookup key again, which a price of another amount has.
	case stripe.Is(err, stripe.NotFound), err == nil && price.Price != plan.Price:
		price, err = acct.provider.CreatePrice(ctx, key+":price", stripe.Price{
			ProductID: wanted.ID, Reference: plan.PriceReference(), Price: plan.Price,
		}, metadata)
	case err == nil && !price.Active:
		err = acct.provider.SetPriceActive(ctx, key+":price", price.ID, true)
	}
	return price.ID, err
}

// currentPrice finds the plan's price by its id, else by its lookup key, which may have
// been moved at the provider.
func currentPrice(ctx context.Context, acct account, plan billing.Plan) (stripe.Price, error) {
	if plan.Sync.PriceID != "" {
		if price, err := acct.provider.Price(ctx, plan.Sync.PriceID); !stripe.Is(err, stripe.NotFound) {
			return price, err
		}
	}
	return acct.provider.PriceByReference(ctx, plan.PriceReference())
}

// recordPlanError stores on the plan why it is not synced.
func (c *Cashier) recordPlanError(ctx context.Context, scope tenancy.Scope, job queue.Job, cause error) error {
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return err
	}
	app := c.options.Store.Payments(scope)
	return c.withLease(ctx, scope, planLease(ids.ID(id)), func(ctx context.Context, fence queue.Fence) error {
		plan, err := app.PlanByID(ctx, ids.ID(id))
		if err != nil {
			return ignoreNotFound(err)
		}
		return app.PlanRefused(ctx, fence, plan.ID, plan.Sync, errorMessage(cause))
	})
}

// archivePrice deactivates a price that no open checkout session can need any more.
func (c *Cashier) archivePrice(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	id := job.Object
	err = acct.provider.SetPriceActive(ctx, "psr:archive:"+ids.New().String(), id, false)
	if ignoreNotFound(err) != nil {
		return 0, err
	}
	return 0, ignoreNotFound(c.options.Store.Payments(acct.scope).PriceArchived(ctx, id, c.nowAt(acct.ClockOffset)))
}
