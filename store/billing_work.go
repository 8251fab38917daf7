package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// JobKind says what is to be done.
type JobKind string

// The kinds of work. The objects of the first group are ours, those of the second
// the provider's; the third is about the application as a whole.
const (
	JobPlan      JobKind = "plan" // tell the provider of it
	JobOperation JobKind = "op"   // finish the conversation
	JobFree      JobKind = "free" // turn a free subscription

	JobArchive      JobKind = "archive" // take a price off sale
	JobSession      JobKind = "session"
	JobSubscription JobKind = "subscription"
	JobInvoice      JobKind = "invoice"
	JobCharge       JobKind = "charge"
	JobRefund       JobKind = "refund"
	JobDispute      JobKind = "dispute"
	JobSchedule     JobKind = "schedule"
	JobCustomer     JobKind = "customer"

	JobEvents    JobKind = "events" // read the provider's list of events
	JobReconcile JobKind = "sweep"  // compare everything
	JobPrune     JobKind = "prune"  // let go of what nobody needs any more
)

// Job is one thing to be done, by the application's clock. Whoever takes it does
// so without removing it, so nothing is lost when they vanish.
type Job struct {
	Kind   JobKind
	Object string // the provider gives a name once, whichever account it is at
	// Connection is the account that knows the object; zero where no account does.
	Connection ids.ID
	DueAt      int64
	Tries      int    // that failed, in a row
	Version    ids.ID // another one each time it is asked for
	LastError  string
	// FailingSince is when the first of those tries failed, by the database's clock;
	// zero when none has.
	FailingSince int64
}

// StoppedWork is when work is due that nothing but a new request for it, or a person,
// starts again: the last moment of the year 9999.
const StoppedWork = 253402300799999

// Stopped reports whether the work is not tried again by itself.
func (w Job) Stopped() bool { return w.DueAt >= StoppedWork }

// ManyTries is after how many failed tries in a row an operator should know: about a
// minute.
const ManyTries = 5

const workColumns = `kind, object, connection_id, due_at, tries, version, last_error, failing_since`

var (
	enqueueWork = declare("enqueue work", `
		INSERT INTO work_queue (app_id, org_id, kind, object, connection_id, due_at, version)
		SELECT s.app_id, s.org_id, t.kind, t.object, t.connection_id, t.due_at, $6
		FROM app_state s CROSS JOIN unnest($2::text[], $3::text[], $4::uuid[], $5::bigint[]) AS t (kind, object, connection_id, due_at)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, kind, object) DO UPDATE
		SET due_at = least(work_queue.due_at, excluded.due_at), version = excluded.version,
			connection_id = coalesce(excluded.connection_id, work_queue.connection_id)`)

	// The version makes a node that is about to finish the job keep it.
	delayArchive = declare("delay archive", `
		UPDATE work_queue SET due_at = greatest(due_at, $3), version = $4
		WHERE app_id = $1 AND kind = '`+string(JobArchive)+`' AND object = $2`)

	// One that was stopped stays so: the provider's refusal does not change overnight.
	enqueuePlans = declare("enqueue plans", `
		INSERT INTO work_queue (app_id, org_id, kind, object, due_at, version)
		SELECT s.app_id, s.org_id, 'plan', p.id::text, $2, $3
		FROM app_state s JOIN plans p ON p.app_id = $1
		WHERE s.app_id = $1
		ON CONFLICT (app_id, kind, object) DO UPDATE
		SET due_at = least(work_queue.due_at, excluded.due_at), version = excluded.version
		WHERE work_queue.due_at < 253402300799999`)

	selectDueWork = declare("select due work", `
		SELECT `+workColumns+`
		FROM work_queue WHERE app_id = $1 AND due_at <= $2 ORDER BY due_at, kind, object LIMIT $3`)

	selectNextWork = declare("select next work", `
		SELECT due_at FROM work_queue WHERE app_id = $1 ORDER BY due_at LIMIT 1`)

	deleteWork = declare("delete work", `
		DELETE FROM work_queue WHERE app_id = $1 AND kind = $2 AND object = $3 AND version = $4`)

	dropWork = declare("drop work", `
		DELETE FROM work_queue WHERE app_id = $1 AND kind = $2 AND object = $3`)

	// A new key for the account may do what the one before could not.
	hurryWork = declare("hurry work", `
		UPDATE work_queue SET due_at = $2 WHERE app_id = $1 AND tries > 0 AND due_at > $2`)

	repeatWork = declare("repeat work", `
		UPDATE work_queue SET due_at = $5, tries = 0, last_error = NULL, failing_since = NULL
		WHERE app_id = $1 AND kind = $2 AND object = $3 AND version = $4`)

	postponeWork = declare("postpone work", `
		UPDATE work_queue SET tries = tries + 1, last_error = $5, due_at = CASE WHEN version = $4 THEN $6 ELSE due_at END,
			failing_since = coalesce(failing_since, $7)
		WHERE app_id = $1 AND kind = $2 AND object = $3`)
)

func readWork(row pgx.CollectableRow) (w Job, err error) {
	var lastError *string
	var connection *ids.ID
	var failing *int64
	err = row.Scan(&w.Kind, &w.Object, &connection, &w.DueAt, &w.Tries, &w.Version, &lastError, &failing)
	w.Connection, w.LastError, w.FailingSince = orZero(connection), orZero(lastError), orZero(failing)
	return w, err
}

// Enqueue asks for work, no later than it was asked for before.
func (a App) Enqueue(ctx context.Context, work ...Job) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.enqueue(ctx, work...); err != nil {
			return err
		}
		return tx.hint(ctx)
	})
}

// DelayArchive keeps a price on sale until then, if it is to be archived earlier.
func (a App) DelayArchive(ctx context.Context, priceID string, until int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		_, err := tx.execAny(ctx, delayArchive, priceID, until, ids.New())
		return err
	})
}

// EnqueuePlans asks that the provider be told of every plan.
func (a App) EnqueuePlans(ctx context.Context, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if _, err := tx.execAny(ctx, enqueuePlans, now, ids.New()); err != nil {
			return err
		}
		return tx.hint(ctx)
	})
}

// enqueue asks for work. Whoever calls it ends the transaction with a hint.
func (tx appTx) enqueue(ctx context.Context, work ...Job) error {
	if len(work) == 0 {
		return nil
	}
	var kinds, objects []string
	var connections []*ids.ID
	var due []int64
	for _, w := range once(work) {
		kinds, objects, due = append(kinds, string(w.Kind)), append(objects, w.Object), append(due, w.DueAt)
		connections = append(connections, orNull(w.Connection))
	}
	return tx.exec(ctx, enqueueWork, int64(len(kinds)), kinds, objects, connections, due, ids.New())
}

// once keeps the first of each object: one statement cannot change a row twice.
func once(work []Job) (list []Job) {
	type object struct {
		kind JobKind
		name string
	}
	seen := make(map[object]bool, len(work))
	for _, w := range work {
		if name := (object{w.Kind, w.Object}); !seen[name] {
			seen[name] = true
			list = append(list, w)
		}
	}
	return list
}

// dropWork forgets what need not be done any more.
func (tx appTx) dropWork(ctx context.Context, kind JobKind, object string) error {
	_, err := tx.execAny(ctx, dropWork, kind, object)
	return err
}

// DueJobs lists what is to be done by now, the longest waiting first.
func (a App) DueJobs(ctx context.Context, now int64, most int) ([]Job, error) {
	return listAll(ctx, a, selectDueWork, readWork, now, most)
}

// NextJobDue says when there is something to be done next, if there is anything.
func (a App) NextJobDue(ctx context.Context) (dueAt int64, found bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		next, err := collect(ctx, tx, selectNextWork, pgx.RowTo[int64])
		if found = len(next) == 1; found {
			dueAt = next[0]
		}
		return err
	})
	return dueAt, found, err
}

// FinishJob takes work off the queue, or puts it back until its next time when
// that is not zero. What was asked for again meanwhile stays as it is.
func (a App) FinishJob(ctx context.Context, w Job, next int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) (err error) {
		if next == 0 {
			_, err = tx.execAny(ctx, deleteWork, w.Kind, w.Object, w.Version)
		} else {
			_, err = tx.execAny(ctx, repeatWork, w.Kind, w.Object, w.Version, next)
		}
		if err != nil {
			return err
		}
		return tx.hint(ctx)
	})
}

// maxWorkError is as much of a reason as is kept, in characters.
const maxWorkError = 500

// RetryJob notes that work failed and when to try again, or StoppedWork. What was asked for
// again meanwhile is not put off.
func (a App) RetryJob(ctx context.Context, w Job, reason string, until int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		failed, err := tx.clock(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.execAny(ctx, postponeWork, w.Kind, w.Object, w.Version, cutText(reason, maxWorkError), until, failed); err != nil {
			return err
		}
		return tx.hint(ctx)
	})
}

// cutText makes a text of whatever was said that Postgres takes and people read.
func cutText(text string, characters int) string {
	clean := make([]rune, 0, min(len(text), characters))
	for _, r := range text { // what is no UTF-8 comes as U+FFFD
		if len(clean) == characters {
			break
		}
		if r != 0 {
			clean = append(clean, r)
		}
	}
	return string(clean)
}
