package queue

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// JobKind is what a job does.
type JobKind string

const (
	JobPlan JobKind = "plan" // sync it to the provider

	JobOperation JobKind = "op" // resume or finish it

	JobFree JobKind = "free" // renew a free subscription

	JobArchive JobKind = "archive" // archive a price

	JobSession JobKind = "session"

	JobSubscription JobKind = "subscription"

	JobInvoice JobKind = "invoice"

	JobCharge JobKind = "charge"

	JobRefund JobKind = "refund"

	JobDispute JobKind = "dispute"

	JobSchedule JobKind = "schedule"

	JobCustomer JobKind = "customer"

	JobEvents JobKind = "events" // read the provider's list of events

	JobReconcile JobKind = "sweep" // reconcile everything

	JobPrune JobKind = "prune" // delete expired rows

	JobDelivery JobKind = "webhook" // send the deliveries of an endpoint

	JobIdentity JobKind = "identity" // finish what follows a wallet's new identity

	JobLabel JobKind = "label" // update the metadata of a customer at the provider

	JobUsage JobKind = "usage" // add up settled usage
)

// Job is an entry of the application's queue, due by its clock. There is one job of a
// kind and object: enqueuing it again makes it due earlier, and keeps it when it is
// being run. A node that runs a job leases it and does not remove it, so a crash loses
// nothing.
type Job struct {
	Kind   JobKind
	Object string // provider ids are unique across accounts
	// Connection is the account that has the object; zero for none.
	Connection ids.ID
	DueAt      int64
	Tries      int    // consecutive failures
	Version    ids.ID // changes with each request for the job
	LastError  string
	// LeaseID is the claim under which the job runs; zero for one that was not claimed.
	LeaseID ids.ID
	// FailingSince is when the first of those tries failed, by the database's clock;
	// zero for none.
	FailingSince int64
}

// StoppedJob is the due time of a stopped job, which only a new request or a person
// restarts: the last millisecond of the year 9999.
const StoppedJob = 253402300799999

// Stopped reports whether the job is not retried by itself.
func (w Job) Stopped() bool { return w.DueAt >= StoppedJob }

// ManyTries is after how many consecutive failures an operator should know: about a
// minute.
const ManyTries = 5

const jobColumns = `kind, object, connection_id, due_at, tries, version, last_error, failing_since`

var (
	enqueueJobs = pg.Declare("enqueue work", `
		INSERT INTO work_queue (app_id, org_id, kind, object, connection_id, due_at, version)
		SELECT s.app_id, s.org_id, t.kind, t.object, t.connection_id, t.due_at, $6
		FROM app_state s CROSS JOIN unnest($2::text[], $3::text[], $4::uuid[], $5::bigint[]) AS t (kind, object, connection_id, due_at)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, kind, object) DO UPDATE
		SET due_at = least(work_queue.due_at, excluded.due_at), version = excluded.version,
			connection_id = coalesce(excluded.connection_id, work_queue.connection_id)`)

	hasOverdueJobs = pg.Declare("has overdue work", `
		SELECT EXISTS (SELECT 1 FROM work_queue q WHERE q.app_id = $1 AND q.due_at <= $2 + s.clock_offset)
		FROM app_state s WHERE s.app_id = $1`)

	deleteJob = pg.Declare("drop work", `
		DELETE FROM work_queue WHERE app_id = $1 AND kind = $2 AND object = $3`)

	// A new API key may succeed where the previous one failed, or fails now: with another
	// version, the end of a run doesn't postpone the job. A first run is due already, unless
	// it has itself put the job off.
	RetryFailedJobs = pg.Declare("hurry work", `
		UPDATE work_queue SET due_at = CASE WHEN tries > 0 THEN least(due_at, $2) ELSE due_at END, version = $3 WHERE app_id = $1 AND (tries > 0 AND due_at > $2 OR lease_id IS NOT NULL)`)
)

func readJob(row pgx.CollectableRow) (w Job, err error) {
	var lastError *string
	var connection *ids.ID
	var failing *int64
	err = row.Scan(&w.Kind, &w.Object, &connection, &w.DueAt, &w.Tries, &w.Version, &lastError, &failing)
	w.Connection, w.LastError, w.FailingSince = pg.OrZero(connection), pg.OrZero(lastError), pg.OrZero(failing)
	return w, err
}

// Enqueue adds jobs. A job that is queued already keeps the earlier due time.
func (a App) Enqueue(ctx context.Context, jobs ...Job) error {
	return a.transact(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.Enqueue(ctx, jobs...); err != nil {
			return err
		}
		return tx.ScheduleWake(ctx)
	})
}

// Enqueue adds jobs. The caller ends the transaction with ScheduleWake.
func (tx Tx) Enqueue(ctx context.Context, jobs ...Job) error {
	if len(jobs) == 0 {
		return nil
	}
	var kinds, objects []string
	var connections []*ids.ID
	var due []int64
	for _, w := range once(jobs) {
		kinds, objects, due = append(kinds, string(w.Kind)), append(objects, w.Object), append(due, w.DueAt)
		connections = append(connections, pg.OrNull(w.Connection))
	}
	return tx.Exec(ctx, enqueueJobs, int64(len(kinds)), kinds, objects, connections, due, ids.New())
}

// once keeps the first job of each object: one statement cannot update a row twice.
func once(jobs []Job) (list []Job) {
	type object struct {
		kind JobKind
		name string
	}
	seen := make(map[object]bool, len(jobs))
	for _, w := range jobs {
		if name := (object{w.Kind, w.Object}); !seen[name] {
			seen[name] = true
			list = append(list, w)
		}
	}
	return list
}

// DeleteJob removes a job at any version.
func (tx Tx) DeleteJob(ctx context.Context, kind JobKind, object string) error {
	_, err := tx.ExecAny(ctx, deleteJob, kind, object)
	return err
}

// HasJobsDue reports whether a job is due, at a time of the real clock.
func (a App) HasJobsDue(ctx context.Context, realNow int64) (bool, error) {
	return pg.FindOne(ctx, a.app, hasOverdueJobs, pgx.RowTo[bool], pg.ErrNoAppState, realNow)
}
