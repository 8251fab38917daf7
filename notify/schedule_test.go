package notify

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestScheduleGrowsToADay(t *testing.T) {
	t.Parallel()
	if len(schedule) != MaxAttempts {
		t.Errorf("%d delays for %d attempts", len(schedule), MaxAttempts)
	}
	for attempts := range MaxAttempts + 5 {
		want := schedule[min(attempts, MaxAttempts-1)]
		shortest, longest := want, want
		for random := range uint64(1000) {
			delay := Delay(attempts, random)
			shortest, longest = min(shortest, delay), max(longest, delay)
		}
		if shortest != want*8/10 || longest != want*12/10 {
			t.Errorf("after %d attempts the delay is %v to %v, not %v ± 20 %%", attempts, shortest, longest, want)
		}
	}
}

// A receiver that accepts nothing loses nothing: its deliveries stay pending until it is
// paused, however often each was tried.
func TestADeliveryFailsOnlyAtAnEndpointThatAcceptsOthers(t *testing.T) {
	t.Parallel()
	const start int64 = 1_800_000_000_000
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		p := Progress{CreatedAt: start}
		works := random.IntN(2) == 0 // for others
		now := start
		for {
			p.Attempts++
			v := Judge(p, Result{Status: []int{0, 302, 404, 429, 500}[random.IntN(5)]}, now, random.Uint64())
			if v.FailingSince == 0 || v.FailingSince > now || p.FailingSince != 0 && v.FailingSince != p.FailingSince {
				t.Fatalf("seed %d: failing since %d at %d", seed, v.FailingSince, now)
			}
			p.FailingSince = v.FailingSince
			if v.Status == Failed {
				if !works || p.Attempts < MaxAttempts {
					t.Fatalf("seed %d: given up after %d attempts at an endpoint that accepts others: %t", seed, p.Attempts, works)
				}
				break
			}
			if v.Pause != "" {
				if works || v.Reason != PauseFailing || v.Status != Pending || now-p.FailingSince < PauseAfter.Milliseconds() {
					t.Fatalf("seed %d: %+v at %d, failing since %d", seed, v, now, p.FailingSince)
				}
				break
			}
			if v.Status != Pending || v.DueAt <= now {
				t.Fatalf("seed %d: %+v at %d", seed, v, now)
			}
			now = v.DueAt
			if works {
				p.SucceededAt, p.FailingSince = now, 0
			}
		}
	}
}

func TestAnswersDecideWhatFollows(t *testing.T) {
	t.Parallel()
	const now int64 = 1_800_000_000_000
	failing := Progress{Attempts: 2, CreatedAt: now - 1000, FailingSince: now - 500, SucceededAt: now - 2000}
	for name, c := range map[string]struct {
		result Result
		check  func(Verdict) bool
	}{
		"200 is a success":      {Result{Status: 200}, func(v Verdict) bool { return v == Verdict{Status: Delivered, SucceededAt: now} }},
		"299 is a success":      {Result{Status: 299}, func(v Verdict) bool { return v.Status == Delivered }},
		"a redirect is none":    {Result{Status: 301}, func(v Verdict) bool { return v.Status == Pending && v.Pause == "" }},
		"410 disables":          {Result{Status: 410}, func(v Verdict) bool { return v.Status == Pending && v.Pause == Disabled && v.Reason == PauseGone }},
		"no answer is retried":  {Result{}, func(v Verdict) bool { return v.Status == Pending && v.FailingSince == now-500 }},
		"Retry-After counts":    {Result{Status: 429, RetryAfter: time.Hour}, func(v Verdict) bool { return v.DueAt == now+time.Hour.Milliseconds() }},
		"Retry-After is capped": {Result{Status: 503, RetryAfter: 1000 * time.Hour}, func(v Verdict) bool { return v.DueAt == now+MaxRetryAfter.Milliseconds() }},
		"Retry-After never shortens": {Result{Status: 503, RetryAfter: time.Second}, func(v Verdict) bool {
			return v.DueAt >= now+(4*time.Minute).Milliseconds()
		}},
	} {
		if v := Judge(failing, c.result, now, 7); !c.check(v) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if Concurrent(0) != 8 || Concurrent(now) != 1 {
		t.Error("an endpoint that recovers gets one at a time")
	}
}
