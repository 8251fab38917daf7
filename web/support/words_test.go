package support

import (
	"testing"

	"purser/billing"
	"purser/metering"
	"purser/store/queue"
	supportpage "purser/views/page/support"
)

func TestAlertsHaveWordsForEachKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []billing.AlertKind{billing.UnknownPrice, billing.UnrequestedUpdate, billing.DuplicateSubscription, billing.AmountMismatch, billing.ActionRefused, billing.BalanceFull, billing.DebtFull, billing.BalanceSpent, billing.PaidLate, billing.KeyRefused, billing.SaleMissing} {
		if alertWords[kind].title == "" {
			t.Errorf("none for %s", kind)
		}
	}
}

func TestACancellationSaysWhenThePlanEnds(t *testing.T) {
	t.Parallel()
	const now = 1000
	for claim, c := range map[string]struct {
		row  supportpage.SubscriptionRow
		want bool
	}{
		"in its period":               {supportpage.SubscriptionRow{ProviderID: "sub_1", Status: metering.StatusActive, Period: metering.Period{End: now + 1}}, false},
		"at the end of its period":    {supportpage.SubscriptionRow{ProviderID: "sub_1", Status: metering.StatusActive, Period: metering.Period{End: now}}, true},
		"a free one, which renews":    {supportpage.SubscriptionRow{Status: metering.StatusActive, Period: metering.Period{End: now}}, false},
		"with an overdue payment":     {supportpage.SubscriptionRow{ProviderID: "sub_1", Status: metering.StatusPastDue, Period: metering.Period{End: now + 1}}, true},
		"with payments it gave up on": {supportpage.SubscriptionRow{ProviderID: "sub_1", Status: metering.StatusUnpaid, Period: metering.Period{End: now + 1}}, true},
	} {
		if got := endsNow(c.row, now); got != c.want {
			t.Errorf("%s: it ends now: %t", claim, got)
		}
	}
	for want, sub := range map[string]billing.Subscription{
		"The subscription has ended: its renewal was not paid.":     {Status: metering.StatusCanceled, CancelAtPeriodEnd: true},
		"The subscription ends at the end of the current period.":   {Status: metering.StatusActive, CancelAtPeriodEnd: true},
		"The cancellation was undone. The subscription will renew.": {Status: metering.StatusActive},
	} {
		if got := cancelMessage(sub); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestJobsHaveWordsForEachKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []queue.JobKind{
		queue.JobPlan, queue.JobOperation, queue.JobFree, queue.JobArchive, queue.JobSession, queue.JobSubscription, queue.JobInvoice, queue.JobCharge,
		queue.JobRefund, queue.JobDispute, queue.JobSchedule, queue.JobCustomer, queue.JobEvents, queue.JobReconcile, queue.JobPrune,
		queue.JobDelivery, queue.JobUsage,
	} {
		if jobWords[kind] == "" {
			t.Errorf("none for %s", kind)
		}
	}
}
