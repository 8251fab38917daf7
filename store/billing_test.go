package store_test

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

func TestApplySubscription(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)

	t.Run("credits a paid period once, however often it is said", func(t *testing.T) {
		s := newStorefront(t, db)
		first := s.subscribe(t, "ann", "sub_1")
		if len(first.Settled) != 1 || !first.Subscription.InUse() {
			t.Fatalf("%+v", first)
		}
		again := s.apply(t, "ann", ids.ID{}, paid("sub_1", s.plan, "in_sub_1"))
		if len(again.Settled) != 0 || again.Subscription.ID != first.Subscription.ID {
			t.Errorf("%+v", again)
		}
		if held, _ := s.balance(t, "ann", s.credit); held != 1_000 {
			t.Errorf("%d tokens", held)
		}
	})

	t.Run("keeps all that is known of the subscription", func(t *testing.T) {
		s := newStorefront(t, db)
		max := s.newPlan(t, "max", 9900, 5_000)
		first := s.subscribe(t, "ann", "sub_1").Subscription
		remote := paid("sub_1", s.plan, "in_sub_1")
		remote.CancelAtPeriodEnd = true
		remote.Next = &billing.ProviderPhase{PriceID: priceOf("max"), At: aMonth.End}
		remote.Pending = &billing.ProviderPending{PriceID: priceOf("max"), ExpiresAt: moment + 5}
		projected := s.apply(t, "ann", ids.ID{}, remote).Subscription
		stored, err := s.Payments().Subscription(t.Context(), "ann")
		noError(t, err)
		if !reflect.DeepEqual(stored, projected) || stored.ID != first.ID {
			t.Errorf("stored\n%+v\nprojected\n%+v", stored, projected)
		}
		if stored.Scheduled == nil || stored.Pending == nil || stored.Scheduled.Target.PlanID != max.ID || len(stored.Terms.Grants) != 1 {
			t.Errorf("%+v", stored)
		}
	})

	t.Run("reaches the engine with the next event", func(t *testing.T) {
		s := newStorefront(t, db)
		usage := openUsage(t, db)
		key, _ := s.newKey(t, "setup")
		use := func(event string, quantity int64) error {
			t.Helper()
			d, err := usage.Track(store.Usage{Scope: s.application.Scope(), KeyID: key.ID, Identity: "ann", FeatureKey: "messages",
				Usage: metering.Usage{TransactionID: ids.New(), EventID: event, Quantity: quantity}})
			noError(t, err)
			return d.Err()
		}
		wantFault(t, use("before", 1), fault.InsufficientBalance)
		s.subscribe(t, "ann", "sub_1")
		noError(t, use("included", 5))
		wantFault(t, use("too much", 1), fault.FeatureLimitExceeded)
		s.apply(t, "ann", ids.ID{}, paid("sub_1", s.plan, "in_sub_1", "in_renewal"))
		noError(t, use("next period", 5))
		ended := paid("sub_1", s.plan)
		ended.Status = billing.ProviderCanceled
		s.apply(t, "ann", ids.ID{}, ended)
		noError(t, use("from the balance", 5))
		if held, _ := s.balance(t, "ann", s.credit); held != 2_000-5*7 {
			t.Errorf("%d tokens", held)
		}
	})

	t.Run("locks the features that its terms name while it is live", func(t *testing.T) {
		s := newStorefront(t, db)
		s.subscribe(t, "ann", "sub_1")
		none := []metering.Limit{}
		_, err := s.UpdatePlan(t.Context(), "pro", billing.PlanPatch{Limits: &none})
		noError(t, err)
		raised := metering.FeaturePatch{Cost: new(metering.Amount(8))}
		_, err = s.UpdateFeature(t.Context(), "messages", raised, moment)
		wantFault(t, err, fault.PricingLocked)
		ended := paid("sub_1", s.plan)
		ended.Status = billing.ProviderCanceled
		s.apply(t, "ann", ids.ID{}, ended)
		_, err = s.UpdateFeature(t.Context(), "messages", raised, moment)
		noError(t, err)
	})

	t.Run("says what nobody here has asked for is unknown", func(t *testing.T) {
		s := newStorefront(t, db)
		for _, bought := range []ids.ID{{}, ids.New()} {
			_, err := s.Payments().ApplySubscription(t.Context(), payments.ProviderReport{Fence: s.lease(t, "x"), Connection: s.connection.ID, Remote: paid("sub_other", s.plan), CheckoutID: bought, Now: moment})
			if !errors.Is(err, payments.ErrUnknown) {
				t.Error(err)
			}
		}
	})

	t.Run("asks once to end and refund a second one", func(t *testing.T) {
		s := newStorefront(t, db)
		s.subscribe(t, "ann", "sub_1")
		_, change := s.checkout(t, "ann", s.plan)
		for range 3 {
			s.apply(t, "ann", change.ID, paid("sub_2", s.plan, "in_2"))
		}
		for _, key := range []string{"cancel_now:sub_2", "refund_invoice:in_2"} {
			op, err := s.Payments().Operation(t.Context(), billing.OperationAction, key)
			if err != nil || op.State != billing.OperationRunning || op.Parameters.ObjectID() == "" || op.Identity != "ann" {
				t.Errorf("%s: %+v, %v", key, op, err)
			}
		}
		alerts, _, err := s.Payments().Alerts(t.Context(), store.Page{Limit: 10}, false)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != billing.DuplicateSubscription || alerts[0].Identity != "ann" {
			t.Errorf("%+v, %v", alerts, err)
		}
		if held, _ := s.balance(t, "ann", s.credit); held != 1_000 {
			t.Errorf("%d tokens", held)
		}
	})

	t.Run("puts a bought one in the place of a free one", func(t *testing.T) {
		s := newStorefront(t, db)
		free := s.startFree(t, "ann")
		change := billing.Change{ID: ids.New(), Kind: billing.Checkout, Replaces: free.ID, Target: s.plan.Terms(), State: billing.ChangeRequested, RequestedAt: moment}
		s.begin(t, "ann", billing.OperationChange, func(i *payments.Decision) { i.Change = &change })
		session := billing.ProviderSession{ID: "cs_1", Status: billing.SessionOpen, URL: "https://pay.example", ExpiresAt: moment + 9}
		_, err := s.Payments().ApplyCheckout(t.Context(), s.lease(t, "identity:ann"), change.ID, session, moment, nil)
		noError(t, err)
		waiting, err := s.Payments().Subscription(t.Context(), "ann")
		if err != nil || waiting.ID != free.ID || waiting.Pending == nil || waiting.Pending.PaymentURL != session.URL {
			t.Fatalf("%+v, %v", waiting, err)
		}
		p := s.apply(t, "ann", change.ID, paid("sub_1", s.plan, "in_1"))
		if p.Replaced == nil || p.Replaced.ID != free.ID {
			t.Fatalf("%+v", p)
		}
		now, err := s.Payments().Subscription(t.Context(), "ann")
		if err != nil || now.ProviderID != "sub_1" {
			t.Errorf("%+v, %v", now, err)
		}
		if due, err := s.DueJobs(t.Context(), aMonth.End, 100); err != nil || hasWork(due, queue.JobFree, free.ID.String()) {
			t.Errorf("the replaced one is still to be turned: %v, %v", due, err)
		}
	})

	t.Run("completes the operation that reported it, with the answer", func(t *testing.T) {
		s := newStorefront(t, db)
		rec, change := s.checkout(t, "ann", s.plan)
		p, err := s.Payments().ApplySubscription(t.Context(), payments.ProviderReport{
			Connection: s.connection.ID,
			Fence:      s.lease(t, "identity:ann"), Remote: paid("sub_1", s.plan, "in_1"), CheckoutID: change.ID, Now: moment, Completes: &rec,
			NextRefresh: func(billing.Subscription) int64 { return moment + 7 },
		})
		noError(t, err)
		closed, err := s.Payments().OperationByID(t.Context(), rec.ID)
		if err != nil || closed.State != billing.OperationDone || !reflect.DeepEqual(*closed.Answer, p.Subscription) {
			t.Errorf("%+v, %v", closed, err)
		}
		due, err := s.DueJobs(t.Context(), moment+60_000, 100)
		if err != nil || hasWork(due, queue.JobOperation, rec.ID.String()) || !hasWork(due, queue.JobSubscription, "sub_1") {
			t.Errorf("%+v, %v", due, err)
		}
	})

	t.Run("leaves a credit out that does not fit, and says so", func(t *testing.T) {
		s := newStorefront(t, db)
		s.deposit(t, depositOf("ann", "tokens", metering.MaxAmount, "all"))
		_, change := s.checkout(t, "ann", s.plan)
		_, err := s.Payments().ApplySubscription(t.Context(), payments.ProviderReport{
			Connection: s.connection.ID,
			Fence:      s.lease(t, "identity:ann"), Remote: paid("sub_1", s.plan, "in_1"), CheckoutID: change.ID, Now: moment,
		})
		noError(t, err)
		if sub, err := s.Payments().Subscription(t.Context(), "ann"); err != nil || sub.Status != metering.StatusActive {
			t.Errorf("%+v, %v", sub, err)
		}
		credits := texts(t, connect(t, storetest.URL(t)), `
			SELECT (SELECT count(*) FROM payment_credits c WHERE c.app_id = p.app_id)::text FROM provider_payments p WHERE app_id = $1`, s.application.ID)
		if !slices.Equal(credits, []string{"0"}) {
			t.Errorf("credits of each payment: %q", credits)
		}
		alerts, _, err := s.Payments().Alerts(t.Context(), store.Page{Limit: 10}, false)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != billing.BalanceFull || alerts[0].ObjectID != "in_1" {
			t.Errorf("%+v, %v", alerts, err)
		}
	})

	t.Run("two workers with the same word store it once", func(t *testing.T) {
		s := newStorefront(t, db)
		_, change := s.checkout(t, "ann", s.plan)
		fence := s.lease(t, "identity:ann")
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				_, err := s.Payments().ApplySubscription(t.Context(), payments.ProviderReport{
					Connection: s.connection.ID,
					Fence:      fence, Remote: paid("sub_1", s.plan, "in_1", "in_2"), CheckoutID: change.ID, Now: moment,
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if held, _ := s.balance(t, "ann", s.credit); held != 2_000 {
			t.Errorf("%d tokens", held)
		}
	})
}

func hasWork(list []queue.Job, kind queue.JobKind, object string) bool {
	for _, w := range list {
		if w.Kind == kind && w.Object == object {
			return true
		}
	}
	return false
}

// The holder of an earlier fence decided on outdated state.
func TestAFenceThatWasPassedStoresNothing(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	rec, change := s.checkout(t, "ann", s.plan)
	topUp := s.topUp(t, "ann")
	slow := s.lease(t, "identity:ann")
	s.lease(t, "identity:ann")
	before := dumpOf(t, s.application.ID)
	for name, write := range map[string]func() error{
		"ApplySubscription": func() error {
			_, err := s.Payments().ApplySubscription(t.Context(), payments.ProviderReport{Fence: slow, Connection: s.connection.ID, Remote: paid("sub_1", s.plan, "in_1"), CheckoutID: change.ID, Now: moment})
			return err
		},
		"ApplyCheckout": func() error {
			_, err := s.Payments().ApplyCheckout(t.Context(), slow, change.ID, billing.ProviderSession{ID: "cs_1"}, moment, nil)
			return err
		},
		"ApplyTopUp": func() error {
			_, err := s.Payments().ApplyTopUp(t.Context(), slow, topUp.ID, sessionOf(topUp), moment, nil)
			return err
		},
		"ApplyCharge": func() error {
			return s.Payments().ApplyCharge(t.Context(), slow, billing.ProviderCharge{ID: "ch_1"}, moment)
		},
		"PutOperation": func() error { return s.Payments().PutOperation(t.Context(), slow, rec.Attempted(moment)) },
		"CompleteOperation": func() error {
			return s.Payments().CompleteOperation(t.Context(), slow, payments.Completion{Operation: rec.Operation})
		},
		"PutChange":   func() error { return s.Payments().PutChange(t.Context(), slow, rec.Operation, change) },
		"PlanRefused": func() error { return s.Payments().PlanRefused(t.Context(), slow, s.plan.ID, s.plan.Sync, "no") },
		"PlanSynced": func() error {
			_, err := s.Payments().PlanSynced(t.Context(), slow, payments.SyncedPlan{PlanID: s.plan.ID}, moment)
			return err
		},
		"RenewFree": func() error {
			_, err := s.Payments().RenewFree(t.Context(), slow, ids.New(), moment)
			return err
		},
		"Begin": func() error {
			_, _, err := s.Payments().Begin(t.Context(), payments.BeginInput{Fence: slow, Identity: "ann", Op: opOf(billing.OperationChange, "k"), Now: moment,
				Decide: func(payments.CustomerState) (payments.Decision, error) {
					return payments.Decision{Operation: opOf(billing.OperationChange, "k")}, nil
				}})
			return err
		},
	} {
		if err := write(); !errors.Is(err, queue.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := dumpOf(t, s.application.ID); after != before {
		t.Errorf("rows have changed from\n%s\nto\n%s", before, after)
	}
}
