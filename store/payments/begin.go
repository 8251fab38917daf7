package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
)

// CustomerState is the state that a request about an identity is decided by.
type CustomerState struct {
	Subscription *billing.Subscription // live, or incomplete; nil for none
	Plan         billing.Plan          // the one that the request names
	Credit       metering.Credit       // the one that the request names
	Changes      []billing.Change      // the identity's that are neither applied nor dropped
	Payments     []billing.Payment     // what the identity was given for nothing
	Balances     []metering.Balance    // of the wallet, which is locked
	Unsettled    bool                  // whether an upgrade was just charged is not known
}

// Decision is the result of a request: what is stored before the provider is called, or
// instead of calling it.
type Decision struct {
	Operation    billing.Operation
	Change       *billing.Change       // nil for none
	TopUp        *billing.TopUp        // nil for none
	Subscription *billing.Subscription // a free one to store; nil for none
	Settled      []billing.Payment     // payments of that subscription
	Answer       *billing.Subscription // the response, when it needs no provider call
}

// BeginInput is a request that may become an operation at the provider.
type BeginInput struct {
	Fence     queue.Fence
	Identity  string
	PlanKey   string // looked up when given
	CreditKey string // looked up when given
	Op        billing.Operation
	Now       int64
	Decide    func(CustomerState) (Decision, error)
}

// Begin stores the operation of a request before the provider is called. A known
// idempotency key returns the stored operation without calling Decide; began reports
// whether this one is new. When Decide fails, or the application is archived, nothing is
// stored and the key stays free.
func (a App) Begin(ctx context.Context, b BeginInput) (rec OperationRecord, began bool, err error) {
	walletID := ids.New()
	err = pg.RetryKeyed(ctx, a.transact, func(ctx context.Context, tx appTx) error {
		if err := tx.VerifyFence(ctx, b.Fence); err != nil {
			return err
		}
		rec, err = tx.operation(ctx, b.Op.Kind, b.Op.IdempotencyKey)
		if !errors.Is(err, ErrUnknown) {
			return err
		}
		rec, err = tx.begin(ctx, walletID, b)
		return err
	})
	a.app.WalletChanged(b.Identity)
	return rec, err == nil && rec.ID == b.Op.ID, err
}

func (tx appTx) begin(ctx context.Context, walletID ids.ID, b BeginInput) (rec OperationRecord, err error) {
	// Lock the connection before the plan, the same order as PutConnection.
	if err := tx.holdConnection(ctx, b.Op.ConnectionID); err != nil {
		return rec, err
	}
	w, err := tx.LockOrCreateWallet(ctx, walletID, b.Identity, b.Now)
	if err != nil {
		return rec, err
	}
	state, err := tx.customerState(ctx, w, b)
	if err != nil {
		return rec, err
	}
	decision, err := b.Decide(state)
	if err != nil {
		return rec, err
	}
	rec = OperationRecord{Operation: decision.Operation, Identity: b.Identity, Answer: decision.Answer}
	if err := tx.writeDecision(ctx, &w, decision, b, &rec); err != nil {
		return rec, err
	}
	if err := tx.insertOperation(ctx, w.ID, b.Fence, rec); err != nil {
		return rec, err
	}
	if rec.State == billing.OperationRunning {
		if err := tx.Enqueue(ctx, queue.Job{Kind: queue.JobOperation, Object: rec.ID.String(), DueAt: b.Now + operationRecoveryDelay}); err != nil {
			return rec, err
		}
	}
	// The key was checked before the provider was called, which takes seconds.
	if err := tx.HoldActive(ctx); err != nil {
		return rec, err
	}
	return rec, tx.ScheduleWake(ctx)
}

func (tx appTx) customerState(ctx context.Context, w ledger.Wallet, b BeginInput) (s CustomerState, err error) {
	if b.PlanKey != "" {
		if s.Plan, err = pg.Find(ctx, tx, holdPlan, ledger.ReadPlan, fault.New(fault.PlanNotFound), b.PlanKey); err != nil {
			return s, err
		}
	}
	if b.CreditKey != "" {
		if s.Credit, err = tx.Credit(ctx, b.CreditKey); err != nil {
			return s, err
		}
	}
	if b.Op.Kind == billing.OperationChange || b.Op.Kind == billing.OperationCancel {
		unsettled, err := pg.Find(ctx, tx, countUnsettledOps, pgx.RowTo[int64], ErrUnknown, w.ID, b.Now-billing.UnsettledTime)
		if err != nil {
			return s, err
		}
		s.Unsettled = unsettled > 0
	}
	return s, tx.readCustomer(ctx, w, b.Identity, &s)
}

// readCustomer reads what is stored about an identity that has a wallet.
func (tx appTx) readCustomer(ctx context.Context, w ledger.Wallet, identity string, s *CustomerState) error {
	subscription, err := tx.subscription(ctx, identity)
	switch {
	case err == nil:
		s.Subscription = &subscription
	case !fault.Is(err, fault.SubscriptionNotFound):
		return err
	}
	if s.Changes, err = pg.Collect(ctx, tx, selectOpenChanges, readChange, w.ID); err != nil {
		return err
	}
	free, err := tx.payments(ctx, selectPayments, w.ID, ids.ID{})
	if err != nil {
		return err
	}
	s.Payments = plainPayments(free)
	filled, err := tx.WithBalances(ctx, []ledger.Wallet{w})
	if err != nil {
		return err
	}
	s.Balances = filled[0].Balances
	return nil
}

// CustomerState reads what a change of plan is decided by, without a lock and without
// creating a wallet.
func (a App) CustomerState(ctx context.Context, identity, planKey string) (CustomerState, error) {
	return pg.Return(ctx, a.snapshot, func(ctx context.Context, tx appTx) (s CustomerState, err error) {
		if s.Plan, err = pg.Find(ctx, tx, ledger.SelectPlan, ledger.ReadPlan, fault.New(fault.PlanNotFound), planKey); err != nil {
			return s, err
		}
		wallets, err := pg.Collect(ctx, tx, ledger.SelectWallet, ledger.ReadWallet, identity)
		if err != nil || len(wallets) == 0 {
			return s, err
		}
		err = tx.readCustomer(ctx, wallets[0], identity, &s)
		return s, err
	})
}

// writeDecision stores the subscription, change or top-up that the request is about.
func (tx appTx) writeDecision(ctx context.Context, w *ledger.Wallet, decision Decision, b BeginInput, rec *OperationRecord) error {
	if s := decision.Subscription; s != nil {
		before, err := tx.subscriptionByID(ctx, s.ID)
		if err != nil {
			return err
		}
		if err := tx.writeSubscription(ctx, w, before, *s); err != nil {
			return err
		}
		if err := tx.creditPayments(ctx, w, paymentContext{subscription: s.ID, clockOffset: b.Fence.ClockOffset}, decision.Settled, b.Now); err != nil {
			return err
		}
	}
	if c := decision.Change; c != nil {
		rec.ChangeID = c.ID
		if err := tx.insertChange(ctx, w.ID, *c); err != nil {
			return err
		}
	}
	if t := decision.TopUp; t != nil {
		rec.ChangeID = t.ID
		return tx.insertTopUp(ctx, w.ID, *t)
	}
	return nil
}

func (tx appTx) insertOperation(ctx context.Context, walletID ids.ID, f queue.Fence, rec OperationRecord) error {
	parameters, err := rec.Parameters.Encode()
	if err != nil {
		return err
	}
	answer, err := encodeAnswer(rec.Answer)
	if err != nil {
		return err
	}
	return tx.Exec(ctx, insertOp, 1, pg.Named{
		"id": rec.ID, "org_id": tx.Scope.OrgID, "wallet_id": walletID, "kind": rec.Kind, "idempotency_key": rec.IdempotencyKey,
		"fingerprint": rec.Fingerprint[:], "parameters": parameters, "step": rec.Step, "attempt": rec.Attempt,
		"state": rec.State, "created_at": rec.CreatedAt, "attempted_at": pg.OrNull(rec.AttemptedAt),
		"change_id": pg.OrNull(rec.ChangeID), "answer": answer, "connection_id": pg.OrNull(rec.ConnectionID), "fence": f.Number,
	})
}
