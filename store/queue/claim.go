package queue

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// ClaimInput says which jobs a node claims.
type ClaimInput struct {
	Kinds []JobKind
	Now   int64 // by the real clock; jobs are due by the application's
	Most  int
	Lease time.Duration // by the database's clock
}

// JobBatch is a number of jobs that one node has claimed.
type JobBatch struct {
	Jobs        []Job
	LeaseID     ids.ID
	ClockOffset int64 // of the application, when the jobs were claimed
	// HeldElsewhere says that no job was claimed and that other claims hold due ones.
	HeldElsewhere bool
}

var (
	// Rows that another claim is about to lease, or that are being enqueued, are skipped.
	lockDueJobs = pg.Declare("lock due work", `
		SELECT `+jobColumns+`
		FROM work_queue WHERE app_id = $1 AND due_at <= $2 AND leased_until <= $3 AND kind = ANY ($4)
		ORDER BY due_at, kind, object LIMIT $5 FOR UPDATE SKIP LOCKED`)

	leaseJobs = pg.Declare("lease work", `
		UPDATE work_queue q SET lease_id = $4, leased_until = $5
		FROM unnest($2::text[], $3::text[]) AS t (kind, object)
		WHERE q.app_id = $1 AND q.kind = t.kind AND q.object = t.object`)

	hasDueJobs = pg.Declare("has due work", `
		SELECT EXISTS (SELECT 1 FROM work_queue q WHERE q.app_id = $1 AND q.due_at <= $2 AND q.kind = ANY ($3))`)

	renewJobLeases = pg.Declare("renew work leases", `
		UPDATE work_queue q SET leased_until = $5
		FROM unnest($2::text[], $3::text[]) AS t (kind, object)
		WHERE q.app_id = $1 AND q.kind = t.kind AND q.object = t.object AND q.lease_id = $4`)

	releaseJobLeases = pg.Declare("release work leases", `
		UPDATE work_queue q SET lease_id = NULL, leased_until = 0
		FROM unnest($2::text[], $3::text[]) AS t (kind, object)
		WHERE q.app_id = $1 AND q.kind = t.kind AND q.object = t.object AND q.lease_id = $4`)

	// The version differs when the job was requested again while it ran.
	deleteFinishedJob = pg.Declare("delete work", `
		DELETE FROM work_queue WHERE app_id = $1 AND kind = $2 AND object = $3 AND version = $4 AND lease_id = $5`)

	// What was requested again while it ran is due from its end: before, it was run.
	repeatJob = pg.Declare("repeat work", `
		UPDATE work_queue SET due_at = CASE WHEN version = $4 THEN $6 ELSE greatest(due_at, $7) END,
			tries = 0, last_error = NULL, failing_since = NULL, lease_id = NULL, leased_until = 0
		WHERE app_id = $1 AND kind = $2 AND object = $3 AND lease_id = $5`)

	postponeJob = pg.Declare("postpone work", `
		UPDATE work_queue SET due_at = CASE WHEN version = @version THEN @until ELSE due_at END,
			tries = tries + 1, last_error = @error, failing_since = coalesce(failing_since, @failed), lease_id = NULL, leased_until = 0
		WHERE app_id = $1 AND kind = @kind AND object = @object AND lease_id = @lease`)
)

// ClaimJobs leases due jobs, the longest waiting first. A job that another claim holds
// is left out until its lease runs out.
func (a App) ClaimJobs(ctx context.Context, in ClaimInput) (JobBatch, error) {
	return pg.Return(ctx, a.clocked().transact, func(ctx context.Context, tx Tx) (JobBatch, error) { return tx.claimJobs(ctx, in) })
}

func (tx Tx) claimJobs(ctx context.Context, in ClaimInput) (batch JobBatch, err error) {
	if batch.ClockOffset, err = tx.ClockOffset(ctx); err != nil {
		return batch, err
	}
	databaseNow, err := tx.DatabaseClock(ctx)
	if err != nil {
		return batch, err
	}
	due := in.Now + batch.ClockOffset
	if batch.Jobs, err = pg.Collect(ctx, tx, lockDueJobs, readJob, due, databaseNow, in.Kinds, in.Most); err != nil {
		return batch, err
	}
	if len(batch.Jobs) == 0 {
		batch.HeldElsewhere, err = pg.Find(ctx, tx, hasDueJobs, pgx.RowTo[bool], pg.ErrNoAppState, due, in.Kinds)
		return batch, err
	}
	batch.LeaseID = ids.New()
	for i := range batch.Jobs {
		batch.Jobs[i].LeaseID = batch.LeaseID
	}
	kinds, objects := batch.keys()
	return batch, tx.Exec(ctx, leaseJobs, int64(len(batch.Jobs)), kinds, objects, batch.LeaseID, databaseNow+in.Lease.Milliseconds())
}

// keys are the keys of the batch's jobs, as two columns.
func (b JobBatch) keys() (kinds, objects []string) {
	for _, job := range b.Jobs {
		kinds, objects = append(kinds, string(job.Kind)), append(objects, job.Object)
	}
	return kinds, objects
}

// RenewJobs extends the lease of the jobs of a claim that have not ended.
func (a App) RenewJobs(ctx context.Context, batch JobBatch, length time.Duration) error {
	return a.clocked().transact(ctx, func(ctx context.Context, tx Tx) error {
		now, err := tx.DatabaseClock(ctx)
		if err != nil {
			return err
		}
		kinds, objects := batch.keys()
		_, err = tx.ExecAny(ctx, renewJobLeases, kinds, objects, batch.LeaseID, now+length.Milliseconds())
		return err
	})
}

// ReleaseJobs ends the lease of the jobs of a claim that have not ended, so that
// another node runs them at once.
func (a App) ReleaseJobs(ctx context.Context, batch JobBatch) error {
	return a.transact(ctx, func(ctx context.Context, tx Tx) error {
		kinds, objects := batch.keys()
		_, err := tx.ExecAny(ctx, releaseJobLeases, kinds, objects, batch.LeaseID)
		return err
	})
}

// FinishJob removes a claimed job that ended now, by the application's clock, or schedules
// it again when next is not zero. One that was requested again meanwhile is due now. When
// the lease was lost, nothing changes.
func (a App) FinishJob(ctx context.Context, w Job, next, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.finishJob(ctx, w, next, now); err != nil {
			return err
		}
		return tx.ScheduleWake(ctx)
	})
}

// finishJob is FinishJob in the caller's transaction, which ends with ScheduleWake.
func (tx Tx) finishJob(ctx context.Context, w Job, next, now int64) error {
	if next == 0 {
		deleted, err := tx.ExecAny(ctx, deleteFinishedJob, w.Kind, w.Object, w.Version, w.LeaseID)
		if err != nil || deleted == 1 {
			return err
		}
	}
	_, err := tx.ExecAny(ctx, repeatJob, w.Kind, w.Object, w.Version, w.LeaseID, next, now)
	return err
}

// MaxError is the maximum length of a stored error, in characters.
const MaxError = 500

// RetryJob stores the failure of a claimed job and when to retry it, or StoppedJob.
// One that was requested again meanwhile is not postponed. When the lease was lost,
// nothing changes.
func (a App) RetryJob(ctx context.Context, w Job, reason string, until int64) error {
	return a.clocked().transact(ctx, func(ctx context.Context, tx Tx) error {
		failed, err := tx.DatabaseClock(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.ExecAny(ctx, postponeJob, pg.Named{
			"kind": w.Kind, "object": w.Object, "version": w.Version, "lease": w.LeaseID,
			"until": until, "error": pg.CutText(reason, MaxError), "failed": failed,
		}); err != nil {
			return err
		}
		return tx.ScheduleWake(ctx)
	})
}
