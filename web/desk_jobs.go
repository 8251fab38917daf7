package web

import (
	"purser/store"
	"purser/tenancy"
	"purser/views/page"
)

// maxJobs is how many failing jobs the page lists.
const maxJobs = 100

// jobWords say what a job does.
var jobWords = map[store.WorkKind]string{
	store.WorkPlan:         "Sync a plan to the payment provider",
	store.WorkOp:           "Complete a change, checkout or refund",
	store.WorkFree:         "Renew a free subscription",
	store.WorkArchive:      "Archive an old price",
	store.WorkSession:      "Refresh a checkout",
	store.WorkSubscription: "Refresh a subscription",
	store.WorkInvoice:      "Refresh an invoice",
	store.WorkCharge:       "Refresh a charge and its refunds",
	store.WorkRefund:       "Refresh a refund",
	store.WorkDispute:      "Refresh a dispute",
	store.WorkSchedule:     "Refresh a subscription schedule",
	store.WorkCustomer:     "Remove a deleted customer",
	store.WorkEvents:       "Recover missed webhooks",
	store.WorkSweep:        "Reconcile with the payment provider",
	store.WorkPrune:        "Delete expired data",
}

func (s *Site) jobs(v *visit) (answer, error) {
	found, err := v.tenant().FailingWork(v.context, maxJobs+1)
	if err != nil {
		return answer{}, err
	}
	view := page.JobList{Frame: v.frame("Failing jobs", "overview")}
	if view.More = len(found) > maxJobs; view.More {
		found = found[:maxJobs]
	}
	if v.may(tenancy.SubscriptionsWrite) {
		view.Retry = v.appPath("jobs", "retry")
	}
	for _, w := range found {
		row := page.JobRow{
			Title: jobWords[w.Kind], Kind: string(w.Kind), Object: w.Object, Error: w.LastError, Tries: w.Tries, Since: w.FailingSince,
		}
		if !w.Stopped() {
			row.NextTry = w.DueAt
		}
		view.Jobs = append(view.Jobs, row)
	}
	return show(page.Jobs(view)), nil
}

func (s *Site) retryJob(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	if err := v.tenant().RetryWork(v.context, store.WorkKind(f.text("kind")), f.raw("object"), v.now()); err != nil {
		return answer{}, err
	}
	v.wakeCashier()
	return v.done(v.appPath("jobs"), "Retrying the job.")
}
