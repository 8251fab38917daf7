package cashier_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/payments/cashier"
	"purser/store/people"
	"purser/store/queue"
	"purser/tenancy"
)

// stuck is a node in the middle of a look at ada's subscription, whose leases run
// out after a time. It goes on when the test says so, ends without an error, and
// tells what it has logged.
func (r *harness) stuck(lease time.Duration, change ...func(*cashier.Options)) (goOn func() (log string)) {
	r.Helper()
	id := r.subscription().ProviderID
	way := slow{"/subscriptions/" + id, make(chan struct{}), make(chan struct{})}
	var log bytes.Buffer
	node := r.newCashier(append(change, func(o *cashier.Options) {
		o.SandboxTransport, o.Log = way, slog.New(slog.NewTextHandler(&log, nil))
	})...)
	node.SetLease(lease)
	r.check(r.store.Queue(r.scope).Enqueue(r.Context(), queue.Job{Kind: queue.JobSubscription, Object: id}))
	ended := make(chan error)
	go func() { ended <- node.DrainAll(r.Context(), r.app.ID) }()
	<-way.arrived
	return func() string {
		r.Helper()
		close(way.goOn)
		r.check(<-ended)
		return log.String()
	}
}

// wrongBy is a node's clock that is wrong by so much.
func (r *harness) wrongBy(hours int) func(*cashier.Options) {
	return func(o *cashier.Options) {
		o.Now = func() time.Time { return r.clock().Add(time.Duration(hours) * time.Hour) }
	}
}

func TestWhoMayTalkDoesNotDependOnANodesClock(t *testing.T) {
	const lasting, expired = 5 * time.Minute, time.Millisecond
	for _, c := range []struct {
		claim         string
		holder, asker int // hours by which their clocks are wrong
		lease         time.Duration
		want          fault.Code
	}{
		{"a node that is ahead takes no lease from its holder", 0, 1, lasting, fault.OperationInProgress},
		{"a node that is behind gets one that has run out", 0, -1, expired, ""},
		{"a holder that is behind keeps its lease", -1, 0, lasting, fault.OperationInProgress},
		{"a holder that was ahead and died delays the next one no longer", 1, 0, expired, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			r := shop(t)
			r.subscribe("basic", cardPays)
			goOn := r.stuck(c.lease, r.wrongBy(c.holder))
			initiator := r.newCashier(r.wrongBy(c.asker))
			if c.want != "" {
				initiator.SetLimits(time.Nanosecond, 100) // one attempt at the lease, and no wait
			}
			_, err := initiator.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, newKey())
			if c.want != "" && !fault.Is(err, c.want) || c.want == "" && err != nil {
				t.Errorf("who asks is told %v, want %q", err, c.want)
			}
			if shutOut := strings.Contains(goOn(), queue.ErrFenced.Error()); shutOut != (c.want == "") {
				t.Errorf("the holder was shut out: %v", shutOut)
			}
		})
	}
}

// countingTransport counts the requests to a path.
type countingTransport struct {
	calls *atomic.Int64
	path  string
}

func (c countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, c.path) {
		c.calls.Add(1)
	}
	return http.DefaultTransport.RoundTrip(request)
}

func TestAJobIsLeftToTheNodeThatRunsIt(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	id := r.subscription().ProviderID
	goOn := r.stuck(5 * time.Minute)
	r.draft("max", 9900)
	var calls atomic.Int64
	other := r.newCashier(func(o *cashier.Options) { o.SandboxTransport = countingTransport{&calls, "/subscriptions/" + id} })
	drained := make(chan error)
	go func() { drained <- other.DrainAll(t.Context(), r.app.ID) }()
	r.eventually("the other node runs the next job", func() bool {
		return r.readPlan("max").Sync.Status == billing.SyncDone
	})
	goOn()
	r.check(<-drained)
	if n := calls.Load(); n != 0 {
		t.Errorf("the other node read the subscription %d times", n)
	}
}

// second is another application, whose provider is the same sandbox.
func (r *harness) second() tenancy.Scope {
	r.Helper()
	org := must[tenancy.Organization](r)(tenancy.NewOrganization(ids.New(), "Org "+ids.New().String(), r.now()))
	app := must[tenancy.Application](r)(tenancy.NewApplication(ids.New(), org, "App", false, r.now()))
	made := must[tenancy.Application](r)(r.store.Directory().ProvisionIn(r.Context(), people.OrgRef{Name: org.Name}, org, app))
	r.secondAccount = made.ID
	return made.Scope()
}

func TestAStuckJobKeepsNoOtherApplicationWaiting(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	id := r.subscription().ProviderID
	way := slow{"/subscriptions/" + id, make(chan struct{}), make(chan struct{})}
	node := r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
	r.check(r.store.Queue(r.scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobSubscription, Object: id}))
	stuck := make(chan error)
	go func() { stuck <- node.DrainAll(t.Context(), r.app.ID) }()
	<-way.arrived
	other := r.second()
	draft := billing.PlanDraft{Key: "basic", Name: "Basic", Active: true, Price: billing.Price{AmountCents: 1000, Currency: "usd", Interval: billing.Month}}
	_, err := r.store.App(other).CreatePlan(t.Context(), draft, func(c billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(ids.New(), draft, c, r.now())
	})
	r.check(err)
	r.check(node.DrainAll(t.Context(), other.AppID))
	if plan := must[billing.Plan](r)(r.store.App(other).Plan(t.Context(), "basic")); plan.Sync.Status != billing.SyncDone {
		t.Errorf("the other application's plan is %s", plan.Sync.Status)
	}
	close(way.goOn)
	r.check(<-stuck)
}
