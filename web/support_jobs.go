package web

import (
	"purser/store"
	"purser/tenancy"
	supportpage "purser/views/page/support"
)

// maxJobs is how many failing jobs the page lists.
const maxJobs = 100

// jobWords describe the kinds of jobs.
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

func (s *Site) jobs(req *request) (response, error) {
	found, err := req.tenant().FailingJobs(req.context, maxJobs+1)
	if err != nil {
		return response{}, err
	}
	view := supportpage.JobList{Frame: req.frame("Failing jobs", "overview")}
	if view.More = len(found) > maxJobs; view.More {
		found = found[:maxJobs]
	}
	if req.may(tenancy.SubscriptionsWrite) {
		view.Retry = req.appPath("jobs", "retry")
	}
	for _, w := range found {
		row := supportpage.JobRow{
			Title: jobWords[w.Kind], Kind: string(w.Kind), Object: w.Object, Error: w.LastError, Tries: w.Tries, Since: w.FailingSince,
		}
		if !w.Stopped() {
			row.NextTry = w.DueAt
		}
		view.Jobs = append(view.Jobs, row)
	}
	return show(supportpage.Jobs(view)), nil
}

func (s *Site) retryJob(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if err := req.tenant().RetryJobNow(req.context, store.JobKind(f.text("kind")), f.raw("object"), req.now()); err != nil {
		return response{}, err
	}
	notifyCashier(req)
	return req.done(req.appPath("jobs"), "Retrying the job.")
}
