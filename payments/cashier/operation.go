package cashier

import (
	"context"
	"errors"

	"purser/billing"
	"purser/ids"
	"purser/store/payments"
	"purser/store/queue"
	"purser/tenancy"
)

// request is a caller's request to the cashier.
type request struct {
	kind           billing.OperationKind
	identity       string
	planKey        string
	creditKey      string
	idempotencyKey string
	fingerprint    billing.Fingerprint
	// paid says that the provider takes part whatever is decided. Then check, if set,
	// runs before the provider is called.
	paid   bool
	check  func(context.Context) error
	decide func(s payments.CustomerState, op billing.Operation, b buyer, now int64) (payments.Decision, error)
}

// buyer is who pays at the provider. It is empty where the provider takes no part.
type buyer struct {
	connectionID ids.ID
	customerID   string
	live         bool
}

// runRequest returns the stored answer of a finished operation, else resumes it, else
// begins it.
func (c *Cashier) runRequest(ctx context.Context, scope tenancy.Scope, r request) (rec payments.OperationRecord, err error) {
	// The operation continues when the caller disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.request)
	defer cancel()
	err = c.withLease(ctx, scope, queue.IdentityLease(r.identity), func(ctx context.Context, fence queue.Fence) error {
		var fresh bool
		rec, fresh, err = c.loadOrBegin(ctx, scope, fence, r)
		if err != nil || rec.State == billing.OperationDone {
			return err
		}
		// The lease is that of the identity in the request. The wallet's operations run
		// under its current one, and a job resumes this operation there.
		if rec.Identity != r.identity {
			return errRenamed()
		}
		rec, err = c.resume(ctx, scope, fence, rec, billing.Caller, fresh)
		return err
	})
	return rec, publicError(err)
}

// loadOrBegin loads the operation of the request, or decides and stores it: then it is
// fresh.
func (c *Cashier) loadOrBegin(ctx context.Context, scope tenancy.Scope, fence queue.Fence, r request) (rec payments.OperationRecord, fresh bool, err error) {
	app := c.options.Store.Payments(scope)
	rec, err = app.Operation(ctx, r.kind, r.idempotencyKey)
	if err == nil {
		return rec, false, rec.CheckFingerprint(r.fingerprint)
	}
	if !errors.Is(err, payments.ErrUnknown) {
		return rec, false, err
	}
	// The decision needs the provider's current state, whichever webhooks have arrived.
	if err := c.syncCurrent(ctx, scope, fence, r.identity); err != nil {
		return rec, false, err
	}
	b, err := c.resolveBuyer(ctx, scope, fence, r)
	if err != nil {
		return rec, false, err
	}
	now := c.nowAt(fence.ClockOffset)
	op := billing.Operation{
		ID: ids.New(), Kind: r.kind, IdempotencyKey: r.idempotencyKey, Fingerprint: r.fingerprint, ConnectionID: b.connectionID,
		Parameters: billing.NewParameters(r.kind), Attempt: 1, State: billing.OperationRunning, CreatedAt: now,
	}
	rec, fresh, err = app.Begin(ctx, payments.BeginInput{
		Fence: fence, Identity: r.identity, PlanKey: r.planKey, CreditKey: r.creditKey, Op: op, Now: now,
		Decide: func(s payments.CustomerState) (payments.Decision, error) { return r.decide(s, op, b, now) },
	})
	if err == nil && !fresh {
		err = rec.CheckFingerprint(r.fingerprint)
	}
	return rec, fresh, err
}

// syncCurrent syncs the identity's subscription from the provider.
func (c *Cashier) syncCurrent(ctx context.Context, scope tenancy.Scope, fence queue.Fence, identity string) error {
	current, err := c.currentSubscription(ctx, scope, identity)
	if err != nil || current == nil || current.Local() {
		return err
	}
	acct, err := c.accountAt(ctx, scope, current.ConnectionID)
	if err != nil {
		return err
	}
	_, err = c.syncSubscription(ctx, acct, fence, current.ProviderID, syncOptions{scheduleRefresh: true})
	return err
}

// resolveBuyer finds the paying customer before the transaction that decides.
func (c *Cashier) resolveBuyer(ctx context.Context, scope tenancy.Scope, fence queue.Fence, r request) (buyer, error) {
	if !r.paid {
		return buyer{}, nil
	}
	if r.check != nil {
		if err := r.check(ctx); err != nil {
			return buyer{}, err
		}
	}
	acct, err := c.account(ctx, scope)
	if err != nil || r.kind != billing.OperationTopUp {
		return buyer{connectionID: acct.ID, live: acct.Live}, err
	}
	id, err := c.customer(ctx, acct, payments.CustomerOwner{Identity: r.identity, Fence: fence})
	return buyer{connectionID: acct.ID, customerID: id, live: acct.Live}, err
}

// resume runs an operation to its end and returns it as stored then. fresh says that
// it was decided under the same lease.
func (c *Cashier) resume(ctx context.Context, scope tenancy.Scope, fence queue.Fence, rec payments.OperationRecord, initiator billing.Initiator, fresh bool) (payments.OperationRecord, error) {
	now := c.nowAt(fence.ClockOffset)
	acct, err := c.accountOf(ctx, scope, rec.ConnectionID, rec.Parameters.ObjectID())
	if err != nil {
		return rec, err
	}
	rec.ConnectionID = acct.ID // stored with the first call
	if rec.State == billing.OperationFailed {
		// The caller retries a failed operation. The job resumes it when this attempt
		// does not finish it either.
		if err := c.options.Store.Queue(scope).Enqueue(ctx, queue.Job{Kind: queue.JobOperation, Object: rec.ID.String(), DueAt: now + resumeDelay.Milliseconds()}); err != nil {
			return rec, err
		}
		rec.State = billing.OperationRunning
	}
	run := &operationRun{c: c, app: c.options.Store.Payments(scope), fence: fence, rec: rec, initiator: initiator, fresh: fresh, now: now, account: acct}
	done := false
	if !run.fresh {
		done, err = run.checkSuperseded(ctx)
	}
	if err == nil && !done {
		err = run.execute(ctx)
	}
	if err := run.finish(ctx, err); err != nil {
		return run.rec, c.alertOnUnauthorized(ctx, acct, err)
	}
	return run.app.OperationByID(ctx, rec.ID)
}

// execute runs the steps of the operation's command.
func (run *operationRun) execute(ctx context.Context) error {
	switch run.rec.Parameters.Command() {
	case billing.CommandKeep:
		return run.keepPlan(ctx)
	case billing.CommandUpgrade:
		return run.upgrade(ctx)
	case billing.CommandDowngrade:
		return run.downgrade(ctx)
	case billing.CommandCancel:
		return run.setCancelFlag(ctx)
	case billing.CommandReplace:
		return run.replace(ctx)
	case billing.CommandCheckout:
		return run.checkout(ctx)
	case billing.CommandTopUp:
		return run.topUp(ctx)
	case billing.CommandLocal:
		return run.changeLocal(ctx)
	}
	if run.rec.Kind == billing.OperationAction {
		return run.action(ctx)
	}
	return errors.New("cashier: unknown command")
}
