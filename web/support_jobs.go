package web

import (
	"purser/store/queue"
	"purser/tenancy"
	supportpage "purser/views/page/support"
)

// maxJobs is how many failing jobs the page lists.
const maxJobs = 100

// jobWords describe the kinds of jobs.
var jobWords = map[queue.JobKind]string{
	queue.JobPlan:         "Sync a plan to the payment provider",
	queue.JobOperation:    "Complete a change, checkout or refund",
	queue.JobFree:         "Renew a free subscription",
	queue.JobArchive:      "Archive an old price",
	queue.JobSession:      "Refresh a checkout",
	queue.JobSubscription: "Refresh a subscription",
	queue.JobInvoice:      "Refresh an invoice",
	queue.JobCharge:       "Refresh a charge and its refunds",
	queue.JobRefund:       "Refresh a refund",
	queue.JobDispute:      "Refresh a dispute",
	queue.JobSchedule:     "Refresh a subscription schedule",
	queue.JobCustomer:     "Remove a deleted customer",
	queue.JobEvents:       "Recover missed webhooks",
	queue.JobReconcile:    "Reconcile with the payment provider",
	queue.JobPrune:        "Delete expired data",
	queue.JobIdentity:     "Finish a change of identity",
	queue.JobLabel:        "Update a customer at the payment provider",
	queue.JobDelivery:     "Send webhooks",
	queue.JobUsage:        "Add up usage",
}

func (s *Site) jobs(req *request) (response, error) {
	found, err := req.queue().FailingJobs(req.context, maxJobs+1)
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
	if err := req.queue().RetryJobNow(req.context, queue.JobKind(f.text("kind")), f.raw("object"), req.now()); err != nil {
		return response{}, err
	}
	req.notifyCashier()
	return req.done(req.appPath("jobs"), "Retrying the job.")
}
