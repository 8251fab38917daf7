package billing

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/metering"
)

func TestRecover(t *testing.T) {
	const began = 100 * 24 * 3600 * 1000
	op := func(step Step) Operation {
		return Operation{Step: step, Attempt: 1, CreatedAt: began, AttemptedAt: began + 5, State: OperationRunning}
	}
	unsent := op(StepUpgrade)
	unsent.AttemptedAt = 0
	sentAgain := op(StepUpgrade)
	sentAgain.AttemptedAt = began + 2*chargeWindow
	worn := op(StepFlag)
	worn.Attempt = maxAttempts
	action := worn
	action.Kind = OperationAction
	undone, failed := Observation{Outcome: OutcomeNotDone}, Observation{Outcome: OutcomeNotDone, SavedFailure: true}

	for _, c := range []struct {
		claim string
		op    Operation
		seen  Observation
		asker Initiator
		after int64 // since it began
		want  Recovery
	}{
		{"what is done is done", op(StepUpgrade), Observation{Outcome: OutcomeDone}, Background, 1000, RecoverDone},
		{"what is done is done, however late", op(StepUpgrade), Observation{Outcome: OutcomeDone}, Background, 100 * day, RecoverDone},
		{"nothing is sent blindly", op(StepFlag), Observation{Outcome: OutcomeUnknown}, Background, 1000, RecoverLater},
		{"a call that takes no money is repeated under its key", op(StepFlag), undone, Background, 22 * hour, RecoverRepeat},
		{"until the provider forgets the key", op(StepFlag), undone, Background, keyLifetime + 4, RecoverRepeat},
		{"then it gets another", op(StepFlag), undone, Background, keyLifetime + 5, RecoverRenew},
		{"a kept failure needs another key", op(StepFlag), failed, Background, 1000, RecoverRenew},
		{"but not without end", worn, failed, Background, 1000, RecoverClose},
		{"an action has no caller and returns money, so it goes on", action, failed, Background, 1000, RecoverRenew},
		{"unless a caller asks", worn, failed, Caller, 1000, RecoverRenew},
		{"a charge is repeated soon after", op(StepUpgrade), undone, Background, chargeWindow - 1, RecoverRepeat},
		{"a charge that failed there gets another key soon after", op(StepUpgrade), failed, Background, chargeWindow - 1, RecoverRenew},
		{"a charge is not repeated later", op(StepUpgrade), undone, Background, chargeWindow, RecoverClose},
		{"nor sent for the first time", unsent, undone, Background, chargeWindow, RecoverClose},
		{"a charge that a caller just sent may still take effect", sentAgain, undone, Background, 2*chargeWindow + UnsettledTime - 1, RecoverLater},
		{"but not much later", sentAgain, undone, Background, 2*chargeWindow + UnsettledTime, RecoverClose},
		{"what has taken effect is done at once", sentAgain, Observation{Outcome: OutcomeDone}, Background, 2*chargeWindow + 1, RecoverDone},
		{"a caller need not wait for that", sentAgain, undone, Caller, 2*chargeWindow + 1, RecoverRepeat},
		{"a caller may still want it", op(StepUpgrade), undone, Caller, chargeWindow, RecoverRepeat},
		{"also a day later, under another key", op(StepUpgrade), undone, Caller, 30 * hour, RecoverRenew},
		{"what was never sent is sent under its first key", unsent, undone, Background, 1000, RecoverRepeat},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := Recover(c.op, c.seen, c.asker, began+c.after); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestProviderKeys(t *testing.T) {
	op := Operation{ID: named("op")}.AtStep(StepVoid)
	t.Run("name the op, the step and the attempt", func(t *testing.T) {
		if got, want := op.ProviderKey(), "psr:"+op.ID.Format("op")+":void:1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("are new for a new attempt and for another step", func(t *testing.T) {
		keys := map[string]bool{}
		for _, o := range []Operation{op, op.NextAttempt(), op.NextAttempt().NextAttempt(), op.AtStep(StepUpgrade), op.NextAttempt().AtStep(StepFlag)} {
			keys[o.ProviderKey()] = true
		}
		if len(keys) != 5 {
			t.Errorf("got %v", keys)
		}
	})
	t.Run("stay the same through repeats", func(t *testing.T) {
		first := op.Attempted(10)
		again := first.Attempted(20)
		if again.AttemptedAt != 10 || again.ProviderKey() != op.ProviderKey() {
			t.Errorf("got %+v", again)
		}
		if charged := first.AtStep(StepUpgrade).Attempted(10).Attempted(20); charged.AttemptedAt != 20 {
			t.Errorf("a call that charges was last sent at %d", charged.AttemptedAt)
		}
		if fresh := again.NextAttempt().Attempted(30); fresh.AttemptedAt != 30 {
			t.Errorf("got %+v", fresh)
		}
	})
	t.Run("fit the provider", func(t *testing.T) {
		long := op.AtStep(StepSchedule)
		long.Attempt = 1 << 30
		if key := long.ProviderKey(); len(key) > 255 || strings.TrimSpace(key) != key {
			t.Errorf("got %q", key)
		}
	})
}

func TestFingerprints(t *testing.T) {
	t.Run("never change: they are stored", func(t *testing.T) {
		for want, got := range map[string]Fingerprint{
			"f846481b417f846a": ChangeRequest{Identity: "ada", PlanKey: "pro"}.Fingerprint(),
			"9c995d16ea7340be": CancelRequest{"ada", true}.Fingerprint(),
			"b4d44b91d5cb3621": CheckoutRequest{"ada", "pro", "https://a.example", "https://b.example"}.Fingerprint(),
			"14bb65f9a34f922f": TopUpRequest{"ada", "tokens", 5, 1000, "usd", "https://a.example", "https://b.example"}.Fingerprint(),
		} {
			if hex.EncodeToString(got[:8]) != want {
				t.Errorf("got %x, want %s", got[:8], want)
			}
		}
	})
	t.Run("tell an op's own request from another", func(t *testing.T) {
		op := Operation{Fingerprint: ChangeRequest{Identity: "ada", PlanKey: "pro"}.Fingerprint()}
		wantFault(t, op.CheckFingerprint(ChangeRequest{Identity: "ada", PlanKey: "pro"}.Fingerprint()), "")
		wantFault(t, op.CheckFingerprint(ChangeRequest{Identity: "ada", PlanKey: "basic"}.Fingerprint()), fault.IdempotencyConflict)
		wantFault(t, op.CheckFingerprint(ChangeRequest{Identity: "bob", PlanKey: "pro"}.Fingerprint()), fault.IdempotencyConflict)
		wantFault(t, op.CheckFingerprint(CancelRequest{"ada", true}.Fingerprint()), fault.IdempotencyConflict)
	})
}

// No two requests that differ have one fingerprint, wherever the parts are cut.
func TestFingerprintsDiffer(t *testing.T) {
	text := rapid.StringMatching(`[ab]{0,3}`)
	request := rapid.Custom(func(t *rapid.T) TopUpRequest {
		return TopUpRequest{
			Identity: text.Draw(t, "identity"), CreditKey: text.Draw(t, "credit"),
			Amount: metering.Amount(rapid.Uint64Range(0, 12).Draw(t, "amount")), AmountCents: rapid.Int64Range(0, 12).Draw(t, "cents"),
			Currency: text.Draw(t, "currency"), SuccessURL: text.Draw(t, "success"), CancelURL: text.Draw(t, "cancel"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := request.Draw(t, "a"), request.Draw(t, "b")
		if (a == b) != (a.Fingerprint() == b.Fingerprint()) {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}
