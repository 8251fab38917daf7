package store

import (
	"context"
	"errors"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// CustomerState is what a request about an identity is decided by.
type CustomerState struct {
	Subscription *billing.Subscription // live, or waiting for its first payment; nil for none
	Plan         billing.Plan          // the one that the request names
	Credit       metering.Credit       // the one that the request names
	Changes      []billing.Change      // the identity's that are neither applied nor dropped
	Payments     []billing.Payment     // what the identity was given for nothing
	Balances     []metering.Balance    // of the wallet, which is locked
}

// Decision is what a request amounts to: what has to be stored before the provider
// hears of it, or instead.
type Decision struct {
	Operation    billing.Operation
	Change       *billing.Change       // nil for none
	TopUp        *billing.TopUp        // nil for none
	Subscription *billing.Subscription // a free one that runs here, as it then is; nil for none
	Settled      []billing.Payment     // of that one
	Answer       *billing.Subscription // when it is known already
}

// BeginInput is a request that may become a conversation with the provider.
type BeginInput struct {
	Fence     Fence
	Identity  string
	PlanKey   string // looked up when given
	CreditKey string // looked up when given
	Op        billing.Operation
	Now       int64
	Decide    func(CustomerState) (Decision, error)
}

// Begin keeps the intent of a request before anything is said to the provider. A
// request whose idempotency key is known gives what was kept then, and Decide is
// not asked; it reports whether this one is new. When Decide refuses, nothing is
// kept and the key stays free.
func (a App) Begin(ctx context.Context, b BeginInput) (rec OperationRecord, began bool, err error) {
	walletID := ids.New()
	for range maxAttempts {
		err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
			if err := tx.hold(ctx, b.Fence); err != nil {
				return err
			}
			rec, err = tx.op(ctx, b.Op.Kind, b.Op.IdempotencyKey)
			if !errors.Is(err, ErrUnknown) {
				return err
			}
			rec, err = tx.begin(ctx, walletID, b)
			return err
		})
		// The key was taken for another identity between the look and the insert, or the
		// reply to COMMIT was lost: the next look finds the op, ours or another's.
		if sqlState(err) != uniqueViolation && !errors.Is(err, errCommitUnknown) {
			break
		}
	}
	a.walletChanged(b.Identity)
	return rec, err == nil && rec.ID == b.Op.ID, err
}

func (tx appTx) begin(ctx context.Context, walletID ids.ID, b BeginInput) (rec OperationRecord, err error) {
	// Before the plan, as whoever replaces the account has it.
	if err := tx.holdConnection(ctx, b.Op.ConnectionID); err != nil {
		return rec, err
	}
	w, err := tx.lockOrMakeWallet(ctx, walletID, b.Identity, b.Now)
	if err != nil {
		return rec, err
	}
	standing, err := tx.standing(ctx, w, b)
	if err != nil {
		return rec, err
	}
	intent, err := b.Decide(standing)
	if err != nil {
		return rec, err
	}
	rec = OperationRecord{Operation: intent.Operation, Identity: b.Identity, Answer: intent.Answer}
	if err := tx.keepWish(ctx, &w, intent, b.Now, &rec); err != nil {
		return rec, err
	}
	if err := tx.insertOp(ctx, w.ID, b.Fence, rec); err != nil {
		return rec, err
	}
	if rec.State == billing.OperationRunning {
		if err := tx.enqueue(ctx, Job{Kind: JobOperation, Object: rec.ID.String(), DueAt: b.Now + opPatience}); err != nil {
			return rec, err
		}
	}
	return rec, tx.hint(ctx)
}

func (tx appTx) standing(ctx context.Context, w wallet, b BeginInput) (s CustomerState, err error) {
	if b.PlanKey != "" {
		if s.Plan, err = find(ctx, tx, holdPlan, readPlan, fault.New(fault.PlanNotFound), b.PlanKey); err != nil {
			return s, err
		}
	}
	if b.CreditKey != "" {
		if s.Credit, err = tx.credit(ctx, b.CreditKey); err != nil {
			return s, err
		}
	}
	subscription, err := tx.subscription(ctx, b.Identity)
	switch {
	case err == nil:
		s.Subscription = &subscription
	case !fault.Is(err, fault.SubscriptionNotFound):
		return s, err
	}
	if s.Changes, err = collect(ctx, tx, selectOpenChanges, readChange, w.ID); err != nil {
		return s, err
	}
	free, err := tx.payments(ctx, selectPayments, w.ID, ids.ID{})
	if err != nil {
		return s, err
	}
	s.Payments = plainPayments(free)
	filled, err := tx.withBalances(ctx, []wallet{w})
	if err != nil {
		return s, err
	}
	s.Balances = filled[0].Balances
	return s, nil
}

// keepWish writes what the request is about.
func (tx appTx) keepWish(ctx context.Context, w *wallet, intent Decision, now int64, rec *OperationRecord) error {
	if s := intent.Subscription; s != nil {
		if err := tx.keepSubscription(ctx, w, *s); err != nil {
			return err
		}
		if err := tx.settle(ctx, w, settlement{subscription: s.ID}, intent.Settled, now); err != nil {
			return err
		}
	}
	if c := intent.Change; c != nil {
		rec.ChangeID = c.ID
		if err := tx.insertChange(ctx, w.ID, *c); err != nil {
			return err
		}
	}
	if t := intent.TopUp; t != nil {
		rec.ChangeID = t.ID
		return tx.insertTopUp(ctx, w.ID, *t)
	}
	return nil
}

func (tx appTx) insertOp(ctx context.Context, walletID ids.ID, f Fence, rec OperationRecord) error {
	parameters, err := encodeMap(rec.Parameters)
	if err != nil {
		return err
	}
	answer, err := encodeAnswer(rec.Answer)
	if err != nil {
		return err
	}
	return tx.exec(ctx, insertOp, 1, rec.ID, tx.scope.OrgID, walletID, rec.Kind, rec.IdempotencyKey, rec.Fingerprint[:], parameters, rec.Step,
		rec.Attempt, rec.State, rec.CreatedAt, orNull(rec.AttemptedAt), orNull(rec.ChangeID), answer, orNull(rec.ConnectionID),
		f.Number)
}
