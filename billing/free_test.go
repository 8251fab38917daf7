package billing

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"purser/metering"
)

func TestFreeSubscription(t *testing.T) {
	start := moment(t, "2024-01-31T10:00:00")
	s, granted := StartFreeSubscription(named("s"), "ada", free.Terms(), nil, start)

	t.Run("starts at once with its credits", func(t *testing.T) {
		if s.Status != metering.StatusActive || !s.Local() || s.Period != span(t, "2024-01-31T10:00:00", "2024-02-29T10:00:00") {
			t.Errorf("got %+v", s)
		}
		if total(granted) != 1 || granted[0].EntryKind() != metering.EntryGrant {
			t.Errorf("got %+v", granted)
		}
	})
	t.Run("does nothing before its period ends", func(t *testing.T) {
		if next, more := RenewFree(s, granted, s.Period.End-1); !reflect.DeepEqual(next, s) || more != nil {
			t.Errorf("got %+v, %+v", next, more)
		}
	})
	t.Run("grants at each turn that was missed, in order", func(t *testing.T) {
		next, more := RenewFree(s, granted, moment(t, "2024-04-30T10:00:00"))
		if next.Period != span(t, "2024-04-30T10:00:00", "2024-05-31T10:00:00") || total(more) != 3 {
			t.Fatalf("got %v, %+v", next.Period, more)
		}
		for i := 1; i < len(more); i++ {
			if more[i].Period.Start != more[i-1].Period.End {
				t.Errorf("%v follows %v", more[i].Period, more[i-1].Period)
			}
		}
		if again, twice := RenewFree(s, concat(granted, more), moment(t, "2024-04-30T10:00:00")); twice != nil || again.Period != next.Period {
			t.Errorf("a second run settles %+v", twice)
		}
	})
	t.Run("renews a bounded number of periods at once, and goes on", func(t *testing.T) {
		now := start + 40*365*day
		next, payments, rounds := s, granted, 0
		for next.Period.End <= now {
			var more []Payment
			next, more = RenewFree(next, payments, now)
			if len(more) > maxFreePeriods || len(more) == 0 {
				t.Fatalf("%d periods in one round", len(more))
			}
			payments = concat(payments, more)
			rounds++
		}
		if rounds < 2 || len(payments) != 1+12*40-1 {
			t.Errorf("%d periods in %d rounds", len(payments), rounds)
		}
	})
	t.Run("ends with its period when it was cancelled", func(t *testing.T) {
		order, err := DecideCancel(&s, true)
		if err != nil {
			t.Fatal(err)
		}
		next, more := RenewFree(s.Cancel(order), granted, s.Period.End+day)
		if !next.Ended() || next.EndedAt != s.Period.End || more != nil {
			t.Errorf("got %+v, %+v", next, more)
		}
	})
	t.Run("cancelled, it calls off what waits on it", func(t *testing.T) {
		waiting := s.Schedule(freeYear.Terms())
		waiting.Pending = &PendingChange{Target: pro.Terms(), ExpiresAt: s.Period.End}
		order, err := DecideCancel(&waiting, true)
		if err != nil {
			t.Fatal(err)
		}
		if left := waiting.Cancel(order); !left.CancelAtPeriodEnd || left.Scheduled != nil || left.Pending != nil {
			t.Errorf("got %+v", left)
		}
	})
	t.Run("shows the checkout that would replace it, the latest of two", func(t *testing.T) {
		first := Change{ID: named("1"), Kind: Checkout, Target: basic.Terms(), Replaces: s.ID, State: ChangePending, ExpiresAt: start + day}
		second := Change{ID: named("2"), Kind: Checkout, Target: pro.Terms(), Replaces: s.ID, State: ChangePending, ExpiresAt: start + day}
		for _, changes := range [][]Change{{first, second}, {second, first}} {
			if got := s.Awaiting(changes, start).Pending; got == nil || got.Target.PlanKey != "pro" {
				t.Errorf("got %+v", got)
			}
		}
		if got := s.Awaiting([]Change{first, second}, start+day).Pending; got != nil {
			t.Errorf("expired: %+v", got)
		}
	})
	t.Run("changes plans at its turn, and keeps its day", func(t *testing.T) {
		hobby := sold("hobby", 0, Month)
		hobby.Grants[0].Amount = 7
		queued := s.Schedule(hobby.Terms())
		if queued.Scheduled.EffectiveAt != s.Period.End {
			t.Errorf("it waits until %d", queued.Scheduled.EffectiveAt)
		}
		next, more := RenewFree(queued, granted, s.Period.End)
		if next.Terms.PlanKey != "hobby" || next.Scheduled != nil || total(more) != 7 || next.Period.End != moment(t, "2024-03-31T10:00:00") {
			t.Errorf("got %+v, %+v", next, more)
		}
		if stay, _ := RenewFree(queued.ClearChanges(), granted, s.Period.End); stay.Terms.PlanKey != "free" {
			t.Error("what was called off happened")
		}
	})
	t.Run("a longer interval counts from the turn", func(t *testing.T) {
		next, _ := RenewFree(s.Schedule(freeYear.Terms()), granted, s.Period.End)
		if next.Period != span(t, "2024-02-29T10:00:00", "2025-02-28T10:00:00") {
			t.Errorf("got %v", next.Period)
		}
	})
	t.Run("started again inside a granted period, it grants nothing until its own turn", func(t *testing.T) {
		again, more := StartFreeSubscription(named("t"), "ada", free.Terms(), granted, start+10*day)
		if !again.InUse() || len(more) != 1 || total(more) != 0 {
			t.Fatalf("got %+v", more)
		}
		if _, later := RenewFree(again, concat(granted, more), again.Period.End); total(later) != 1 {
			t.Errorf("the turn brings %+v", later)
		}
	})
	t.Run("a period whose grant was refused blocks no other", func(t *testing.T) {
		_, refused := StartFreeSubscription(named("t"), "ada", free.Terms(), granted, start+10*day)
		_, more := StartFreeSubscription(named("u"), "ada", free.Terms(), concat(granted, refused), s.Period.End+5*day)
		if total(more) != 1 {
			t.Errorf("got %+v", more)
		}
	})
	t.Run("a period that began before one that was granted is too late for its own", func(t *testing.T) {
		later := []Payment{{Free: true, PlanID: free.ID, Credits: []Grant{tokens(1)}, Period: metering.Period{Start: start + day, End: start + 31*day}}}
		if _, more := StartFreeSubscription(named("t"), "ada", free.Terms(), later, start); total(more) != 0 {
			t.Errorf("got %+v", more)
		}
	})
	t.Run("another free plan has a grant of its own", func(t *testing.T) {
		if _, more := StartFreeSubscription(named("t"), "ada", freeYear.Terms(), granted, start+10*day); total(more) != 1 {
			t.Errorf("got %+v", more)
		}
	})
	t.Run("started again after the granted period, it grants at once", func(t *testing.T) {
		if _, more := StartFreeSubscription(named("t"), "ada", free.Terms(), granted, s.Period.End); total(more) != 1 {
			t.Errorf("got %+v", more)
		}
	})
}

// However often one ends and starts again: in any month there is one grant.
func TestFreeGrantsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var payments []Payment
		now := rapid.Int64Range(0, 100*365*day).Draw(t, "start")
		for i := range rapid.IntRange(1, 6).Draw(t, "subscriptions") {
			s, more := StartFreeSubscription(named(string(rune('a'+i))), "ada", free.Terms(), payments, now)
			payments = concat(payments, more)
			now += rapid.Int64Range(0, 100*day).Draw(t, "life")
			_, more = RenewFree(s, payments, now)
			payments = concat(payments, more)
		}
		for i, a := range payments {
			for _, b := range payments[:i] {
				if a.Source == b.Source || len(a.Credits) > 0 && len(b.Credits) > 0 && overlap(a.Period, b.Period) {
					t.Fatalf("%+v and %+v were both granted", a, b)
				}
			}
		}
	})
}
