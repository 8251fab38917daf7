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
	store.WorkPlan:         "Send a plan to the payment provider",
	store.WorkOp:           "Finish a change, checkout or refund",
	store.WorkFree:         "Renew a free subscription",
	store.WorkArchive:      "Archive an old price",
	store.WorkSession:      "Read a checkout",
	store.WorkSubscription: "Read a subscription",
	store.WorkInvoice:      "Read an invoice",
	store.WorkCharge:       "Read a charge and its refunds",
	store.WorkRefund:       "Read a refund",
	store.WorkDispute:      "Read a dispute",
	store.WorkSchedule:     "Read a subscription schedule",
	store.WorkCustomer:     "Forget a deleted customer",
	store.WorkEvents:       "Look for missed webhooks",
	store.WorkSweep:        "Compare everything with the payment provider",
	store.WorkPrune:        "Delete what is no longer needed",
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
	return v.done(v.appPath("jobs"), "The job is being tried again.")
}
