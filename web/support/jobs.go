package support

import (
	"purser/store/queue"
	"purser/tenancy"
	supportpage "purser/views/page/support"
	"purser/web/site"
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

func (s *Pages) jobs(req *site.Request) (site.Response, error) {
	found, err := req.Queue().FailingJobs(req.Context, maxJobs+1)
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.JobList{Frame: req.Frame("Failing jobs", "overview"), Retry: req.LinkIfPermitted(tenancy.SubscriptionsWrite, "jobs", "retry")}
	if view.More = len(found) > maxJobs; view.More {
		found = found[:maxJobs]
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
	return site.Show(supportpage.Jobs(view)), nil
}

func (s *Pages) retryJob(req *site.Request) (site.Response, error) {
	f := req.Form
	if err := req.Queue().RetryJobNow(req.Context, queue.JobKind(f.Text("kind")), f.Raw("object"), req.Now()); err != nil {
		return site.Response{}, err
	}
	req.NotifyCashier()
	return req.Done(req.AppPath("jobs"), "Retrying the job.")
}
