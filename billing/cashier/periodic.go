package cashier

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/billing/stripe"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

const (
	// eventsInterval is between two readings of the provider's list of events, and
	// overlapTime how far each goes back behind the one before: events are listed
	// some seconds after they happen.
	eventsInterval = int64(5 * time.Minute / time.Millisecond)
	eventsOverlap  = int64(10 * time.Minute / time.Millisecond)
	// reconcileInterval is between two comparisons of everything, and sweepBack how far back
	// those go for what is over: longer than events are kept.
	reconcileInterval = int64(24 * time.Hour / time.Millisecond)
	reconcileWindow   = int64(35 * 24 * time.Hour / time.Millisecond)
	// enqueueSize is how many objects are put on the queue in one transaction.
	enqueueSize = 500
	// listBatchSize is how much of a list one piece of work reads. The rest is another
	// piece, which the queue keeps: however long a list is, and whatever stops the
	// node, it is gone on with.
	listBatchSize = 2000
	// periodicTimeout is how long reading a portion may take.
	periodicTimeout = 50 * time.Second
	// pruneInterval is between two looks for what nobody needs any more, of which pruneSize
	// goes in one transaction and as much as fits into roundTime at once.
	pruneInterval = int64(24 * time.Hour / time.Millisecond)
	pruneSize     = 1000
)

// periodicJobs is the work that comes back by itself as long as there is an account. Each
// account has its own, which its name tells apart.
func periodicJobs(connection ids.ID, now int64) []store.Job {
	name := connection.Format(connectionPrefix)
	return []store.Job{
		{Kind: store.JobEvents, Object: name, Connection: connection, DueAt: now + eventsInterval},
		{Kind: store.JobReconcile, Object: name, Connection: connection, DueAt: now + reconcileInterval},
		{Kind: store.JobPrune, DueAt: now + pruneInterval},
	}
}

// continuation is the part of a round that is for later: where a list is gone on with.
func (a account) continuation(kind store.JobKind, dueAt int64, position ...string) store.Job {
	return a.job(kind, strings.Join(append([]string{a.ID.Format(connectionPrefix)}, position...), " "), dueAt)
}

// positionOf is where a round goes on; nothing for one that begins.
func (a account) positionOf(job store.Job) []string {
	return strings.Fields(strings.TrimPrefix(job.Object, a.ID.Format(connectionPrefix)))
}

// repeatAt is when a round comes back. One that names no account is from before they
// had names, and each account has another by now.
func repeatAt(job store.Job, at int64) int64 {
	if job.Connection.IsZero() {
		return 0
	}
	return at
}

// readEvents finds the events whose webhook never came. It reads from the newest
// back to those that were read before, or goes on where a portion has ended.
func (c *Cashier) readEvents(ctx context.Context, with account, job store.Job) (next int64, err error) {
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return 0, err
	}
	since, behind, goesOn := with.EventsAfter-eventsOverlap, "", false
	if position := with.positionOf(job); len(position) == 2 {
		goesOn, behind = true, position[1]
		if since, err = strconv.ParseInt(position[0], 10, 64); err != nil {
			return 0, err
		}
	}
	var events []stripe.Event
	newest, read := with.EventsAfter, listBatch{limit: c.limits.listBatch}
	err = with.provider.Events(ctx, since, eventTypes, behind, func(event stripe.Event) error {
		newest = max(newest, event.CreatedAt)
		if event.Live == with.Live {
			events = append(events, event)
		}
		return read.add(event.ID)
	})
	if err := read.readError(err, behind); err != nil {
		return 0, err
	}
	for part := range slices.Chunk(events, enqueueSize) {
		if err := c.enqueueUnseen(ctx, with, part, now); err != nil {
			return 0, err
		}
	}
	app := c.options.Store.App(with.scope)
	if read.full {
		// Before the mark moves: what lies between is this work's from here on.
		rest := with.continuation(store.JobEvents, now, strconv.FormatInt(since, 10), read.last)
		if err := app.Enqueue(ctx, rest); err != nil {
			return 0, err
		}
	}
	if goesOn {
		return 0, nil
	}
	return repeatAt(job, now+eventsInterval), app.SetEventsAfter(ctx, with.ID, newest)
}

// listBatch is how far a list was read.
type listBatch struct {
	limit, count int
	last         string
	full         bool // there may be more
}

var errBatchFull = errors.New("cashier: the rest of the list is for later")

func (p *listBatch) add(id string) error {
	p.last = id
	if p.count++; p.count == p.limit {
		p.full = true
		return errBatchFull
	}
	return nil
}

// readError is the error that reading ended with, if it was one. A list cannot be gone
// on with behind something that the provider has forgotten; then the next round,
// which begins anew, has to do.
func (p *listBatch) readError(err error, behind string) error {
	if errors.Is(err, errBatchFull) || behind != "" && (stripe.Is(err, stripe.Refused) || stripe.Is(err, stripe.NotFound)) {
		return nil
	}
	return err
}

// enqueueUnseen has those looked at that no webhook has brought.
func (c *Cashier) enqueueUnseen(ctx context.Context, with account, events []stripe.Event, now int64) error {
	app := c.options.Store.App(with.scope)
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.ID
	}
	unseen, err := app.UnseenEvents(ctx, with.ID, names)
	if err != nil {
		return err
	}
	var work []store.Job
	for _, event := range events {
		if slices.Contains(unseen, event.ID) {
			work = append(work, jobsFor(with.ID, event, now)...)
		}
	}
	return app.Enqueue(ctx, work...)
}

// The lists that a sweep reads.
const (
	listSubscriptions = "subscriptions"
	listRefunds       = "refunds"
	listDisputes      = "disputes"
)

// reconcileAll has everything compared. Events are kept for a month, and some are never
// made, so this lists the objects themselves: one piece of work for each list.
func (c *Cashier) reconcileAll(ctx context.Context, with account, job store.Job) (next int64, err error) {
	now, err := c.Now(ctx, with.scope)
	if err != nil {
		return 0, err
	}
	if position := with.positionOf(job); len(position) > 0 {
		return 0, c.reconcileList(ctx, with, position[0], strings.Join(position[1:], ""), now)
	}
	app := c.options.Store.App(with.scope)
	for _, list := range []string{listSubscriptions, listRefunds, listDisputes} {
		if err := app.Enqueue(ctx, with.continuation(store.JobReconcile, now, list)); err != nil {
			return 0, err
		}
	}
	if with.ReplacedAt != 0 { // it sells nothing any more
		return repeatAt(job, now+reconcileInterval), nil
	}
	return repeatAt(job, now+reconcileInterval), app.EnqueuePlans(ctx, now)
}

// reconcileList has a portion of a list looked at, from behind an object on.
func (c *Cashier) reconcileList(ctx context.Context, with account, list, behind string, now int64) error {
	read, kind := with.provider.Subscriptions, store.JobSubscription
	switch list {
	case listRefunds:
		read, kind = with.provider.Refunds, store.JobCharge
	case listDisputes:
		read, kind = with.provider.Disputes, store.JobCharge
	}
	var work []store.Job
	seen, so := map[string]bool{}, listBatch{limit: c.limits.listBatch}
	err := read(ctx, now-reconcileWindow, behind, func(listed stripe.Listed) error {
		if listed.ObjectID != "" && !seen[listed.ObjectID] {
			seen[listed.ObjectID] = true
			work = append(work, with.job(kind, listed.ObjectID, now))
		}
		return so.add(listed.ID)
	})
	if err := so.readError(err, behind); err != nil {
		return err
	}
	if so.full {
		work = append(work, with.continuation(store.JobReconcile, now, list, so.last))
	}
	for part := range slices.Chunk(work, enqueueSize) {
		if err := c.options.Store.App(with.scope).Enqueue(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}

// prune lets go of what nobody needs any more. The provider has no part in it.
func (c *Cashier) prune(ctx context.Context, scope tenancy.Scope) (next int64, err error) {
	for more := true; more; {
		if more, err = c.options.Store.App(scope).Prune(ctx, pruneSize); err != nil {
			return 0, err
		}
	}
	now, err := c.Now(ctx, scope)
	return now + pruneInterval, err
}
