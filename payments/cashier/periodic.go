package cashier

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/payments/stripe"
	"purser/store/queue"
	"purser/tenancy"
)

const (
	// eventsInterval is the time between two reads of the provider's event list, and
	// eventsOverlap how far each reaches back before the previous one: events are
	// listed some seconds after they happen.
	eventsInterval = int64(5 * time.Minute / time.Millisecond)
	eventsOverlap  = int64(10 * time.Minute / time.Millisecond)
	// reconcileInterval is the time between two full reconciliations, and
	// reconcileWindow how far back they read ended objects: longer than the provider
	// keeps events.
	reconcileInterval = int64(24 * time.Hour / time.Millisecond)
	reconcileWindow   = int64(35 * 24 * time.Hour / time.Millisecond)
	// enqueueSize is how many jobs are enqueued in one transaction.
	enqueueSize = 500
	// listBatchSize is how much of a list one job reads. The rest is another job in
	// the queue, so a list of any length is read to its end across restarts.
	listBatchSize = 2000
	// periodicTimeout bounds one periodic job.
	periodicTimeout = 50 * time.Second
	// pruneInterval is the time between two deletions of expired rows: pruneSize rows
	// in one transaction, as many transactions as fit into pruneTimeout.
	pruneInterval = 24 * time.Hour
	pruneTimeout  = 10 * time.Minute
	pruneSize     = 1000
)

// periodicJobs are the jobs that repeat as long as a connection exists. Each
// connection has its own, with its id as the object.
func periodicJobs(connection ids.ID, now int64) []queue.Job {
	name := connection.Format(connectionPrefix)
	return []queue.Job{
		{Kind: queue.JobEvents, Object: name, Connection: connection, DueAt: now + eventsInterval},
		{Kind: queue.JobReconcile, Object: name, Connection: connection, DueAt: now + reconcileInterval},
	}
}

// continuation is the job that reads the rest of a list, from position on.
func (a account) continuation(kind queue.JobKind, dueAt int64, position ...string) queue.Job {
	object := strings.Join(append([]string{a.ID.Format(connectionPrefix)}, position...), " ")
	return queue.Job{Kind: kind, Object: object, Connection: a.ID, DueAt: dueAt}
}

// positionOf is where a job continues a list; empty for one that starts it.
func (a account) positionOf(job queue.Job) []string {
	return strings.Fields(strings.TrimPrefix(job.Object, a.ID.Format(connectionPrefix)))
}

// repeatAt is when a periodic job runs again. A job without a connection predates
// connection ids, and each connection has its own job by now. One of an earlier connection
// runs once more after the account was connected again: the new connection's job reads the
// same account.
func (a account) repeatAt(job queue.Job, at int64) int64 {
	if job.Connection.IsZero() || a.latest.ID != a.ID {
		return 0
	}
	return at
}

// readEvents finds events whose webhook was lost. It reads from the newest back to
// those read before, or continues where a batch ended.
func (c *Cashier) readEvents(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	now := c.nowAt(acct.ClockOffset)
	since, behind, continues := acct.EventsAfter-eventsOverlap, "", false
	if position := acct.positionOf(job); len(position) == 2 {
		continues, behind = true, position[1]
		if since, err = strconv.ParseInt(position[0], 10, 64); err != nil {
			return 0, err
		}
	}
	var events []stripe.Event
	newest, read := acct.EventsAfter, listBatch{limit: c.limits.listBatch}
	err = acct.provider.Events(ctx, since, behind, func(event stripe.Event) error {
		newest = max(newest, event.CreatedAt)
		if event.Live == acct.Live && slices.Contains(eventTypes, event.Type) {
			events = append(events, event)
		}
		return read.add(event.ID)
	})
	if err := read.readError(err, behind); err != nil {
		return 0, err
	}
	for part := range slices.Chunk(events, enqueueSize) {
		if err := c.enqueueUnseen(ctx, acct, part, now); err != nil {
			return 0, err
		}
	}
	work := c.options.Store.Queue(acct.scope)
	if read.full {
		// Before EventsAfter moves: the events in between belong to this job.
		rest := acct.continuation(queue.JobEvents, now, strconv.FormatInt(since, 10), read.last)
		if err := work.Enqueue(ctx, rest); err != nil {
			return 0, err
		}
	}
	if continues {
		return 0, nil
	}
	return acct.repeatAt(job, now+eventsInterval), c.options.Store.PaymentAccounts(acct.scope).SetEventsAfter(ctx, acct.ID, newest)
}

// listBatch is how far a list was read.
type listBatch struct {
	limit, count int
	last         string
	full         bool // there may be more
}

var errBatchFull = errors.New("cashier: list batch is full")

func (p *listBatch) add(id string) error {
	p.last = id
	if p.count++; p.count == p.limit {
		p.full = true
		return errBatchFull
	}
	return nil
}

// readError is the error that reading ended with, if any. A list cannot be continued
// after an object that the provider has deleted; the next periodic job starts it from
// the beginning.
func (p *listBatch) readError(err error, behind string) error {
	if errors.Is(err, errBatchFull) || behind != "" && (stripe.Is(err, stripe.Refused) || stripe.Is(err, stripe.NotFound)) {
		return nil
	}
	return err
}

// enqueueUnseen enqueues jobs for the events that no webhook has delivered.
func (c *Cashier) enqueueUnseen(ctx context.Context, acct account, events []stripe.Event, now int64) error {
	work := c.options.Store.Queue(acct.scope)
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.ID
	}
	unseen, err := c.options.Store.PaymentAccounts(acct.scope).UnseenEvents(ctx, acct.ID, names)
	if err != nil {
		return err
	}
	var jobs []queue.Job
	for _, event := range events {
		if slices.Contains(unseen, event.ID) {
			jobs = append(jobs, jobFor(acct.latest.ID, event, now)...)
		}
	}
	return work.Enqueue(ctx, jobs...)
}

// The lists that a reconciliation reads. These strings are stored in jobs.
const (
	listSubscriptions = "subscriptions"
	listRefunds       = "refunds"
	listDisputes      = "disputes"
)

// reconcileAll enqueues one job per list. Events are kept for a month, and some are
// never created, so reconciliation lists the objects themselves.
func (c *Cashier) reconcileAll(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	now := c.nowAt(acct.ClockOffset)
	if position := acct.positionOf(job); len(position) > 0 {
		return 0, c.reconcileList(ctx, acct, position[0], strings.Join(position[1:], ""), now)
	}
	work := c.options.Store.Queue(acct.scope)
	for _, list := range []string{listSubscriptions, listRefunds, listDisputes} {
		if err := work.Enqueue(ctx, acct.continuation(queue.JobReconcile, now, list)); err != nil {
			return 0, err
		}
	}
	if acct.ReplacedAt != 0 { // a replaced account sells nothing
		return acct.repeatAt(job, now+reconcileInterval), nil
	}
	return acct.repeatAt(job, now+reconcileInterval), c.options.Store.Payments(acct.scope).EnqueuePlans(ctx, now)
}

// reconcileList enqueues a refresh for each object of a batch of a list, after the
// given id.
func (c *Cashier) reconcileList(ctx context.Context, acct account, list, behind string, now int64) error {
	read, kind := acct.provider.Subscriptions, queue.JobSubscription
	switch list {
	case listRefunds:
		read, kind = acct.provider.Refunds, queue.JobCharge
	case listDisputes:
		read, kind = acct.provider.Disputes, queue.JobCharge
	}
	var jobs []queue.Job
	seen, batch := map[string]bool{}, listBatch{limit: c.limits.listBatch}
	err := read(ctx, now-reconcileWindow, behind, func(listed stripe.Listed) error {
		if listed.ObjectID != "" && !seen[listed.ObjectID] {
			seen[listed.ObjectID] = true
			jobs = append(jobs, acct.job(kind, listed.ObjectID, now))
		}
		return batch.add(listed.ID)
	})
	if err := batch.readError(err, behind); err != nil {
		return err
	}
	if batch.full {
		jobs = append(jobs, acct.continuation(queue.JobReconcile, now, list, batch.last))
	}
	for part := range slices.Chunk(jobs, enqueueSize) {
		if err := c.options.Store.Queue(acct.scope).Enqueue(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}

// pruneAll deletes expired rows of every application, also of those that sell nothing.
func (c *Cashier) pruneAll(ctx context.Context) error {
	return c.options.Store.Directory().Each(ctx, "cashier", func(ctx context.Context, scope tenancy.Scope) (err error) {
		for more := true; more && err == nil; {
			more, err = c.options.Store.App(scope).Prune(ctx, pruneSize)
		}
		return err
	})
}

// prune ends a job of earlier releases, which pruned one application.
func (c *Cashier) prune(context.Context, jobs.Job) (next int64, err error) { return 0, nil }
