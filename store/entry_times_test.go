package store_test

import (
	"strconv"
	"testing"

	"purser/billing"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/storetest"
	"purser/store/verify"
)

// A clock that was advanced by a day, and then by another.
const (
	oneDay    int64 = 24 * 3_600_000
	readAt          = moment + oneDay
	enteredAt       = moment + 2*oneDay
)

// The entries of a wallet from a time on are searched for, so they are in the order of time,
// also those of requests that read the clock before it was advanced.
func TestEntriesAreInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*testing.T, storefront) (createdAt int64, err error){
		"a deposit": func(t *testing.T, s storefront) (int64, error) {
			requested := depositOf("ann", "tokens", 1, "late")
			requested.CreatedAt, requested.ClockOffset = readAt, oneDay
			d, _, err := s.Deposit(t.Context(), requested)
			return d.CreatedAt, err
		},
		"an adjustment": func(t *testing.T, s storefront) (int64, error) {
			w, err := s.Wallet(t.Context(), "ann")
			noError(t, err)
			return enteredAt, s.Adjust(t.Context(), store.Adjustment{
				ID: ids.New(), WalletID: w.ID, CreditKey: "tokens", Delta: metering.Delta{Amount: 1}, Reason: "late", By: ids.New(),
				Now: readAt, ClockOffset: oneDay,
			})
		},
		"a reversal": func(t *testing.T, s storefront) (int64, error) {
			requested := reversalOf("event", nil)
			requested.CreatedAt, requested.ClockOffset = readAt, oneDay
			r, _, err := s.Reverse(t.Context(), requested)
			return r.CreatedAt, err
		},
		"a transfer": func(t *testing.T, s storefront) (int64, error) {
			requested := transferOf("ann", "bob", "tokens", 1)
			requested.CreatedAt, requested.ClockOffset = readAt, oneDay
			made, _, err := s.Transfer(t.Context(), requested)
			return made.CreatedAt, err
		},
	} {
		t.Run("of "+name, func(t *testing.T) {
			t.Parallel()
			s := newStorefront(t, storetest.Open(t))
			s.advanceClock(t, oneDay)
			for _, identity := range []string{"ann", "bob"} {
				s.deposit(t, depositOf(identity, "tokens", 1_000, freshID()))
			}
			key, _ := s.newKey(t, keys.Setup)
			d, err := openUsage(t, s.db).Track(store.Usage{
				Scope: s.application.Scope(), KeyID: key.ID, Identity: "ann", FeatureKey: "messages",
				Usage: metering.Usage{TransactionID: ids.New(), EventID: "event", Quantity: 1},
			})
			noError(t, err)
			noError(t, d.Err())
			s.advanceClock(t, 2*oneDay, "ann", "bob")
			if createdAt, err := run(t, s); err != nil || createdAt != enteredAt {
				t.Errorf("it was made at %d, %v", createdAt, err)
			}
			s.wantInOrder(t, enteredAt)
		})
	}
	t.Run("of payments", func(t *testing.T) {
		t.Parallel()
		s := newStorefront(t, storetest.Open(t))
		topUp, free := s.topUp(t, "ann"), s.startFree(t, "bob")
		_, change := s.checkout(t, "eve", s.plan)
		s.deposit(t, depositOf("kim", "tokens", 1, freshID()))
		s.advanceClock(t, oneDay)
		ann, bob, eve, kim := s.lease(t, "identity:ann"), s.lease(t, "identity:bob"), s.lease(t, "identity:eve"), s.lease(t, "identity:kim")
		s.advanceClock(t, 2*oneDay, "ann", "bob", "eve", "kim")
		remote := sessionOf(topUp)
		_, err := s.Payments().ApplyTopUp(t.Context(), ann, topUp.ID, remote, readAt, nil)
		noError(t, err)
		noError(t, s.Payments().ApplyCharge(t.Context(), ann, billing.ProviderCharge{
			ID: remote.ChargeID, IntentID: remote.IntentID, Refunds: []billing.ProviderRefund{{AmountCents: 1000, Status: "succeeded"}},
		}, readAt))
		_, err = s.Payments().ApplySubscription(t.Context(), payments.ProviderReport{
			Fence: eve, Connection: s.connection.ID, Remote: paid("sub_eve", s.plan, "in_eve"), CheckoutID: change.ID, Now: readAt,
		})
		noError(t, err)
		op := opOf(billing.OperationChange, freshID())
		op.State = billing.OperationDone
		_, _, err = s.Payments().Begin(t.Context(), payments.BeginInput{
			Fence: kim, Identity: "kim", PlanKey: s.plan.Key, Op: op, Now: readAt,
			Decide: func(payments.CustomerState) (payments.Decision, error) {
				started, settled := billing.StartFreeSubscription(ids.New(), "kim", free.Terms, nil, readAt)
				return payments.Decision{Operation: op, Subscription: &started, Settled: settled, Answer: &started}, nil
			},
		})
		noError(t, err)
		s.wantInOrder(t, enteredAt)
		_, err = s.Payments().RenewFree(t.Context(), bob, free.ID, free.Period.End+oneDay)
		noError(t, err)
		s.wantInOrder(t, free.Period.End+2*oneDay)
	})
}

// advanceClock has the application's clock advanced, after which each wallet gets an entry.
func (s storefront) advanceClock(t *testing.T, to int64, identities ...string) {
	t.Helper()
	exec(t, connect(t, storetest.URL(t)), `UPDATE app_state SET clock_offset = $2, epoch = epoch + 1 WHERE app_id = $1`, s.application.ID, to)
	for _, identity := range identities {
		d := depositOf(identity, "tokens", 1, freshID())
		d.CreatedAt, d.ClockOffset = moment+to, to
		s.deposit(t, d)
	}
}

// wantInOrder compares each entry with the one before it and with its announcement, and the
// last one's time.
func (s storefront) wantInOrder(t *testing.T, last int64) {
	t.Helper()
	conn := connect(t, storetest.URL(t))
	for _, late := range texts(t, conn, `
		SELECT format('%s %s is %s after %s', e.kind, e.seq, e.created_at, e.before)
		FROM (SELECT *, lag(created_at) OVER (PARTITION BY wallet_id ORDER BY seq) AS before FROM journal WHERE app_id = $1) e
		WHERE e.created_at < e.before`, s.application.ID) {
		t.Error(late)
	}
	if got := texts(t, conn, `SELECT max(created_at)::text FROM journal WHERE app_id = $1`, s.application.ID)[0]; got != strconv.FormatInt(last, 10) {
		t.Errorf("the last entry has the time %s, want %d", got, last)
	}
	v, err := s.Verification().Verify(t.Context(), verify.Options{})
	noError(t, err)
	for _, d := range v.Differences {
		t.Errorf("verify: not so: %s (%s)", d.Check, d.Detail)
	}
}
