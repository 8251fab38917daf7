package web

import (
	"purser/store"
	"purser/tenancy"
	"purser/views/page"
)

// maxJobs is how many failing jobs the page lists.
const maxJobs = 100

// jobWords say what a job does.
var jobWords = map[store.JobKind]string{
	store.JobPlan:         "Sync a plan to the payment provider",
	store.JobOperation:    "Complete a change, checkout or refund",
	store.JobFree:         "Renew a free subscription",
	store.JobArchive:      "Archive an old price",
	store.JobSession:      "Refresh a checkout",
	store.JobSubscription: "Refresh a subscription",
	store.JobInvoice:      "Refresh an invoice",
	store.JobCharge:       "Refresh a charge and its refunds",
	store.JobRefund:       "Refresh a refund",
	store.JobDispute:      "Refresh a dispute",
	store.JobSchedule:     "Refresh a subscription schedule",
	store.JobCustomer:     "Remove a deleted customer",
	store.JobEvents:       "Recover missed webhooks",
	store.JobReconcile:    "Reconcile with the payment provider",
	store.JobPrune:        "Delete expired data",
}

func (s *Site) jobs(v *visit) (answer, error) {
	found, err := v.tenant().FailingJobs(v.context, maxJobs+1)
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
	if err := v.tenant().RetryJobNow(v.context, store.JobKind(f.text("kind")), f.raw("object"), v.now()); err != nil {
		return answer{}, err
	}
	v.wakeCashier()
	return v.done(v.appPath("jobs"), "Retrying the job.")
}
