package store_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	// Nobody else's jobs may be taken here, so the database is this test's own.
	s, err := store.Open(t.Context(), storetest.FreshURL(t), store.Options{})
	noError(t, err)
	t.Cleanup(s.Close)
	scope := tenancy.Scope{OrgID: ids.New(), AppID: ids.New()}

	done := make(chan store.Task, 100)
	open := func() *store.Scheduler {
		jobs, err := s.OpenScheduler(store.SchedulerOptions{
			Do: func(_ context.Context, job store.Task) error {
				done <- job
				return nil
			},
			Every: map[string]time.Duration{"tick": time.Hour}, Workers: 2,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		noError(t, err)
		return jobs
	}
	first, second := open(), open()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	// What was added while nobody worked is done by whoever comes.
	noError(t, first.Add(t.Context(), store.Task{Name: "drain", Scope: scope}, store.Task{Name: "drain", Scope: scope}))
	go func() { ended <- first.Run(ctx) }()
	go func() { ended <- second.Run(ctx) }()

	got := map[string]int{}
	for got["drain"] == 0 || got["tick"] == 0 {
		select {
		case job := <-done:
			got[job.Name]++
			if job.Name == "drain" && job.Scope != scope {
				t.Errorf("the job came for %v, not for %v", job.Scope, scope)
			}
		case <-time.After(patience):
			t.Fatalf("of the jobs only %v were done", got)
		}
	}
	if got["drain"] != 1 {
		t.Errorf("a job that was added twice at once was done %d times", got["drain"])
	}
	stop()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("stopping gave %v", err)
		}
	}
}
