package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

func TestBegin(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	asked := func(identity, key string, decide func(payments.CustomerState) (payments.Decision, error)) (payments.OperationRecord, bool, error) {
		return s.Payments().Begin(t.Context(), payments.BeginInput{
			Fence: s.lease(t, "identity:"+identity), Identity: identity, PlanKey: "pro", CreditKey: "tokens",
			Op: opOf(billing.OperationChange, key), Now: moment, Decide: decide,
		})
	}

	t.Run("gives a repeated key the first intent, and decides nothing", func(t *testing.T) {
		op := opOf(billing.OperationChange, "twice")
		_, began, err := s.Payments().Begin(t.Context(), payments.BeginInput{Fence: s.lease(t, "identity:ann"), Identity: "ann", Op: op, Now: moment,
			Decide: func(payments.CustomerState) (payments.Decision, error) { return payments.Decision{Operation: op}, nil }})
		if err != nil || !began {
			t.Fatal(began, err)
		}
		rec, began, err := asked("ann", "twice", func(payments.CustomerState) (payments.Decision, error) {
			t.Error("it was decided again")
			return payments.Decision{}, nil
		})
		if err != nil || began || rec.ID != op.ID || rec.Parameters.Change.ExpiresAt != 1 || rec.Fingerprint != op.Fingerprint || rec.Identity != "ann" {
			t.Errorf("%+v, %v, %v", rec, began, err)
		}
	})

	t.Run("keeps nothing of what was refused, and leaves the key free", func(t *testing.T) {
		_, _, err := asked("unknown", "refused", func(payments.CustomerState) (payments.Decision, error) {
			return payments.Decision{}, fault.New(fault.PlanInactive)
		})
		wantFault(t, err, fault.PlanInactive)
		if _, err := s.Payments().Operation(t.Context(), billing.OperationChange, "refused"); !errors.Is(err, payments.ErrUnknown) {
			t.Error(err)
		}
		_, err = s.Wallet(t.Context(), "unknown")
		wantFault(t, err, fault.WalletNotFound)
	})

	t.Run("decides by what stands", func(t *testing.T) {
		s.subscribe(t, "bob", "sub_bob")
		_, pending := s.checkout(t, "bob", s.plan)
		_, _, err := asked("bob", "stands", func(now payments.CustomerState) (payments.Decision, error) {
			if now.Subscription == nil || now.Subscription.ProviderID != "sub_bob" || now.Plan.ID != s.plan.ID || now.Credit.ID != s.credit.ID ||
				len(now.Changes) != 1 || now.Changes[0].ID != pending.ID {
				t.Errorf("%+v", now)
			}
			return payments.Decision{}, errors.New("seen")
		})
		if err == nil || err.Error() != "seen" {
			t.Error(err)
		}
	})

	t.Run("finds what is named, or says that it is missing", func(t *testing.T) {
		for code, b := range map[fault.Code]payments.BeginInput{
			fault.PlanNotFound: {PlanKey: "none"}, fault.CreditNotFound: {CreditKey: "none"},
		} {
			b.Fence, b.Identity, b.Op, b.Now = s.lease(t, "identity:ann"), "ann", opOf(billing.OperationChange, string(code)), moment
			_, _, err := s.Payments().Begin(t.Context(), b)
			wantFault(t, err, code)
		}
	})

	t.Run("keeps one intent when many come at once, for any identity", func(t *testing.T) {
		var began atomic.Int64
		var wait sync.WaitGroup
		for i := range 12 {
			identity := []string{"ann", "bob", "eve"}[i%3]
			fence := s.lease(t, "identity:"+identity) // the later leases fence the earlier ones out, which is no success either
			wait.Go(func() {
				op := opOf(billing.OperationCancel, "same")
				_, first, err := s.Payments().Begin(t.Context(), payments.BeginInput{Fence: fence, Identity: identity, Op: op, Now: moment,
					Decide: func(payments.CustomerState) (payments.Decision, error) { return payments.Decision{Operation: op}, nil }})
				if err != nil && !errors.Is(err, queue.ErrFenced) {
					t.Error(err)
				}
				if first {
					began.Add(1)
				}
			})
		}
		wait.Wait()
		if began.Load() != 1 {
			t.Errorf("%d began", began.Load())
		}
	})

	t.Run("has a running one looked after, and a finished one not", func(t *testing.T) {
		running := s.begin(t, "eve", billing.OperationCheckout, func(*payments.Decision) {})
		done := s.begin(t, "eve", billing.OperationCheckout, func(i *payments.Decision) { i.Operation.State = billing.OperationDone })
		due, err := s.DueJobs(t.Context(), moment+60_000, 100)
		noError(t, err)
		if !hasWork(due, queue.JobOperation, running.ID.String()) || hasWork(due, queue.JobOperation, done.ID.String()) {
			t.Errorf("%+v", due)
		}
	})
}

func TestOps(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))

	t.Run("go on where they were left", func(t *testing.T) {
		rec := s.begin(t, "ann", billing.OperationCheckout, func(*payments.Decision) {})
		op := rec.AtStep(billing.StepSession).NextAttempt().Attempted(moment + 5)
		op.Parameters.Checkout.PriceID = "price_1"
		noError(t, s.Payments().PutOperation(t.Context(), s.lease(t, "identity:ann"), op))
		kept, err := s.Payments().OperationByID(t.Context(), rec.ID)
		if err != nil || kept.Step != billing.StepSession || kept.Attempt != 2 || kept.AttemptedAt != moment+5 || kept.Parameters.Checkout.PriceID != "price_1" {
			t.Errorf("%+v, %v", kept, err)
		}
	})

	t.Run("end once, with what the caller was told", func(t *testing.T) {
		rec, change := s.checkout(t, "ann", s.plan)
		rec.State = billing.OperationDone
		noError(t, s.Payments().CompleteOperation(t.Context(), s.lease(t, "identity:ann"), payments.Completion{Operation: rec.Operation, Result: map[string]string{"url": "first"}}))
		rec.State = billing.OperationFailed
		noError(t, s.Payments().CompleteOperation(t.Context(), s.lease(t, "identity:ann"), payments.Completion{Operation: rec.Operation, Result: map[string]string{"url": "second"}, Error: "late"}))
		noError(t, s.Payments().PutOperation(t.Context(), s.lease(t, "identity:ann"), rec.Operation.AtStep(billing.StepEnd)))
		kept, err := s.Payments().Operation(t.Context(), rec.Kind, rec.IdempotencyKey)
		if err != nil || kept.State != billing.OperationDone || kept.Result["url"] != "first" || kept.Error != "" || kept.Step == billing.StepEnd || kept.ChangeID != change.ID {
			t.Errorf("%+v, %v", kept, err)
		}
	})

	t.Run("take a change that is not wanted any more with them", func(t *testing.T) {
		rec, change := s.checkout(t, "ann", s.plan)
		rec.State = billing.OperationFailed
		noError(t, s.Payments().CompleteOperation(t.Context(), s.lease(t, "identity:ann"), payments.Completion{Operation: rec.Operation, DropChange: change.ID, Error: "no \x00card\xff"}))
		kept, err := s.Payments().OperationByID(t.Context(), rec.ID)
		if err != nil || kept.Error != "no card�" {
			t.Errorf("%q, %v", kept.Error, err)
		}
		if c, err := s.Payments().Change(t.Context(), change.ID); err != nil || c.State != billing.ChangeDropped {
			t.Errorf("%+v, %v", c, err)
		}
	})

	t.Run("can change what they ask for", func(t *testing.T) {
		rec, first := s.checkout(t, "ann", s.plan)
		second := first
		second.ID = ids.New()
		op := rec.AtStep(billing.StepEnd)
		op.Parameters.Checkout.Command = billing.CommandReplace
		for range 2 { // as when the first reply was lost
			noError(t, s.Payments().PutChange(t.Context(), s.lease(t, "identity:ann"), op, second))
		}
		kept, err := s.Payments().OperationByID(t.Context(), rec.ID)
		if err != nil || kept.ChangeID != second.ID || kept.Step != billing.StepEnd || kept.Parameters.Command() != billing.CommandReplace {
			t.Errorf("%+v, %v", kept, err)
		}
		if c, err := s.Payments().Change(t.Context(), first.ID); err != nil || c.State != billing.ChangeDropped {
			t.Errorf("%+v, %v", c, err)
		}
		if identity, err := s.Payments().IdentityOfChange(t.Context(), second.ID); err != nil || identity != "ann" {
			t.Errorf("%q, %v", identity, err)
		}
	})
}

func TestFreeSubscriptions(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	free := s.startFree(t, "ann")

	t.Run("grant at once, and answer as they were", func(t *testing.T) {
		if held, _ := s.balance(t, "ann", s.credit); held != 1_000 {
			t.Errorf("%d tokens", held)
		}
		kept, err := s.Payments().Subscription(t.Context(), "ann")
		if err != nil || kept.ID != free.ID || !kept.Local() || kept.Anchor != moment {
			t.Errorf("%+v, %v", kept, err)
		}
	})

	t.Run("are due at the end of their period", func(t *testing.T) {
		if due, err := s.DueJobs(t.Context(), free.Period.End-1, 100); err != nil || hasWork(due, queue.JobFree, free.ID.String()) {
			t.Errorf("too early: %+v, %v", due, err)
		}
		if due, err := s.DueJobs(t.Context(), free.Period.End, 100); err != nil || !hasWork(due, queue.JobFree, free.ID.String()) {
			t.Errorf("%+v, %v", due, err)
		}
	})

	t.Run("turn once for each period", func(t *testing.T) {
		for range 3 {
			turned, err := s.Payments().RenewFree(t.Context(), s.lease(t, "identity:ann"), free.ID, free.Period.End)
			if err != nil || turned.Period.Start != free.Period.End {
				t.Fatalf("%+v, %v", turned, err)
			}
		}
		if held, _ := s.balance(t, "ann", s.credit); held != 2_000 {
			t.Errorf("%d tokens", held)
		}
	})

	t.Run("are turned no more once they have ended", func(t *testing.T) {
		rec := s.begin(t, "ann", billing.OperationCancel, func(*payments.Decision) {})
		kept, err := s.Payments().Subscription(t.Context(), "ann")
		noError(t, err)
		ended := kept.End(moment)
		rec.State = billing.OperationDone
		noError(t, s.Payments().CompleteOperation(t.Context(), s.lease(t, "identity:ann"), payments.Completion{Operation: rec.Operation, Subscription: &ended, Answer: &ended}))
		if due, err := s.DueJobs(t.Context(), 1<<60, 100); err != nil || hasWork(due, queue.JobFree, free.ID.String()) {
			t.Errorf("%+v, %v", due, err)
		}
		_, err = s.Payments().Subscription(t.Context(), "ann")
		wantFault(t, err, fault.SubscriptionNotFound)
	})
}

// What a subscription was promised, it gets at the prices of then: they stay fast from
// the moment it was asked for until it has come about or can no longer.
func TestWhatWasPromisedHoldsPricesFast(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	// begin has a plan "max" whose terms alone name the feature, once the plan itself
	// has let go of it.
	begin := func(t *testing.T) (s storefront, max billing.Plan, letGo func(), locked func() bool) {
		s = newStorefront(t, db)
		s.newFeature(t, featureOf("images", "tokens"))
		s.newPlan(t, "max", 9900, 5_000)
		limits := []metering.Limit{{FeatureKey: "images", Limit: 5, Period: metering.LimitBilling, Overage: metering.OverageCredits}}
		max, err := s.UpdatePlan(t.Context(), "max", billing.PlanPatch{
			Limits: &limits, Multipliers: &[]metering.Multiplier{{FeatureKey: "images", BasisPoints: 5000}},
		})
		noError(t, err)
		letGo = func() {
			t.Helper()
			_, err := s.UpdatePlan(t.Context(), "max", billing.PlanPatch{Limits: &[]metering.Limit{}, Multipliers: &[]metering.Multiplier{}})
			noError(t, err)
		}
		locked = func() bool {
			t.Helper()
			_, err := s.UpdateFeature(t.Context(), "images", metering.FeaturePatch{Cost: new(metering.Amount(11))}, moment)
			if err != nil {
				wantFault(t, err, fault.PricingLocked)
			}
			return err != nil
		}
		return s, max, letGo, locked
	}
	change := func(t *testing.T, s storefront, kind billing.ChangeKind, subscription ids.ID, target billing.Terms) (payments.OperationRecord, billing.Change) {
		c := billing.Change{ID: ids.New(), Kind: kind, SubscriptionID: subscription, Target: target, State: billing.ChangeRequested, RequestedAt: moment}
		return s.begin(t, "ann", billing.OperationChange, func(i *payments.Decision) { i.Change = &c }), c
	}

	t.Run("for a checkout, until its page has expired", func(t *testing.T) {
		s, max, letGo, locked := begin(t)
		_, asked := s.checkout(t, "ann", max)
		letGo()
		if !locked() {
			t.Fatal("the price could change while the page is open")
		}
		_, err := s.Payments().ApplyCheckout(t.Context(), s.lease(t, "identity:ann"), asked.ID, billing.ProviderSession{ID: "cs_1", Status: billing.SessionExpired}, moment, nil)
		noError(t, err)
		if locked() {
			t.Error("it still cannot")
		}
	})
	t.Run("for a change, until it is given up", func(t *testing.T) {
		s, max, letGo, locked := begin(t)
		subscription := s.subscribe(t, "ann", "sub_1").Subscription
		rec, _ := change(t, s, billing.Upgrade, subscription.ID, max.Terms())
		letGo()
		if !locked() {
			t.Fatal("the price could change while the upgrade is under way")
		}
		rec.State = billing.OperationFailed
		noError(t, s.Payments().CompleteOperation(t.Context(), s.lease(t, "identity:ann"), payments.Completion{Operation: rec.Operation, DropChange: rec.ChangeID}))
		if locked() {
			t.Error("it still cannot")
		}
	})
	for name, say := range map[string]func(*billing.ProviderSubscription){
		"for a downgrade that waits for the renewal, until it is called off": func(remote *billing.ProviderSubscription) {
			remote.Next = &billing.ProviderPhase{PriceID: priceOf("max"), At: aMonth.End}
		},
		"for an upgrade that waits for its payment, until it has expired": func(remote *billing.ProviderSubscription) {
			remote.Pending = &billing.ProviderPending{PriceID: priceOf("max"), ExpiresAt: moment + 5}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, max, letGo, locked := begin(t)
			subscription := s.subscribe(t, "ann", "sub_1").Subscription
			kind := billing.Upgrade
			remote := paid("sub_1", s.plan, "in_sub_1")
			if say(&remote); remote.Next != nil {
				kind = billing.Downgrade
			}
			change(t, s, kind, subscription.ID, max.Terms())
			letGo()
			s.apply(t, "ann", ids.ID{}, remote)
			if !locked() {
				t.Fatal("the price could change while it waits")
			}
			s.apply(t, "ann", ids.ID{}, paid("sub_1", s.plan, "in_sub_1"))
			if locked() {
				t.Error("it still cannot")
			}
		})
	}
	t.Run("for a free plan that is queued here", func(t *testing.T) {
		s, max, letGo, locked := begin(t)
		free := s.startFree(t, "ann")
		queued := free.Schedule(max.Terms())
		s.begin(t, "ann", billing.OperationChange, func(i *payments.Decision) {
			i.Operation.State, i.Subscription, i.Answer = billing.OperationDone, &queued, &queued
		})
		letGo()
		if !locked() {
			t.Error("the price could change while it is queued")
		}
	})
}
