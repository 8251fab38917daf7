package sandbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

// downgrade queues another price for the next period, as billing does.
func (r *harness) downgrade(s *stripe.Subscription, to *stripe.Price) *stripe.SubscriptionSchedule {
	r.Helper()
	schedule := ok[*stripe.SubscriptionSchedule](r)(r.api.SubscriptionSchedules.New(&stripe.SubscriptionScheduleParams{FromSubscription: stripe.String(s.ID)}))
	now := schedule.Phases[0]
	return ok[*stripe.SubscriptionSchedule](r)(r.api.SubscriptionSchedules.Update(schedule.ID, &stripe.SubscriptionScheduleParams{
		EndBehavior: stripe.String("release"), ProrationBehavior: stripe.String("none"),
		Phases: []*stripe.SubscriptionSchedulePhaseParams{
			{
				StartDate: stripe.Int64(now.StartDate), EndDate: stripe.Int64(now.EndDate), ProrationBehavior: stripe.String("none"),
				Items: []*stripe.SubscriptionSchedulePhaseItemParams{{Price: stripe.String(now.Items[0].Price.ID), Quantity: stripe.Int64(now.Items[0].Quantity)}},
			},
			{
				Iterations: stripe.Int64(1), ProrationBehavior: stripe.String("none"),
				Items: []*stripe.SubscriptionSchedulePhaseItemParams{{Price: stripe.String(to.ID), Quantity: stripe.Int64(1)}},
			},
		},
	}))
}

func TestSchedule(t *testing.T) {
	t.Parallel()

	t.Run("turns the subscription at its renewal, and lets it go after a period", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s, small := r.subscribe(r.price(9900), cardPays), r.price(2900)
		r.events()
		schedule := r.downgrade(s, small)
		r.wantEvents("subscription_schedule.updated")
		if got := r.subscription(s.ID); got.Schedule.ID != schedule.ID || got.Items.Data[0].Price.UnitAmount != 9900 {
			t.Errorf("queued on %+v", got)
		}
		if schedule.Phases[1].StartDate != s.CurrentPeriodEnd || schedule.CurrentPhase.EndDate != s.CurrentPeriodEnd {
			t.Errorf("planned %+v", schedule)
		}
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0))
		r.wantEvents("subscription_schedule.updated", "subscription.updated")
		turned := r.subscription(s.ID)
		if turned.Items.Data[0].Price.ID != small.ID || turned.CurrentPeriodStart != s.CurrentPeriodEnd {
			t.Errorf("turned to %+v", turned)
		}
		r.advance(time.Hour)
		r.wantEvents("invoice.paid")
		if got := r.subscription(s.ID).LatestInvoice; got.AmountPaid != 2900 || got.BillingReason != "subscription_cycle" {
			t.Errorf("renewed for %d, %s", got.AmountPaid, got.BillingReason)
		}
		r.advanceTo(time.Unix(turned.CurrentPeriodEnd, 0))
		r.wantEvents("subscription_schedule.released", "subscription.updated")
		after := r.subscription(s.ID)
		if after.Schedule != nil || after.Items.Data[0].Price.ID != small.ID {
			t.Errorf("after %+v", after)
		}
		gone := ok[*stripe.SubscriptionSchedule](t)(r.api.SubscriptionSchedules.Get(schedule.ID, nil))
		if gone.Status != "released" || gone.ReleasedSubscription.ID != s.ID {
			t.Errorf("released %+v", gone)
		}
	})

	t.Run("to another interval moves the anchor to the turn", func(t *testing.T) {
		t.Parallel()
		r := startOn(t, "2026-01-31")
		s := r.subscribe(r.price(29000, yearly), cardPays)
		r.downgrade(s, r.price(2900))
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0))
		got := r.subscription(s.ID)
		if got.BillingCycleAnchor != s.CurrentPeriodEnd || time.Unix(got.CurrentPeriodEnd, 0).UTC().Format(time.DateOnly) != "2027-02-28" {
			t.Errorf("the period ends %s", time.Unix(got.CurrentPeriodEnd, 0).UTC())
		}
	})

	t.Run("can be released before, once", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(9900), cardPays)
		schedule := r.downgrade(s, r.price(2900))
		r.events()
		ok[*stripe.SubscriptionSchedule](t)(r.api.SubscriptionSchedules.Release(schedule.ID, nil))
		r.wantEvents("subscription_schedule.released", "subscription.updated")
		_, err := r.api.SubscriptionSchedules.Release(schedule.ID, nil)
		wantRefusal(t, err, http.StatusBadRequest, "", "`released` status")
		_, err = r.api.SubscriptionSchedules.Update(schedule.ID, &stripe.SubscriptionScheduleParams{EndBehavior: stripe.String("cancel")})
		wantRefusal(t, err, http.StatusBadRequest, "", "`released` status")
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(time.Hour))
		if got := r.subscription(s.ID).LatestInvoice.AmountPaid; got != 9900 {
			t.Errorf("renewed for %d", got)
		}
	})

	t.Run("owns the cancellation", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(9900), cardPays)
		r.downgrade(s, r.price(2900))
		_, err := r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(true)})
		wantRefusal(t, err, http.StatusBadRequest, "", "managed by the subscription schedule")
		_, err = r.upgrade(s, r.price(19900))
		wantRefusal(t, err, http.StatusBadRequest, "", "release")
	})

	t.Run("refuses what Stripe refuses", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(9900), cardPays)
		_, err := r.api.SubscriptionSchedules.New(&stripe.SubscriptionScheduleParams{FromSubscription: stripe.String(s.ID), EndBehavior: stripe.String("release")})
		wantRefusal(t, err, http.StatusBadRequest, "", "any other parameter")
		schedule := r.downgrade(s, r.price(2900))
		_, err = r.api.SubscriptionSchedules.New(&stripe.SubscriptionScheduleParams{FromSubscription: stripe.String(s.ID)})
		wantRefusal(t, err, http.StatusBadRequest, "", "already attached")
		_, err = r.api.SubscriptionSchedules.Update(schedule.ID, &stripe.SubscriptionScheduleParams{Phases: []*stripe.SubscriptionSchedulePhaseParams{
			{StartDate: stripe.Int64(s.CurrentPeriodStart)},
		}})
		wantRefusal(t, err, http.StatusBadRequest, "parameter_missing", "items")
	})

	t.Run("ends with its subscription", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(9900), cardPays)
		r.downgrade(s, r.price(2900))
		r.events()
		ok[*stripe.Subscription](t)(r.api.Subscriptions.Cancel(s.ID, nil))
		r.wantEvents("subscription_schedule.canceled", "subscription.deleted")
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()

	t.Run("at the end of the period, unless it is taken back", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		set := func(cancel bool) *stripe.Subscription {
			return ok[*stripe.Subscription](t)(r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(cancel)}))
		}
		r.events()
		if got := set(true); !got.CancelAtPeriodEnd || got.CancelAt != s.CurrentPeriodEnd || got.CanceledAt == 0 || got.Status != "active" {
			t.Errorf("set to %+v", got)
		}
		if got := set(false); got.CancelAtPeriodEnd || got.CancelAt != 0 || got.CanceledAt != 0 {
			t.Errorf("taken back to %+v", got)
		}
		r.wantEvents("subscription.updated", "subscription.updated")
		r.advance(32 * day)
		r.wantEvents("subscription.updated", "invoice.paid")
		s = r.subscription(s.ID)
		set(true)
		r.events()
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0))
		r.wantEvents("subscription.deleted")
		if got := r.subscription(s.ID); got.Status != "canceled" || got.EndedAt != s.CurrentPeriodEnd {
			t.Errorf("ended as %+v", got)
		}
		_, err := r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(false)})
		wantRefusal(t, err, http.StatusBadRequest, "", "canceled subscription")
		_, err = r.api.Subscriptions.Cancel(s.ID, nil)
		wantRefusal(t, err, http.StatusNotFound, "resource_missing", "No such subscription")
	})

	t.Run("at a date, and back with that parameter alone", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		ok[*stripe.Subscription](t)(r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAt: stripe.Int64(s.CurrentPeriodEnd)}))
		back := &stripe.SubscriptionParams{}
		back.AddExtra("cancel_at", "")
		both := &stripe.SubscriptionParams{CancelAtPeriodEnd: stripe.Bool(false)}
		both.AddExtra("cancel_at", "")
		_, err := r.api.Subscriptions.Update(s.ID, both)
		wantRefusal(t, err, http.StatusBadRequest, "", "Please pass in only one")
		if got := ok[*stripe.Subscription](t)(r.api.Subscriptions.Update(s.ID, back)); got.CancelAt != 0 {
			t.Errorf("still cancels at %d", got.CancelAt)
		}
		ok[*stripe.Subscription](t)(r.api.Subscriptions.Update(s.ID, &stripe.SubscriptionParams{CancelAt: stripe.Int64(s.CurrentPeriodEnd)}))
		r.events()
		r.advance(40 * day)
		r.wantEvents("subscription.deleted")
	})

	t.Run("at once leaves nothing that can be charged", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		s := r.subscribe(r.price(2900), cardPays)
		r.advanceTo(time.Unix(s.CurrentPeriodEnd, 0).Add(time.Minute))
		r.events()
		got := ok[*stripe.Subscription](t)(r.api.Subscriptions.Cancel(s.ID, &stripe.SubscriptionCancelParams{Prorate: stripe.Bool(false), InvoiceNow: stripe.Bool(false)}))
		if got.Status != "canceled" {
			t.Errorf("it is %s", got.Status)
		}
		r.wantEvents("subscription.deleted")
		r.advance(60 * day)
		r.wantEvents()
	})
}
