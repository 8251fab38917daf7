package store_test

import (
	"context"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
)

func init() { appCalls = append(appCalls, billingCalls...) }

// turn is a lease of the handle's own application.
func turn(ctx context.Context, a queue.App) queue.Fence {
	f, _, err := a.Lease(ctx, "identity:bob@example.com", ids.New(), time.Second)
	if err != nil {
		return queue.Fence{}
	}
	_ = a.Release(ctx, f)
	return f
}

// What is known by the provider's names is there for the tenant with the same names too, under the
// same names; what is known by our ids is not.
// sales is the handle of what is sold, with the queue of the same application: its
// changes are made under a lease.
type sales struct {
	payments.App
	queue queue.App
}

// accounts is the handle of accounts at the provider, with the same queue.
type accounts struct {
	payments.Accounts
	queue queue.App
}

var billingCalls = []call[store.App]{
	{"ClockOffset", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) { return a.ClockOffset(ctx) }},
	{"Prune", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) { return a.Prune(ctx, 100) }},
}

var queueCalls = []call[queue.App]{
	{"By", "", anyError, anyError, "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		if err := a.RetryJob(ctx, h.work, "no answer", moment+1); err != nil {
			return nil, err
		}
		return nil, a.By(actor).RetryJobNow(ctx, h.work.Kind, h.work.Object, moment)
	}},
	{"Lease", "", "", "", "", func(ctx context.Context, a queue.App, _ fixture) (any, error) {
		_, held, err := a.Lease(ctx, "identity:ann@example.com", ids.New(), time.Second)
		return held, err
	}},
	{"RenewLease", "", "", "", "", func(ctx context.Context, a queue.App, _ fixture) (any, error) {
		return a.RenewLease(ctx, queue.Fence{Name: "identity:unknown", Number: 1}, time.Minute)
	}},
	{"Release", "", "", "", "", func(ctx context.Context, a queue.App, _ fixture) (any, error) {
		return nil, a.Release(ctx, queue.Fence{Name: "identity:bob@example.com", Number: 1})
	}},
	{"Enqueue", "", "", "", "", func(ctx context.Context, a queue.App, _ fixture) (any, error) {
		return nil, a.Enqueue(ctx, queue.Job{Kind: queue.JobInvoice, Object: "in_1"})
	}},
	{"ClaimJobs", "", "", "", "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		return a.ClaimJobs(ctx, queue.ClaimInput{Kinds: []queue.JobKind{h.work.Kind}, Now: moment, Most: 100, Lease: time.Hour})
	}},
	{"RenewJobs", "", "", "", "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		return nil, a.RenewJobs(ctx, queue.JobBatch{Jobs: []queue.Job{h.work}, LeaseID: h.work.LeaseID}, time.Hour)
	}},
	{"ReleaseJobs", "", "", "", "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		return nil, a.ReleaseJobs(ctx, queue.JobBatch{Jobs: []queue.Job{h.work}, LeaseID: h.work.LeaseID})
	}},
	{"HasJobsDue", "", "", "", "", func(ctx context.Context, a queue.App, _ fixture) (any, error) {
		return a.HasJobsDue(ctx, moment)
	}},
	{"FailingJobs", "", "", "", "", func(ctx context.Context, a queue.App, _ fixture) (any, error) {
		return a.FailingJobs(ctx, 100)
	}},
	{"FailingObjects", "", "", "", "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		return a.FailingObjects(ctx, h.work.Kind)
	}},
	{"FinishJob", "", "", "", "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		return nil, a.FinishJob(ctx, h.work, 0, 0)
	}},
	{"RetryJob", "", "", "", "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		return nil, a.RetryJob(ctx, h.work, "no answer", moment+1)
	}},
	{"RetryJobNow", "", anyError, anyError, "", func(ctx context.Context, a queue.App, h fixture) (any, error) {
		if err := a.RetryJob(ctx, h.work, "no answer", moment+1); err != nil {
			return nil, err
		}
		return nil, a.RetryJobNow(ctx, h.work.Kind, h.work.Object, moment)
	}},
}

var accountCalls = []call[accounts]{
	{"By", "", fault.PaymentsNotConfigured, "", "", func(ctx context.Context, a accounts, _ fixture) (any, error) {
		return a.By(actor).Connection(ctx)
	}},
	{"Connection", "", fault.PaymentsNotConfigured, "", "", func(ctx context.Context, a accounts, _ fixture) (any, error) { return a.Connection(ctx) }},
	{"ConnectionByID", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.ConnectionByID(ctx, h.connection.ID)
	}},
	{"ResealConnections", "", "", "", "", func(ctx context.Context, a accounts, _ fixture) (any, error) {
		return a.ResealConnections(ctx, func(c *payments.Connection) bool {
			c.SealedKey = []byte("sealed again")
			return true
		})
	}},
	{"SealedSecrets", "", "", "", "", func(ctx context.Context, a accounts, _ fixture) (seen any, err error) {
		var secrets []string
		err = a.SealedSecrets(ctx, func(sealed []byte) { secrets = append(secrets, string(sealed)) })
		return secrets, err
	}},
	{"ConnectionOf", "", anyError, "", "", func(ctx context.Context, a accounts, _ fixture) (any, error) {
		return a.ConnectionOf(ctx, "sub_bob")
	}},
	{"UsesOfAccount", "", "", "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.UsesOfAccount(ctx, h.connection)
	}},
	{"RenewFormer", "", anyError, anyError, anyError, func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.RenewFormer(ctx, h.connection.AccountID, func(*payments.Connection) error { return nil }, moment)
	}},
	{"LatestConnection", "", fault.PathNotFound, "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.LatestConnection(ctx, h.connection)
	}},
	{"SubscriptionsAt", "", "", "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.SubscriptionsAt(ctx, h.connection, 0)
	}},
	{"PutConnection", "its id", anyError, fault.ProviderInUse, "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.PutConnection(ctx, h.connection, moment)
	}},
	{"SetEventsAfter", "", "", "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return nil, a.SetEventsAfter(ctx, h.connection.ID, moment)
	}},
	{"SetPortalConfiguration", "", "", "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return nil, a.SetPortalConfiguration(ctx, h.connection.ID, "bpc_1")
	}},
	{"Customer", "", anyError, anyError, "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.Customer(ctx, h.connection.ID, "ann@example.com")
	}},
	{"KeepCustomer", "", anyError, anyError, "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.KeepCustomer(ctx, h.connection.ID, payments.CustomerOwner{Identity: "bob@example.com", Fence: turn(ctx, a.queue)}, "cus_bob", moment)
	}},
	{"ForgetCustomer", "", "", "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return nil, a.ForgetCustomer(ctx, h.connection.ID, "cus_ann")
	}},
	{"ReceiveEvent", "", anyError, anyError, "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return nil, a.ReceiveEvent(ctx, h.connection.ID, payments.WebhookEvent{ID: "evt_1"}, []queue.Job{{Kind: queue.JobInvoice, Object: "in_2"}})
	}},
	{"IdentityOfCustomer", "", anyError, anyError, "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.IdentityOfCustomer(ctx, h.connection.ID, "cus_ann")
	}},
	{"UnseenEvents", "", "", "", "", func(ctx context.Context, a accounts, h fixture) (any, error) {
		return a.UnseenEvents(ctx, h.connection.ID, []string{"evt_1", "evt_2"})
	}},
}

var salesCalls = []call[sales]{
	{"By", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return nil, a.By(actor).ResolveAlert(ctx, h.alertID, moment)
	}},
	{"DelayArchive", "", "", "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return nil, a.DelayArchive(ctx, "price_1", moment+1)
	}},
	{"EnqueuePlans", "", "", "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return nil, a.EnqueuePlans(ctx, moment)
	}},
	{"Operation", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.Operation(ctx, h.op.Kind, h.op.IdempotencyKey)
	}},
	{"OperationByID", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.OperationByID(ctx, h.op.ID)
	}},
	{"Superseded", "", "", "", "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.Superseded(ctx, h.op.ID)
	}},
	{"PutOperation", "", "", "", "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return nil, a.PutOperation(ctx, turn(ctx, a.queue), h.op.Operation)
	}},
	{"CompleteOperation", "", "", "", "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return nil, a.CompleteOperation(ctx, turn(ctx, a.queue), payments.Completion{Operation: h.op.Operation, DropChange: h.change.ID})
	}},
	{"CompleteOperation", "a subscription of another", anyError, anyError, anyError, func(ctx context.Context, a sales, h fixture) (any, error) {
		return nil, a.CompleteOperation(ctx, turn(ctx, a.queue), payments.Completion{Operation: h.op.Operation, Subscription: &h.paidSubscription})
	}},
	{"Begin", "its idempotency key", fault.PlanNotFound, "", "", func(ctx context.Context, a sales, h fixture) (any, error) {
		op := opOf(h.op.Kind, h.op.IdempotencyKey)
		rec, _, err := a.Begin(ctx, payments.BeginInput{
			Fence: turn(ctx, a.queue), Identity: "bob@example.com", PlanKey: "max", Op: op, Now: moment,
			Decide: func(payments.CustomerState) (payments.Decision, error) { return payments.Decision{Operation: op}, nil },
		})
		return rec, err
	}},
	{"CustomerState", "", fault.PlanNotFound, "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return a.CustomerState(ctx, "bob@example.com", "max")
	}},
	{"Change", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.Change(ctx, h.change.ID)
	}},
	{"PutChange", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		next := h.change
		next.ID, next.SessionID, next.SubscriptionID = ids.New(), "", ids.ID{}
		return nil, a.PutChange(ctx, turn(ctx, a.queue), h.op.Operation, next)
	}},
	{"ApplySubscription", "the provider's id", anyError, "", "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.ApplySubscription(ctx, payments.ProviderReport{Fence: turn(ctx, a.queue), Connection: h.connection.ID, Remote: paid("sub_bob", h.plan, "in_sub_bob", "in_2"), Now: moment})
	}},
	{"ApplySubscription", "the change that bought it", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.ApplySubscription(ctx, payments.ProviderReport{Fence: turn(ctx, a.queue), Connection: h.connection.ID, Remote: paid("sub_new", h.plan), CheckoutID: h.change.ID, Now: moment})
	}},
	{"ApplyCheckout", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.ApplyCheckout(ctx, turn(ctx, a.queue), h.change.ID, billing.ProviderSession{ID: "cs_1", Status: billing.SessionExpired}, moment, nil)
	}},
	{"ApplyTopUp", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.ApplyTopUp(ctx, turn(ctx, a.queue), h.topUp.ID, sessionOf(h.topUp), moment, nil)
	}},
	{"ApplyCharge", "", anyError, "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return nil, a.ApplyCharge(ctx, turn(ctx, a.queue), billing.ProviderCharge{
			ID: "ch_in_sub_bob", Refunds: []billing.ProviderRefund{{ID: "re_1", AmountCents: 9900, Status: "succeeded"}},
		}, moment)
	}},
	{"RenewFree", "", anyError, anyError, anyError, func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.RenewFree(ctx, turn(ctx, a.queue), h.paidSubscription.ID, moment)
	}},
	{"Subscription", "", fault.SubscriptionNotFound, "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return a.Subscription(ctx, "bob@example.com")
	}},
	{"SubscriptionOfWallet", "", fault.WalletNotFound, fault.WalletNotFound, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.SubscriptionOfWallet(ctx, h.walletID)
	}},
	{"CheckoutByID", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.CheckoutByID(ctx, h.topUp.ID)
	}},
	{"CheckoutBySession", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.CheckoutBySession(ctx, sessionOf(h.topUp).ID)
	}},
	{"Checkouts", "", "", "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return page(a.Checkouts(ctx, payments.CheckoutPage{Page: store.Page{Limit: 100}}))
	}},
	{"Checkouts", "of a wallet", "", "", "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return page(a.Checkouts(ctx, payments.CheckoutPage{Page: store.Page{Limit: 100}, WalletID: h.walletID}))
	}},
	{"Alerts", "", "", "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return page(a.Alerts(ctx, store.Page{Limit: 100}, true))
	}},
	{"Raise", "", "", "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return nil, a.Raise(ctx, billing.Alert{Kind: billing.KeyRefused, ObjectID: "acct_1"}, true, moment)
	}},
	{"ResolveAlert", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return nil, a.ResolveAlert(ctx, h.alertID, moment)
	}},
	{"IdentityOfSubscription", "", anyError, "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return a.IdentityOfSubscription(ctx, "sub_bob")
	}},
	{"IdentityOfChange", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.IdentityOfChange(ctx, h.change.ID)
	}},
	{"IdentityOfCharge", "", anyError, "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return a.IdentityOfCharge(ctx, "ch_in_sub_bob", "")
	}},
	{"PaymentRefund", "", anyError, "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return a.PaymentRefund(ctx, billing.Source{Kind: billing.Invoice, ID: "in_sub_bob"})
	}},
	{"RequestRefund", "", fault.PathNotFound, fault.PaymentNotRefundable, "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return a.RequestRefund(ctx, billing.Source{Kind: billing.Invoice, ID: "in_sub_bob"}, "Asked for", moment)
	}},
	{"IdentityOfFree", "", anyError, anyError, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.IdentityOfFree(ctx, h.paidSubscription.ID)
	}},
	{"PlanByID", "", fault.PlanNotFound, fault.PlanNotFound, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.PlanByID(ctx, h.plan.ID)
	}},
	{"PlanSynced", "", fault.PlanNotFound, fault.PlanNotFound, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return a.PlanSynced(ctx, turn(ctx, a.queue), payments.SyncedPlan{
			PlanID: h.plan.ID, Began: h.plan.Sync, Connection: h.connection.ID, ProductID: "prod_1", PriceID: "price_1", Terms: h.plan.Terms(),
		}, moment)
	}},
	{"PlanRefused", "", fault.PlanNotFound, fault.PlanNotFound, "", func(ctx context.Context, a sales, h fixture) (any, error) {
		return nil, a.PlanRefused(ctx, turn(ctx, a.queue), h.plan.ID, h.plan.Sync, "no")
	}},
	{"PriceArchived", "", "", "", "", func(ctx context.Context, a sales, _ fixture) (any, error) {
		return nil, a.PriceArchived(ctx, "price_max", moment)
	}},
}
