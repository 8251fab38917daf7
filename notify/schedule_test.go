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
		p := Progress{}
		works := random.IntN(2) == 0 // for others
		now := start
		for {
			p.Attempts++
			v := Judge(p, Result{Status: []int{0, 302, 404, 429, 500}[random.IntN(5)]}, now, random.Uint64())
			if v.FailingSince == 0 || v.FailingSince > now || p.FailingSince != 0 && v.FailingSince != p.FailingSince {
				t.Fatalf("seed %d: failing since %d at %d", seed, v.FailingSince, now)
			}
			p.FailingSince, p.Refusals, p.TriedBefore = v.FailingSince, v.Refusals, now
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

// outages are the times at which an endpoint goes down and comes back, in turn, each shorter
// than what pauses it.
type outages []int64

// before returns the last time at or before now at which the endpoint accepted something,
// of the times at which it is sent something, and how many outages have begun.
func (o outages) before(now, start, interval int64) (accepted int64, works bool, begun int) {
	isUp := func(at int64) bool {
		begun = 0
		for begun < len(o) && o[begun] <= at {
			begun++
		}
		return begun%2 == 0
	}
	for at := now - (now-start)%interval; at > start && accepted == 0; at -= interval {
		if isUp(at) {
			accepted = at
		}
	}
	works = isUp(now)
	return accepted, works, (begun + 1) / 2
}

// What is tried during an outage says nothing about a delivery: when the endpoint works
// again, it has its attempts.
func TestADeliveryFailsOnlyByAttemptsAtAnEndpointThatWorks(t *testing.T) {
	t.Parallel()
	const start, hour int64 = 1_800_000_000_000, 3_600_000
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 4))
		var down outages
		for at := start + random.Int64N(48*hour); len(down) < 20; {
			length := hour + random.Int64N(95*hour)
			down = append(down, at, at+length)
			at += length + hour + random.Int64N(200*hour)
		}
		interval := 60_000 + random.Int64N(2*hour) // between deliveries that are accepted
		p, due, tried := Progress{}, start, 0      // tried while it works
		for {
			now := due
			if random.IntN(4) == 0 {
				now += random.Int64N(3 * hour) // others were before it
			}
			accepted, works, begun := down.before(now, start, interval)
			if works {
				tried++
			}
			if accepted > p.SucceededAt {
				p.SucceededAt = accepted
				if accepted >= p.TriedBefore {
					p.FailingSince = 0
				}
			}
			p.Attempts++
			v := Judge(p, Result{Status: 500}, now, random.Uint64())
			if v.Refusals > p.Refusals && accepted < p.TriedBefore {
				t.Fatalf("seed %d: attempt %d counts, and the endpoint accepted nothing since the one before", seed, p.Attempts)
			}
			if v.Status == Failed {
				if tried+begun < MaxAttempts-1 {
					t.Fatalf("seed %d: given up after %d attempts, %d of them while the endpoint worked, and %d outages", seed, p.Attempts, tried, begun)
				}
				break
			}
			if v.Pause != "" || now-start > 120*24*hour {
				t.Fatalf("seed %d: %+v after %d attempts in %v", seed, v, p.Attempts, time.Duration(now-start)*time.Millisecond)
			}
			p.FailingSince, p.Refusals, p.TriedBefore, due = v.FailingSince, v.Refusals, now, v.DueAt
		}
	}
}

func TestAnswersDecideWhatFollows(t *testing.T) {
	t.Parallel()
	const now int64 = 1_800_000_000_000
	failing := Progress{Attempts: 2, TriedBefore: now - 500, FailingSince: now - 500, SucceededAt: now - 20_000}
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
	long := Progress{Attempts: 9, FailingSince: now - PauseAfter.Milliseconds(), Idle: 1}
	if v := Judge(long, Result{}, now, 7); v.Pause != "" || v.FailingSince != long.FailingSince+1 {
		t.Errorf("a millisecond less than five days: %+v", v)
	}
	long.Idle = 2 * PauseAfter.Milliseconds() // an earlier time of a clock
	if v := Judge(long, Result{}, now, 7); v.FailingSince != now {
		t.Errorf("longer without an attempt than it fails: %+v", v)
	}
	if long.Idle = 0; Judge(long, Result{}, now, 7).Reason != PauseFailing {
		t.Error("five days are not enough")
	}
	if Concurrent(0) != 8 || Concurrent(now) != 1 {
		t.Error("an endpoint that recovers gets one at a time")
	}
}
