package billing

import (
	"testing"

	"purser/metering"
)

func TestTransitionsOfSubscriptions(t *testing.T) {
	t.Parallel()
	active := Subscription{Begun: true, Status: metering.StatusActive, Period: metering.Period{Start: 100, End: 200}, Terms: Terms{PlanKey: "pro", PriceID: "price_1"}}
	with := func(change func(*Subscription)) Subscription {
		s := active
		change(&s)
		return s
	}
	waiting := with(func(s *Subscription) { s.Begun, s.Status = false, metering.StatusIncomplete })
	late := with(func(s *Subscription) { s.Status = metering.StatusPastDue })
	ended := with(func(s *Subscription) { s.Status = metering.StatusCanceled })
	for name, c := range map[string]struct {
		before *Subscription
		after  Subscription
		want   Transition
	}{
		"a purchase that is not paid":       {nil, waiting, Unchanged},
		"a first payment":                   {&waiting, active, Started},
		"a free plan":                       {nil, active, Started},
		"the same again":                    {&active, active, Unchanged},
		"a duplicate":                       {nil, with(func(s *Subscription) { s.Duplicate = true }), Unchanged},
		"a new period":                      {&active, with(func(s *Subscription) { s.Period = metering.Period{Start: 200, End: 300} }), Renewed},
		"a new period on another plan":      {&active, with(func(s *Subscription) { s.Period.Start, s.Terms.PlanKey = 200, "max" }), Renewed},
		"a failed payment":                  {&active, late, PaymentFailed},
		"a second failure":                  {&late, with(func(s *Subscription) { s.Status = metering.StatusUnpaid }), Updated},
		"a payment at last":                 {&late, active, Updated},
		"another plan":                      {&active, with(func(s *Subscription) { s.Terms.PlanKey = "max" }), Updated},
		"a scheduled cancellation":          {&active, with(func(s *Subscription) { s.CancelAtPeriodEnd = true }), Updated},
		"a scheduled downgrade":             {&active, with(func(s *Subscription) { s.Scheduled = &ScheduledChange{} }), Updated},
		"the end":                           {&late, ended, Ended},
		"what has ended":                    {&ended, ended, Unchanged},
		"the end of one that never began":   {&waiting, with(func(s *Subscription) { s.Begun, s.Status = false, metering.StatusCanceled }), Unchanged},
		"an end that is reported for first": {nil, ended, Unchanged},
	} {
		if got := c.after.TransitionFrom(c.before); got != c.want {
			t.Errorf("%s is %q, want %q", name, got, c.want)
		}
	}
}
