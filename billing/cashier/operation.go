package cashier

import (
	"cmp"
	"context"
	"errors"

	"purser/billing"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// What an op's parameters are called. They are stored, so the names stay.
const (
	paramCommand      = "act"          // what the op amounts to, as decided at its beginning
	paramSubscription = "subscription" // the provider's
	paramPrice        = "price"        // the provider's, of the target
	paramPlan         = "plan"         // its key
	paramSameTerms    = "stays"        // whether the target is what the subscription has, at a price that may be off sale
	paramFree         = "free"         // whether the target costs nothing
	paramFlag         = "flag"         // whether to end with the period
	paramVoid         = "void"         // whether an upgrade that waits goes too
	paramRenewal      = "renewal"      // the unpaid renewal with which a cancellation ends the subscription now
	paramLocalChange  = "then"         // what becomes of a free subscription that runs here
	paramSessions     = "sessions"     // pages to be closed first, separated by spaces
	paramSuccess      = "success"
	paramCancel       = "cancel"
	paramExpires      = "expires"
	paramCents        = "cents"
	paramCurrency     = "currency"
	paramName         = "name"
	paramAction       = "action" // of an op that a projection asked for
	paramObject       = "object"
)

// request is what a caller asks of the cashier.
type request struct {
	kind           billing.OperationKind
	identity       string
	planKey        string
	creditKey      string
	idempotencyKey string
	fingerprint    billing.Fingerprint
	// paid says that the provider has a part in it whatever is decided. Then check,
	// if there is one, comes before anything is asked of it.
	paid   bool
	check  func(current *billing.Subscription) error
	decide func(s store.CustomerState, op billing.Operation, with buyer, now int64) (store.Decision, error)
}

// buyer is who pays, at the provider. It is empty where the provider has no part.
type buyer struct {
	connectionID ids.ID
	customerID   string
	live         bool
}

// runRequest answers a request: with the first answer when it was answered before,
// else by going on with what was begun, else by beginning it.
func (c *Cashier) runRequest(ctx context.Context, scope tenancy.Scope, r request) (rec store.OperationRecord, err error) {
	// The caller may go away; what was begun is carried through all the same.
	ctx, cancel := context.WithTimeout(withClock(context.WithoutCancel(ctx)), c.limits.request)
	defer cancel()
	err = c.withLease(ctx, scope, identityLease(r.identity), func(ctx context.Context, fence store.Fence) error {
		var fresh bool
		rec, fresh, err = c.loadOrBegin(ctx, scope, fence, r)
		if err != nil || rec.State == billing.OperationDone {
			return err
		}
		rec, err = c.resume(ctx, scope, fence, rec, billing.Caller, fresh)
		return err
	})
	return rec, publicError(err)
}

// loadOrBegin finds the op of the request, or decides and stores it, and says which.
func (c *Cashier) loadOrBegin(ctx context.Context, scope tenancy.Scope, fence store.Fence, r request) (rec store.OperationRecord, fresh bool, err error) {
	app := c.options.Store.App(scope)
	rec, err = app.Operation(ctx, r.kind, r.idempotencyKey)
	if err == nil {
		return rec, false, rec.CheckFingerprint(r.fingerprint)
	}
	if !errors.Is(err, store.ErrUnknown) {
		return rec, false, err
	}
	// The decision rests on what the provider says now, and not on which webhooks
	// have arrived.
	if err := c.syncCurrent(ctx, scope, fence, r.identity); err != nil {
		return rec, false, err
	}
	with, err := c.resolveBuyer(ctx, scope, r)
	if err != nil {
		return rec, false, err
	}
	now, err := c.Now(ctx, scope)
	if err != nil {
		return rec, false, err
	}
	op := billing.Operation{
		ID: ids.New(), Kind: r.kind, IdempotencyKey: r.idempotencyKey, Fingerprint: r.fingerprint, ConnectionID: with.connectionID,
		Parameters: map[string]string{}, Attempt: 1, State: billing.OperationRunning, CreatedAt: now,
	}
	rec, fresh, err = app.Begin(ctx, store.BeginInput{
		Fence: fence, Identity: r.identity, PlanKey: r.planKey, CreditKey: r.creditKey, Op: op, Now: now,
		Decide: func(s store.CustomerState) (store.Decision, error) { return r.decide(s, op, with, now) },
	})
	if err == nil && !fresh {
		err = rec.CheckFingerprint(r.fingerprint)
	}
	return rec, fresh, err
}

// syncCurrent hears what the provider has to say about the identity's subscription.
func (c *Cashier) syncCurrent(ctx context.Context, scope tenancy.Scope, fence store.Fence, identity string) error {
	current, err := c.currentSubscription(ctx, scope, identity)
	if err != nil || current == nil || current.Local() {
		return err
	}
	with, err := c.accountAt(ctx, scope, current.ConnectionID)
	if err != nil {
		return err
	}
	_, err = c.syncSubscription(ctx, with, fence, current.ProviderID, syncOptions{scheduleRefresh: true})
	return err
}

// resolveBuyer finds out who will pay, before the transaction in which it is decided.
func (c *Cashier) resolveBuyer(ctx context.Context, scope tenancy.Scope, r request) (buyer, error) {
	if !r.paid {
		return buyer{}, nil
	}
	if r.check != nil {
		current, err := c.currentSubscription(ctx, scope, r.identity)
		if err != nil {
			return buyer{}, err
		}
		if err := r.check(current); err != nil {
			return buyer{}, err
		}
	}
	with, err := c.account(ctx, scope)
	if err != nil || r.kind != billing.OperationTopUp {
		return buyer{connectionID: with.ID, live: with.Live}, err
	}
	id, err := c.customer(ctx, with, r.identity)
	return buyer{connectionID: with.ID, customerID: id, live: with.Live}, err
}

// resume carries an op through, which is fresh when it was decided under the same
// lease. It gives the op as it was closed.
func (c *Cashier) resume(ctx context.Context, scope tenancy.Scope, fence store.Fence, rec store.OperationRecord, initiator billing.Initiator, fresh bool) (store.OperationRecord, error) {
	now, err := c.Now(ctx, scope)
	if err != nil {
		return rec, err
	}
	with, err := c.accountOf(ctx, scope, rec.ConnectionID, providerObject(rec))
	if err != nil {
		return rec, err
	}
	rec.ConnectionID = with.ID // kept with the first call
	app := c.options.Store.App(scope)
	if rec.State == billing.OperationFailed {
		// The caller repeats what was given up: it is taken up again, and found again
		// when this try does not end it either.
		if err := app.Enqueue(ctx, store.Job{Kind: store.JobOperation, Object: rec.ID.String(), DueAt: now + resumeDelay.Milliseconds()}); err != nil {
			return rec, err
		}
		rec.State = billing.OperationRunning
	}
	run := &operationRun{c: c, app: app, fence: fence, rec: rec, initiator: initiator, now: now, account: with}
	done := false
	if !fresh {
		done, err = run.checkSuperseded(ctx)
	}
	if err == nil && !done {
		err = run.execute(ctx)
	}
	if err := run.finish(ctx, err); err != nil {
		return run.rec, c.alertOnUnauthorized(ctx, with, err)
	}
	return run.app.OperationByID(ctx, rec.ID)
}

// providerObject is the provider's object that an op was begun for; empty for none.
func providerObject(rec store.OperationRecord) string {
	return cmp.Or(rec.Parameters[paramSubscription], rec.Parameters[paramObject])
}

// execute goes through the steps that the op's act consists of.
func (run *operationRun) execute(ctx context.Context) error {
	switch command(run.rec.Parameters[paramCommand]) {
	case commandKeep:
		return run.keepPlan(ctx)
	case commandUpgrade:
		return run.upgrade(ctx)
	case commandDowngrade:
		return run.downgrade(ctx)
	case commandCancel:
		return run.setCancelFlag(ctx)
	case commandReplace:
		return run.replace(ctx)
	case commandCheckout:
		return run.checkout(ctx)
	case commandTopUp:
		return run.topUp(ctx)
	case commandLocal:
		return run.changeLocal(ctx)
	}
	if run.rec.Kind == billing.OperationAction {
		return run.action(ctx)
	}
	return errors.New("cashier: an op that nobody knows how to carry out")
}

// command is what an op amounts to.
type command string

// The acts.
const (
	commandKeep      command = "keep"      // call off what would change the plan
	commandUpgrade   command = "upgrade"   // at the provider, for money
	commandDowngrade command = "downgrade" // at the provider, with the renewal
	commandCancel    command = "flag"      // end with the period, or not
	commandReplace   command = "replace"   // put a bought subscription in the place of a free one
	commandCheckout  command = "checkout"  // sell a first subscription on a page
	commandTopUp     command = "topup"     // sell credits on a page
	commandLocal     command = "local"     // close pages, then change a free subscription here
)
