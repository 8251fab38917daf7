package jobs

import (
	"time"

	"purser/store/queue"
)

// Results of a run.
const (
	Done    = "done"
	Retried = "retried" // it failed and is retried later
	Stopped = "stopped" // it failed for good
)

// Run describes one run of a job.
type Run struct {
	Kind   queue.JobKind
	Result string
	Took   time.Duration
	// Lag is how long the job was overdue when it started; negative for unknown: for a job
	// that was enqueued without a time, and for applications whose sandbox clock was moved,
	// because a jump makes jobs overdue by weeks.
	Lag time.Duration
}

// lag is how long a job is overdue.
func (q *Queue) lag(job Job) time.Duration {
	if job.DueAt <= 0 || job.ClockOffset != 0 {
		return -1
	}
	return time.Duration(max(0, q.realNow()-job.DueAt)) * time.Millisecond
}
