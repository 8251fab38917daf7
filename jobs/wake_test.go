package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"purser/jobs"
	"purser/store/storetest"
)

func TestAJobRunsAgainWhenItIsDueNotAtTheNextSweep(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func() (int64, error){
		"a job that repeats": func() (int64, error) { return time.Now().Add(100 * time.Millisecond).UnixMilli(), nil },
		"a job that failed": func() (int64, error) {
			return 0, &jobs.Failure{Err: errors.New("broken"), RetryAfter: 100 * time.Millisecond}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Open(t)
			scope := newApp(t, db)
			var runs atomic.Int64
			twice := make(chan struct{})
			q := jobs.New(jobs.Options{Store: db})
			q.Register(kind, jobs.Handler{Lane: "other", Timeout: limit, Run: func(context.Context, jobs.Job) (int64, error) {
				if runs.Add(1) == 1 {
					return again()
				}
				close(twice)
				return 0, nil
			}})
			enqueue(t, db, scope, "x")
			q.Wake(scope, "other")
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- q.RunNotified(ctx) }() // without sweeps
			receive(t, twice, "the job runs again")
			stop()
			if err := receive(t, ended, "the node stops"); !errors.Is(err, context.Canceled) {
				t.Errorf("stopping gave %v", err)
			}
		})
	}
}
