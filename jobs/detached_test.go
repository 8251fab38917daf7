package jobs_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"purser/ids"
	"purser/jobs"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestAnOrganizationHasItsShareOfDetachedJobs(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	const most, perOrg, perApp, apps = 4, 2, 2, 5
	started, goOn := make(chan string, 100), make(chan struct{})
	var prepared atomic.Int64
	q := jobs.New(jobs.Options{Store: db, Lease: limit})
	q.Detach("webhooks", most, perOrg, perApp)
	q.Before("webhooks", func(context.Context, tenancy.Scope) error {
		prepared.Add(1)
		return nil
	})
	q.Register(kind, jobs.Handler{Lane: "webhooks", Timeout: limit, Run: func(_ context.Context, job jobs.Job) (int64, error) {
		started <- job.Object
		if strings.HasPrefix(job.Object, "hangs") {
			<-goOn
		}
		return 0, nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.RunNotified(ctx) }()

	name := "Org " + ids.New().String()
	for range apps {
		scope := newAppOf(t, db, name)
		enqueue(t, db, scope, "hangs 1", "hangs 2")
		q.Wake(scope, "webhooks")
	}
	for range perOrg {
		receive(t, started, "a job of the organization starts")
	}
	other := newApp(t, db)
	enqueue(t, db, other, "other")
	q.Wake(other, "webhooks")
	if got := receive(t, started, "a job of another organization starts"); got != "other" {
		t.Errorf("%s started, beyond the share of its organization", got)
	}
	// Each job that ends gives its slot to one application, which is not prepared again.
	close(goOn)
	for range 2*apps - perOrg {
		receive(t, started, "a job that waits starts")
	}
	stop()
	receive(t, ended, "the node stops")
	if got := prepared.Load(); got != apps+1 {
		t.Errorf("%d preparations for %d notified applications", got, apps+1)
	}
}
