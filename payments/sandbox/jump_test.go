package sandbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v79"

	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
)

// timerMeter counts the timers that fire in each transaction.
type timerMeter struct {
	sandboxtest.Memory
	fired []int
}

func (d *timerMeter) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	return d.Memory.Update(ctx, app, want, func(s persist.Session) (persist.Change, error) {
		stored, err := change(s)
		timers := 0
		for _, key := range stored.Deleted {
			if strings.HasPrefix(key, "timer/") {
				timers++
			}
		}
		if timers > 0 {
			d.fired = append(d.fired, timers)
		}
		return stored, err
	})
}

func TestAFarJumpOfTheClockFiresTimersInBoundedTransactions(t *testing.T) {
	t.Parallel()
	const sessions, limit = 120, 50
	accounts := &timerMeter{}
	r := startWith(t, "2026-03-10", accounts)
	var last *stripe.CheckoutSession
	for range sessions {
		last = r.topup(500)
	}
	clock := ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.New(&stripe.TestHelpersTestClockParams{FrozenTime: stripe.Int64(r.clock().Unix())}))
	to := r.clock().AddDate(0, 0, 2).Unix()
	advanced := ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.Advance(clock.ID, &stripe.TestHelpersTestClockAdvanceParams{FrozenTime: stripe.Int64(to)}))
	if advanced.Status != stripe.TestHelpersTestClockStatusAdvancing || advanced.FrozenTime != to {
		t.Errorf("the advance answers %s at %d, want %d", advanced.Status, advanced.FrozenTime, to)
	}
	get := func() *stripe.TestHelpersTestClock {
		return ok[*stripe.TestHelpersTestClock](t)(r.api.TestHelpersTestClocks.Get(clock.ID, nil))
	}
	if got := get(); got.Status != stripe.TestHelpersTestClockStatusAdvancing {
		t.Errorf("a read meanwhile shows %s", got.Status)
	}
	// As the next look does, on this node or after a crash on another.
	must(t, r.server.Wake(t.Context(), r.app))
	if got := get(); got.Status != stripe.TestHelpersTestClockStatusReady || got.FrozenTime != to {
		t.Errorf("in the end it shows %s at %d", got.Status, got.FrozenTime)
	}
	if got := ok[*stripe.CheckoutSession](t)(r.api.CheckoutSessions.Get(last.ID, nil)); got.Status != stripe.CheckoutSessionStatusExpired {
		t.Errorf("the last session is %s", got.Status)
	}
	all := 0
	for _, fired := range accounts.fired {
		if all += fired; fired > limit {
			t.Errorf("%d timers fired in one transaction", fired)
		}
	}
	if all != sessions {
		t.Errorf("%d timers fired: %v", all, accounts.fired)
	}
}
