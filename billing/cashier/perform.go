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
	paramAct          = "act"          // what the op amounts to, as decided at its beginning
	paramSubscription = "subscription" // the provider's
	paramPrice        = "price"        // the provider's, of the target
	paramPlan         = "plan"         // its key
	paramStays        = "stays"        // whether the target is what the subscription has, at a price that may be off sale
	paramFree         = "free"         // whether the target costs nothing
	paramFlag         = "flag"         // whether to end with the period
	paramVoid         = "void"         // whether an upgrade that waits goes too
	paramRenewal      = "renewal"      // the unpaid renewal with which a cancellation ends the subscription now
	paramThen         = "then"         // what becomes of a free subscription that runs here
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

// perform answers a request: with the first answer when it was answered before,
// else by going on with what was begun, else by beginning it.
func (c *Cashier) perform(ctx context.Context, scope tenancy.Scope, r request) (rec store.OperationRecord, err error) {
	// The caller may go away; what was begun is carried through all the same.
	ctx, cancel := context.WithTimeout(withClock(context.WithoutCancel(ctx)), c.limits.talk)
	defer cancel()
	err = c.withLease(ctx, scope, ofIdentity(r.identity), func(ctx context.Context, fence store.Fence) error {
		var fresh bool
		rec, fresh, err = c.begun(ctx, scope, fence, r)
		if err != nil || rec.State == billing.OperationDone {
			return err
		}
		rec, err = c.converse(ctx, scope, fence, rec, billing.Caller, fresh)
		return err
	})
	return rec, told(err)
}

// begun finds the op of the request, or decides and stores it, and says which.
func (c *Cashier) begun(ctx context.Context, scope tenancy.Scope, fence store.Fence, r request) (rec store.OperationRecord, fresh bool, err error) {
	app := c.options.Store.App(scope)
	rec, err = app.Operation(ctx, r.kind, r.idempotencyKey)
	if err == nil {
		return rec, false, rec.Repeats(r.fingerprint)
	}
	if !errors.Is(err, store.ErrUnknown) {
		return rec, false, err
	}
	// The decision rests on what the provider says now, and not on which webhooks
	// have arrived.
	if err := c.refresh(ctx, scope, fence, r.identity); err != nil {
		return rec, false, err
	}
	with, err := c.buyer(ctx, scope, r)
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
		err = rec.Repeats(r.fingerprint)
	}
	return rec, fresh, err
}

// refresh hears what the provider has to say about the identity's subscription.
func (c *Cashier) refresh(ctx context.Context, scope tenancy.Scope, fence store.Fence, identity string) error {
	current, err := c.current(ctx, scope, identity)
	if err != nil || current == nil || current.Local() {
		return err
	}
	with, err := c.accountAt(ctx, scope, current.ConnectionID)
	if err != nil {
		return err
	}
	_, err = c.hearSubscription(ctx, with, fence, current.ProviderID, hearing{watched: true})
	return err
}

// buyer finds out who will pay, before the transaction in which it is decided.
func (c *Cashier) buyer(ctx context.Context, scope tenancy.Scope, r request) (buyer, error) {
	if !r.paid {
		return buyer{}, nil
	}
	if r.check != nil {
		current, err := c.current(ctx, scope, r.identity)
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

// converse carries an op through, which is fresh when it was decided under the same
// lease. It gives the op as it was closed.
func (c *Cashier) converse(ctx context.Context, scope tenancy.Scope, fence store.Fence, rec store.OperationRecord, asker billing.Asker, fresh bool) (store.OperationRecord, error) {
	now, err := c.Now(ctx, scope)
	if err != nil {
		return rec, err
	}
	with, err := c.accountOf(ctx, scope, rec.ConnectionID, about(rec))
	if err != nil {
		return rec, err
	}
	rec.ConnectionID = with.ID // kept with the first call
	app := c.options.Store.App(scope)
	if rec.State == billing.OperationFailed {
		// The caller repeats what was given up: it is taken up again, and found again
		// when this try does not end it either.
		if err := app.Enqueue(ctx, store.Job{Kind: store.JobOperation, Object: rec.ID.String(), DueAt: now + resumeTime.Milliseconds()}); err != nil {
			return rec, err
		}
		rec.State = billing.OperationRunning
	}
	t := &talk{c: c, app: app, fence: fence, rec: rec, asker: asker, now: now, account: with}
	done := false
	if !fresh {
		done, err = t.overtaken(ctx)
	}
	if err == nil && !done {
		err = t.carryOut(ctx)
	}
	if err := t.concluded(ctx, err); err != nil {
		return t.rec, c.noticed(ctx, with, err)
	}
	return t.app.OperationByID(ctx, rec.ID)
}

// about is the provider's object that an op was begun for; empty for none.
func about(rec store.OperationRecord) string {
	return cmp.Or(rec.Parameters[paramSubscription], rec.Parameters[paramObject])
}

// carryOut goes through the steps that the op's act consists of.
func (t *talk) carryOut(ctx context.Context) error {
	switch act(t.rec.Parameters[paramAct]) {
	case actKeep:
		return t.keep(ctx)
	case actUpgrade:
		return t.upgrade(ctx)
	case actDowngrade:
		return t.downgrade(ctx)
	case actFlag:
		return t.flag(ctx)
	case actReplace:
		return t.replace(ctx)
	case actCheckout:
		return t.checkout(ctx)
	case actTopUp:
		return t.topUp(ctx)
	case actLocal:
		return t.local(ctx)
	}
	if t.rec.Kind == billing.OperationAction {
		return t.action(ctx)
	}
	return errors.New("cashier: an op that nobody knows how to carry out")
}

// act is what an op amounts to.
type act string

// The acts.
const (
	actKeep      act = "keep"      // call off what would change the plan
	actUpgrade   act = "upgrade"   // at the provider, for money
	actDowngrade act = "downgrade" // at the provider, with the renewal
	actFlag      act = "flag"      // end with the period, or not
	actReplace   act = "replace"   // put a bought subscription in the place of a free one
	actCheckout  act = "checkout"  // sell a first subscription on a page
	actTopUp     act = "topup"     // sell credits on a page
	actLocal     act = "local"     // close pages, then change a free subscription here
)
