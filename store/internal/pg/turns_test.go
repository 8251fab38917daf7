package pg

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/turns"
)

// waitingInTurn is an application whose organization has taken all turns, and a context
// that has ended.
func waitingInTurn(t *testing.T) (App, context.Context) {
	t.Helper()
	a := App{
		DB: &DB{turns: turns.New[ids.ID](turnsAtOnce)}, Scope: tenancy.Scope{OrgID: ids.New(), AppID: ids.New()}, By: audit.Actor{Name: "ann"},
	}.InTurn()
	for range turnsAtOnce {
		done, err := a.DB.turns.Take(t.Context(), a.Scope.OrgID)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(done)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	return a, ended
}

func TestATransactionThatGetsNoTurnIsRefusedAsOverload(t *testing.T) {
	t.Parallel()
	a, ended := waitingInTurn(t)
	err := a.Transact(ended, func(context.Context, *Tx) error {
		t.Error("it ran")
		return nil
	})
	if !fault.Is(err, fault.Overloaded) {
		t.Errorf("it gets %v", err)
	}
}

// The refusal says that nothing was done: that is not known after a COMMIT without a reply.
func TestAnUnknownCommitStaysUnknownWithoutATurnToLookAgain(t *testing.T) {
	t.Parallel()
	a, ended := waitingInTurn(t)
	unknown, refused := fmt.Errorf("%w: cut off", ErrCommitUnknown), &pgconn.PgError{Code: UniqueViolation}
	for name, c := range map[string]struct {
		before []error
		lost   bool
	}{
		"a lost reply to COMMIT":                 {[]error{unknown}, true},
		"one, then its row refused by the index": {[]error{unknown, refused}, true},
		"one, then an operation that runs":       {[]error{unknown, fault.New(fault.OperationInProgress)}, true},
		"a row that a unique index refused":      {[]error{refused}, false},
		"a transaction that was not run once":    {nil, false},
	} {
		attempts := 0
		err := RetryKeyed(ended, func(ctx context.Context, work func(context.Context, *Tx) error) error {
			if attempts++; attempts <= len(c.before) {
				return c.before[attempts-1]
			}
			return a.Transact(ctx, work)
		}, func(context.Context, *Tx) error { return nil })
		if fault.Is(err, fault.Overloaded) == c.lost || errors.Is(err, ErrCommitUnknown) != c.lost {
			t.Errorf("after %s: %v", name, err)
		}
	}
}
