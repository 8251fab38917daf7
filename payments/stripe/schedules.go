package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v79"
)

// CreateSchedule puts a subscription under a schedule that changes nothing yet. Stripe
// accepts no other parameter together with from_subscription.
func (c *Client) CreateSchedule(ctx context.Context, key, subscriptionID string) (id string, err error) {
	made, err := c.api.SubscriptionSchedules.New(&sdk.SubscriptionScheduleParams{Params: keyed(ctx, key), FromSubscription: sdk.String(subscriptionID)})
	if err != nil {
		return "", problem(err)
	}
	return made.ID, nil
}

// SetPhases makes a schedule change the price at the renewal and release the
// subscription an interval later. An update replaces all phases, so the current one is
// sent again with its dates, prices, trial and payment method, which pays for the next
// one too. Discounts and tax rates that were set on the subscription at Stripe are not
// part of it.
func (c *Client) SetPhases(ctx context.Context, key, scheduleID, price string) error {
	schedule, err := c.api.SubscriptionSchedules.Get(scheduleID, &sdk.SubscriptionScheduleParams{Params: params(ctx)})
	if err != nil {
		return problem(err)
	}
	if len(schedule.Phases) == 0 {
		return &Problem{Kind: Refused, Message: "The schedule " + scheduleID + " has no phase."}
	}
	running := schedule.Phases[0]
	for _, phase := range schedule.Phases {
		if at := schedule.CurrentPhase; at != nil && phase.StartDate == at.StartDate {
			running = phase
		}
	}
	same := &sdk.SubscriptionSchedulePhaseParams{
		StartDate: sdk.Int64(running.StartDate), EndDate: sdk.Int64(running.EndDate),
		Items: sameItems(running), ProrationBehavior: sdk.String("none"),
	}
	if running.TrialEnd > running.StartDate { // an earlier trial is over
		same.TrialEnd = sdk.Int64(running.TrialEnd)
	}
	if method := running.DefaultPaymentMethod; method != nil {
		same.DefaultPaymentMethod = sdk.String(method.ID)
	}
	_, err = c.api.SubscriptionSchedules.Update(scheduleID, &sdk.SubscriptionScheduleParams{
		Params:            keyed(ctx, key),
		EndBehavior:       sdk.String(string(sdk.SubscriptionScheduleEndBehaviorRelease)),
		ProrationBehavior: sdk.String("none"),
		Phases: []*sdk.SubscriptionSchedulePhaseParams{
			same,
			{
				Items:      []*sdk.SubscriptionSchedulePhaseItemParams{{Price: sdk.String(price), Quantity: sdk.Int64(1)}},
				Iterations: sdk.Int64(1), ProrationBehavior: sdk.String("none"), DefaultPaymentMethod: same.DefaultPaymentMethod,
			},
		},
	})
	return problem(err)
}

func sameItems(phase *sdk.SubscriptionSchedulePhase) []*sdk.SubscriptionSchedulePhaseItemParams {
	var items []*sdk.SubscriptionSchedulePhaseItemParams
	for _, item := range phase.Items {
		items = append(items, &sdk.SubscriptionSchedulePhaseItemParams{Price: sdk.String(priceID(item.Price)), Quantity: sdk.Int64(item.Quantity)})
	}
	return items
}

// ReleaseSchedule releases a subscription from its schedule. One that was released
// already counts as done.
func (c *Client) ReleaseSchedule(ctx context.Context, key, scheduleID string) error {
	_, err := c.api.SubscriptionSchedules.Release(scheduleID, &sdk.SubscriptionScheduleReleaseParams{Params: keyed(ctx, key)})
	if err = problem(err); !Is(err, Refused) {
		return err
	}
	schedule, getErr := c.api.SubscriptionSchedules.Get(scheduleID, &sdk.SubscriptionScheduleParams{Params: params(ctx)})
	if getErr != nil {
		return problem(getErr)
	}
	if schedule.Status != sdk.SubscriptionScheduleStatusActive && schedule.Status != sdk.SubscriptionScheduleStatusNotStarted {
		return nil
	}
	return err
}

// ScheduledSubscription returns the subscription of a schedule, also after its
// release.
func (c *Client) ScheduledSubscription(ctx context.Context, scheduleID string) (string, error) {
	schedule, err := c.api.SubscriptionSchedules.Get(scheduleID, &sdk.SubscriptionScheduleParams{Params: params(ctx)})
	if err != nil {
		return "", problem(err)
	}
	if schedule.Subscription != nil {
		return schedule.Subscription.ID, nil
	}
	if schedule.ReleasedSubscription != nil {
		return schedule.ReleasedSubscription.ID, nil
	}
	return "", nil
}
