package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/store/queue"
	"purser/tenancy"
)

func TestFailingJobs(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support, admin := d.join(t, tenancy.Support), d.join(t, tenancy.Admin)
	says(t, support.get(t, d.appPath("jobs")), http.StatusOK, "No failing jobs")
	job := queue.Job{Kind: queue.JobCharge, Object: "ch_1"}
	noError(t, d.Queue().Enqueue(t.Context(), job))
	due, err := d.Queue().ClaimJobs(t.Context(), queue.ClaimInput{Kinds: []queue.JobKind{job.Kind}, Now: d.site.Now(), Most: 10})
	noError(t, err)
	noError(t, d.Queue().RetryJob(t.Context(), due.Jobs[0], "No such <b>charge</b>", queue.StoppedJob))

	t.Run("are led to from the overview", func(t *testing.T) {
		overview := support.get(t, d.appPath())
		says(t, overview, http.StatusOK, "1 background job keeps failing")
		if !strings.Contains(overview.body, `href="`+d.appPath("jobs")+`"`) {
			t.Error("no link leads to it")
		}
	})
	t.Run("say what fails, why, and when it is tried again", func(t *testing.T) {
		list := support.get(t, d.appPath("jobs"))
		says(t, list, http.StatusOK, "Refresh a charge and its refunds", "ch_1", "No such <b>charge</b>", "Stopped")
		if strings.Contains(list.body, "<b>charge") || strings.Contains(list.body, d.appPath("jobs", "retry")) {
			t.Error("an error is markup, or support is offered what it may not do")
		}
	})
	t.Run("are retried by who may, and that is in the audit log", func(t *testing.T) {
		retry, which := d.appPath("jobs", "retry"), url.Values{"kind": {"charge"}, "object": {"ch_1"}}
		if got := support.post(t, retry, which); got.status != http.StatusForbidden {
			t.Errorf("support: status %d", got.status)
		}
		if got := admin.post(t, retry, which); got.location != d.appPath("jobs") {
			t.Errorf("status %d", got.status)
		}
		if action, _, text := d.lastAction(t); action != "job.retry" || !strings.Contains(text, "No such") {
			t.Errorf("the log says %s: %s", action, text)
		}
		if failing, err := d.Queue().FailingJobs(t.Context(), 10); err != nil || len(failing) != 1 || failing[0].Stopped() {
			t.Errorf("the job is %+v, %v", failing, err)
		}
		if got := admin.post(t, retry, url.Values{"kind": {"charge"}, "object": {"ch_2"}}); got.status != http.StatusNotFound {
			t.Errorf("a job that is not there: status %d", got.status)
		}
	})
}
