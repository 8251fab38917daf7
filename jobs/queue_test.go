package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/store"
	"purser/store/people"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/tenancy"
)

const (
	kind  queue.JobKind = "test"
	other queue.JobKind = "test other"
	// limit is reached only by what never happens.
	limit = 5 * time.Minute
)

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// queuedJobs lists the jobs of an application, claimed or not, that were not given up.
func queuedJobs(t *testing.T, scope tenancy.Scope) (list []queue.Job) {
	t.Helper()
	text := storetest.Value[string](t, storetest.URL(t), `
		SELECT coalesce(jsonb_agg(jsonb_build_object('Kind', kind, 'Object', object, 'DueAt', due_at, 'Tries', tries)), '[]')::text
		FROM work_queue WHERE app_id = $1 AND due_at <= $2`, scope.AppID, int64(queue.StoppedJob))
	noError(t, json.Unmarshal([]byte(text), &list))
	return list
}

// newApp creates an application of an organization of its own.
func newApp(t *testing.T, db *store.Store) tenancy.Scope {
	t.Helper()
	return newAppOf(t, db, "Org "+ids.New().String())
}

// newAppOf creates an application of the organization with this name.
func newAppOf(t *testing.T, db *store.Store, name string) tenancy.Scope {
	t.Helper()
	now := time.Now().UnixMilli()
	org, err := tenancy.NewOrganization(ids.New(), name, now)
	noError(t, err)
	app, err := tenancy.NewApplication(ids.New(), org, "App "+ids.New().String(), false, now)
	noError(t, err)
	app, err = db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: name}, org, app)
	noError(t, err)
	return app.Scope()
}

// node is a queue with a handler for kind. Its clock stands still, so that no retry comes
// due while a test looks.
func node(db *store.Store, log *bytes.Buffer, run func(context.Context, jobs.Job) (int64, error)) *jobs.Queue {
	logger := slog.New(slog.DiscardHandler)
	if log != nil {
		logger = slog.New(slog.NewTextHandler(log, nil))
	}
	now := time.Now()
	q := jobs.New(jobs.Options{Store: db, Log: logger, Lease: limit, Now: func() time.Time { return now }})
	q.Register(kind, jobs.Handler{Run: run, Timeout: limit})
	return q
}

func enqueue(t *testing.T, db *store.Store, scope tenancy.Scope, objects ...string) {
	t.Helper()
	var list []queue.Job
	for _, object := range objects {
		list = append(list, queue.Job{Kind: kind, Object: object})
	}
	noError(t, db.Queue(scope).Enqueue(t.Context(), list...))
}

func receive[T any](t *testing.T, from <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(limit):
		t.Fatalf("it never came to be that %s", what)
	}
	return got
}

func TestNodesShareTheJobsOfAnApplication(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	scope := newApp(t, db)
	var mu sync.Mutex
	runs := map[string]int{}
	run := func(_ context.Context, job jobs.Job) (int64, error) {
		mu.Lock()
		defer mu.Unlock()
		if job.Scope != scope {
			t.Errorf("a job of %v came as one of %v", scope, job.Scope)
		}
		runs[job.Object]++
		return 0, nil
	}
	const number = 100
	for i := range number {
		enqueue(t, db, scope, fmt.Sprint(i))
	}
	var nodes sync.WaitGroup
	for range 3 {
		q := node(db, nil, run)
		nodes.Go(func() {
			if err := q.DrainAll(t.Context(), scope.AppID); err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
	for object, times := range runs {
		if times != 1 {
			t.Errorf("job %s ran %d times", object, times)
		}
	}
	if len(runs) != number {
		t.Errorf("%d of %d jobs ran", len(runs), number)
	}
}

func TestAJobGoesOnAsItsHandlerSays(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	now := time.Now().UnixMilli()
	for name, c := range map[string]struct {
		run       func(context.Context, jobs.Job) (int64, error)
		left      bool
		dueIn     time.Duration // at least, from now
		tries     int
		lastError string
		log       string
	}{
		"a job that succeeds is removed":       {run: func(context.Context, jobs.Job) (int64, error) { return 0, nil }},
		"a job that returns a time runs again": {run: func(context.Context, jobs.Job) (int64, error) { return now + time.Hour.Milliseconds(), nil }, left: true, dueIn: time.Hour},
		"a job that fails is retried":          {run: func(context.Context, jobs.Job) (int64, error) { return 0, errors.New("no answer") }, left: true, dueIn: 2 * time.Second, tries: 1, lastError: "no answer", log: "job failed, will retry"},
		"a failure says when to retry":         {run: fails(jobs.Failure{Err: errors.New("no"), Message: "busy", RetryAfter: time.Hour}), left: true, dueIn: time.Hour, tries: 1, lastError: "busy"},
		"a failure for good stops the job":     {run: fails(jobs.Failure{Err: errors.New("refused"), Stop: true}), left: true, dueIn: 1000 * time.Hour, tries: 1, lastError: "refused", log: "level=ERROR"},
		"a panic is a failure":                 {run: func(context.Context, jobs.Job) (int64, error) { panic("nil map") }, left: true, dueIn: time.Second, tries: 1, lastError: "jobs: panic: nil map", log: "stack="},
		"a job that takes too long is interrupted": {run: func(ctx context.Context, _ jobs.Job) (int64, error) {
			deadline, has := ctx.Deadline()
			if !has || time.Until(deadline) > limit {
				return 0, errors.New("no deadline")
			}
			return 0, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope := newApp(t, db)
			enqueue(t, db, scope, "x")
			var log bytes.Buffer
			noError(t, node(db, &log, c.run).DrainAll(t.Context(), scope.AppID))
			left := queuedJobs(t, scope)
			if len(left) != 0 != c.left {
				t.Fatalf("left in the queue: %+v", left)
			}
			if !strings.Contains(log.String(), c.log) {
				t.Errorf("the log is %s", log.String())
			}
			if !c.left {
				return
			}
			if left[0].DueAt < now+c.dueIn.Milliseconds() || left[0].Tries != c.tries {
				t.Errorf("it is due in %d ms after %d tries", left[0].DueAt-now, left[0].Tries)
			}
			failing, err := db.Queue(scope).FailingJobs(t.Context(), 10)
			noError(t, err)
			if len(failing) != min(1, c.tries) || c.tries > 0 && failing[0].LastError != c.lastError {
				t.Errorf("the failing jobs are %+v", failing)
			}
		})
	}
}

func fails(failure jobs.Failure) func(context.Context, jobs.Job) (int64, error) {
	return func(context.Context, jobs.Job) (int64, error) { return 0, &failure }
}

func TestRetryDelaysDoubleUpToAnHour(t *testing.T) {
	t.Parallel()
	for tries, want := range map[int]time.Duration{0: 2 * time.Second, 1: 4 * time.Second, 5: 64 * time.Second, 11: time.Hour, 1000: time.Hour} {
		if got := jobs.RetryDelay(tries); got != want {
			t.Errorf("after %d failures: %v, want %v", tries, got, want)
		}
	}
}

func TestTheJobsOfADeadNodeRunOnAnother(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	scope := newApp(t, db)
	enqueue(t, db, scope, "x")
	_, err := db.Queue(scope).ClaimJobs(t.Context(), queue.ClaimInput{Kinds: []queue.JobKind{kind}, Now: time.Now().UnixMilli(), Most: 1, Lease: time.Hour})
	noError(t, err)
	ran := make(chan string, 1)
	q := node(db, nil, func(_ context.Context, job jobs.Job) (int64, error) {
		ran <- job.Object
		return 0, nil
	})
	if more, err := q.TryDrain(t.Context(), scope); more || err != nil || len(ran) != 0 {
		t.Errorf("a leased job ran: %v, %v", more, err)
	}
	storetest.Lapse(t, storetest.URL(t), scope.AppID.String())
	noError(t, q.DrainAll(t.Context(), scope.AppID))
	receive(t, ran, "the job runs")
}

func TestALongQueueDoesNotDelayOtherApplications(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	scope := newApp(t, db)
	for i := range jobs.DrainSize + 1 {
		enqueue(t, db, scope, fmt.Sprint(i))
	}
	var ran atomic.Int64
	q := node(db, nil, func(context.Context, jobs.Job) (int64, error) { ran.Add(1); return 0, nil })
	if more, err := q.TryDrain(t.Context(), scope); !more || err != nil || ran.Load() != jobs.DrainSize {
		t.Errorf("the first drain ran %d: %v, %v", ran.Load(), more, err)
	}
	if more, err := q.TryDrain(t.Context(), scope); more || err != nil || ran.Load() != jobs.DrainSize+1 {
		t.Errorf("the second drain ran %d: %v, %v", ran.Load(), more, err)
	}
}

func TestASlowJobDelaysNeitherOtherLanesNorOtherApplications(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	busy, quiet := newApp(t, db), newApp(t, db)
	arrived, goOn, done := make(chan struct{}), make(chan struct{}), make(chan tenancy.Scope, 10)
	q := node(db, nil, func(_ context.Context, job jobs.Job) (int64, error) {
		done <- job.Scope
		return 0, nil
	})
	q.Register(other, jobs.Handler{Lane: "slow", Timeout: limit, Run: func(context.Context, jobs.Job) (int64, error) {
		close(arrived)
		<-goOn
		return 0, nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.RunNotified(ctx) }()
	noError(t, db.Queue(busy).Enqueue(t.Context(), queue.Job{Kind: other, Object: "slow"}))
	q.Wake(busy, "slow")
	receive(t, arrived, "the slow job runs")
	for _, scope := range []tenancy.Scope{busy, quiet} {
		enqueue(t, db, scope, "fast")
		q.Wake(scope)
		if got := receive(t, done, "a fast job runs beside the slow one"); got != scope {
			t.Errorf("the job of %v ran", got)
		}
	}
	// The main lane does not wait for the slow job either.
	noError(t, q.DrainAll(t.Context(), busy.AppID))
	stop()
	close(goOn)
	if err := receive(t, ended, "the node stops"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopping gave %v", err)
	}
	// It was running when the server stopped, and finished.
	if left := queuedJobs(t, busy); len(left) != 0 {
		t.Errorf("left in the queue: %+v", left)
	}
}

func TestDetachedJobsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	scope, second := newApp(t, db), newApp(t, db)
	started, goOn := make(chan string, 10), make(chan struct{})
	q := jobs.New(jobs.Options{Store: db, Lease: limit})
	q.Detach("webhooks", 2, 2, 2)
	prepared := make(chan tenancy.Scope, 100)
	q.Before("webhooks", func(_ context.Context, scope tenancy.Scope) error {
		prepared <- scope
		return errors.New("a failure here does not keep the jobs from running")
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
	wants := func(object string) {
		t.Helper()
		if got := receive(t, started, object+" starts"); got != object {
			t.Errorf("%s started, not %s", got, object)
		}
	}
	enqueue(t, db, scope, "hangs 1")
	q.Wake(scope, "webhooks")
	if got := receive(t, prepared, "the lane is prepared"); got != scope {
		t.Errorf("prepared %v", got)
	}
	wants("hangs 1")
	enqueue(t, db, scope, "fast")
	q.Wake(scope, "webhooks")
	wants("fast") // of the same application
	enqueue(t, db, second, "hangs 2")
	q.Wake(second, "webhooks")
	wants("hangs 2")
	enqueue(t, db, second, "late")
	q.Wake(second, "webhooks") // no slot is free
	close(goOn)
	wants("late")
	stop()
	if err := receive(t, ended, "the node stops"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopping gave %v", err)
	}
	for _, app := range []tenancy.Scope{scope, second} {
		if left := queuedJobs(t, app); len(left) != 0 {
			t.Errorf("left in the queue: %+v", left)
		}
	}
}

func TestAnApplicationHasItsShareOfDetachedJobs(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	scope, second := newApp(t, db), newApp(t, db)
	started, goOn := make(chan string, 10), make(chan struct{})
	q := jobs.New(jobs.Options{Store: db, Lease: limit})
	q.Detach("webhooks", 3, 3, 2)
	q.Register(kind, jobs.Handler{Lane: "webhooks", Timeout: limit, Run: func(_ context.Context, job jobs.Job) (int64, error) {
		started <- job.Object
		<-goOn
		return 0, nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.RunNotified(ctx) }()
	enqueue(t, db, scope, "1", "2", "3")
	q.Wake(scope, "webhooks")
	first := []string{receive(t, started, "one starts"), receive(t, started, "another starts")}
	enqueue(t, db, second, "other")
	q.Wake(second, "webhooks")
	if got := receive(t, started, "the other application's starts"); got != "other" {
		t.Errorf("%v started, and then %s", first, got)
	}
	close(goOn)
	receive(t, started, "the rest starts")
	stop()
	receive(t, ended, "the node stops")
}

func TestAStoppedNodeReleasesJobsThatItDidNotStart(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	scope := newApp(t, db)
	const number = 20
	for i := range number {
		enqueue(t, db, scope, fmt.Sprint(i))
	}
	ctx, stop := context.WithCancel(t.Context())
	var ran atomic.Int64
	first := node(db, nil, func(context.Context, jobs.Job) (int64, error) {
		stop()
		ran.Add(1)
		return 0, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- first.RunNotified(ctx) }()
	first.Wake(scope)
	receive(t, ended, "the node stops")
	if ran.Load() == number {
		t.Fatal("the node ran all jobs")
	}
	second := node(db, nil, func(context.Context, jobs.Job) (int64, error) { ran.Add(1); return 0, nil })
	if _, err := second.TryDrain(t.Context(), scope); err != nil || ran.Load() != number {
		t.Errorf("%d of %d jobs ran: %v", ran.Load(), number, err)
	}
}

// openNode opens a store on a database of its own: sweeps and tasks concern every
// application.
func openNode(t *testing.T, url string) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	return db
}

func TestASweepFindsJobsThatNoNodeWasNotifiedOf(t *testing.T) {
	t.Parallel()
	db := openNode(t, storetest.FreshURL(t))
	scope := newApp(t, db)
	enqueue(t, db, scope, "x")
	ran, tasks := make(chan string, 10), make(chan struct{}, 10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		q := node(db, nil, func(_ context.Context, job jobs.Job) (int64, error) {
			ran <- job.Object
			return 0, nil
		})
		q.Every(jobs.Task{Name: "count", Interval: time.Hour, Run: func(context.Context) error {
			tasks <- struct{}{}
			return nil
		}})
		go func() { ended <- q.Run(ctx) }()
	}
	receive(t, ran, "the job runs")
	receive(t, tasks, "the periodic task runs")
	stop()
	for range 2 {
		if err := receive(t, ended, "both nodes stop"); !errors.Is(err, context.Canceled) {
			t.Errorf("stopping gave %v", err)
		}
	}
	if len(ran)+len(tasks) != 0 {
		t.Errorf("%d jobs and %d tasks ran twice", len(ran), len(tasks))
	}
}

func TestAnAuditFindsJobsThatSweepsMiss(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db := openNode(t, url)
	scope := newApp(t, db)
	noError(t, db.Queue(scope).Enqueue(t.Context(), queue.Job{Kind: kind, Object: "x", DueAt: time.Now().Add(-2 * jobs.AuditSlack).UnixMilli()}))
	storetest.Exec(t, url, `UPDATE work_hints SET due_at = NULL`)
	ran := make(chan string, 1)
	var log bytes.Buffer
	q := node(db, &log, func(_ context.Context, job jobs.Job) (int64, error) {
		ran <- job.Object
		return 0, nil
	})
	noError(t, q.Audit(t.Context()))
	if !strings.Contains(log.String(), "overdue jobs found") {
		t.Errorf("the log is %s", log.String())
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.RunNotified(ctx) }()
	receive(t, ran, "the job runs")
	stop()
	receive(t, ended, "the node stops")
}
