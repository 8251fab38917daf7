package jobs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/store"
	"purser/store/queue"
	"purser/tenancy"
)

const (
	// DefaultTimeout bounds one run of a job, unless its handler sets another.
	DefaultTimeout = 20 * time.Second
	// DefaultLease is how long the jobs of a node that died stay leased. The node renews
	// its leases three times in this period.
	DefaultLease = 15 * time.Second

	// sweepInterval is the time between two searches for due jobs on each node.
	sweepInterval = 5 * time.Second
	// maxWakeAhead is how far ahead a node wakes itself for a job that it ran: each has a
	// timer until then.
	maxWakeAhead = time.Minute
	// maxScopes is how many applications a sweep finds at most.
	maxScopes = 500
	// stopGrace is how long running jobs have to finish when the server stops.
	stopGrace = 10 * time.Second
)

// Options are the dependencies of a queue.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time // the real clock; the database's when nil
	Lease time.Duration    // DefaultLease when zero
	// Observe is called after every run of a job; nil for no measurement.
	Observe func(Run)
}

// Job is a job that this node has claimed.
type Job struct {
	queue.Job
	Scope tenancy.Scope
	// ClockOffset is by how many milliseconds the application's clock is ahead.
	ClockOffset int64
}

// Handler runs the jobs of one kind.
type Handler struct {
	// Run returns when the job runs again, by the application's clock; zero for never.
	// An error is retried, see Failure.
	Run     func(ctx context.Context, job Job) (next int64, err error)
	Timeout time.Duration // of one run; DefaultTimeout when zero
	Lane    Lane
}

// Lane separates kinds of jobs: a lane that is slow does not delay the others of the
// same application.
type Lane string

// MainLane is the lane of jobs that other work of the application waits for.
const MainLane Lane = ""

// Queue runs jobs and periodic tasks. Handlers and tasks are registered before Run. It
// is safe for concurrent use after that.
type Queue struct {
	options  Options
	handlers map[queue.JobKind]Handler
	lanes    map[Lane][]queue.JobKind
	before   map[Lane]func(context.Context, tenancy.Scope) error
	detached map[Lane]*detachedLane
	tasks    []Task
	notifier *notifier
}

// New creates a queue. Nothing runs before Run or DrainAll.
func New(options Options) *Queue {
	if options.Now == nil {
		options.Now = options.Store.Clock().Time
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Observe == nil {
		options.Observe = func(Run) {}
	}
	options.Lease = cmp.Or(options.Lease, DefaultLease)
	q := &Queue{
		options: options, handlers: map[queue.JobKind]Handler{}, lanes: map[Lane][]queue.JobKind{},
		before: map[Lane]func(context.Context, tenancy.Scope) error{}, detached: map[Lane]*detachedLane{}, notifier: newNotifier(),
	}
	q.Every(Task{Name: "audit jobs", Interval: auditInterval, Run: q.audit})
	return q
}

// Register sets the handler of a kind. Jobs of a kind without one stay in the queue.
func (q *Queue) Register(kind queue.JobKind, handler Handler) {
	if _, known := q.handlers[kind]; known || handler.Run == nil {
		panic(fmt.Sprintf("jobs: the handler of %q is registered twice or has no function", kind))
	}
	handler.Timeout = cmp.Or(handler.Timeout, DefaultTimeout)
	q.handlers[kind] = handler
	q.lanes[handler.Lane] = append(q.lanes[handler.Lane], kind)
}

// Before has run called on each notified application before its jobs of the lane are
// claimed: it may enqueue them. Its failure is logged, and the jobs run.
func (q *Queue) Before(lane Lane, run func(context.Context, tenancy.Scope) error) {
	q.before[lane] = run
	q.lanes[lane] = append([]queue.JobKind{}, q.lanes[lane]...)
}

// Run runs jobs and periodic tasks until the context ends. Then running jobs have
// stopGrace to finish, and the leases of the others are released.
func (q *Queue) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return q.runNotified(ctx) })
	group.Go(func() error { return q.sweepPeriodically(ctx) })
	for _, task := range q.tasks {
		group.Go(func() error { return q.runPeriodically(ctx, task) })
	}
	return group.Wait()
}

// Wake says that the application may have due jobs. It is only a hint: the jobs are
// in the queue, and a sweep finds them without it.
func (q *Queue) Wake(scope tenancy.Scope, lanes ...Lane) {
	if len(lanes) == 0 {
		lanes = []Lane{MainLane}
	}
	for _, lane := range lanes {
		q.notifier.notify(target{scope, lane})
	}
}

// wakeAll is Wake for every lane.
func (q *Queue) wakeAll(scopes []tenancy.Scope) {
	for _, scope := range scopes {
		for lane := range q.lanes {
			q.Wake(scope, lane)
		}
	}
}

// sweepPeriodically finds jobs that no notified node has run. Every node does this: the
// claims share the jobs out.
func (q *Queue) sweepPeriodically(ctx context.Context) error {
	for {
		found, err := q.options.Store.Queues().ScopesWithJobs(ctx, q.realNow(), maxScopes)
		if err != nil && ctx.Err() == nil {
			q.options.Log.Warn("job sweep failed", "cause", err)
		}
		q.wakeAll(found)
		if err := pause(ctx, sweepInterval); err != nil {
			return err
		}
	}
}

// pause waits for about this long, so that nodes do not act in step.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length*3/4 + rand.N(length/2)):
		return nil
	}
}

func (q *Queue) realNow() int64 { return q.options.Now().UnixMilli() }
