package support

import (
	"testing"

	"purser/billing"
	"purser/store/queue"
)

func TestAlertsHaveWordsForEachKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []billing.AlertKind{billing.UnknownPrice, billing.UnrequestedUpdate, billing.DuplicateSubscription, billing.AmountMismatch, billing.ActionRefused, billing.BalanceFull, billing.DebtFull, billing.BalanceSpent, billing.PaidLate, billing.KeyRefused, billing.SaleMissing} {
		if alertWords[kind].title == "" {
			t.Errorf("none for %s", kind)
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
