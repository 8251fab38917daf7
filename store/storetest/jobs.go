package storetest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/queue"
)

// DueJobs lists the jobs of an application that are due at a time of its clock, claimed
// or not, the longest waiting first.
func DueJobs(tb testing.TB, url string, app ids.ID, now int64) (list []queue.Job) {
	tb.Helper()
	onConnection(tb, url, func(ctx context.Context, conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, `
			SELECT kind, object, due_at, tries FROM work_queue WHERE app_id = $1 AND due_at <= $2 ORDER BY due_at, kind, object`, app, now) // CollectRows returns its error
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (job queue.Job, err error) {
			err = row.Scan(&job.Kind, &job.Object, &job.DueAt, &job.Tries)
			return job, err
		})
		return err
	})
	return list
}
