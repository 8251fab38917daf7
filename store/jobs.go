package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
)

const (
	// jobsSchema keeps River's tables apart from ours. They belong to no application,
	// and say nothing about one but that there is something to do for it.
	jobsSchema = "river"
	// jobTime is how long a job may take. What it leaves undone is found again.
	jobTime = time.Minute
	// jobRescue is when a job whose node has died is taken over.
	jobRescue = 90 * time.Second
	// jobPeriod is how often the same job can be added: once in each stretch of this
	// length, however many nodes add it.
	jobPeriod = 5 * time.Second
	// jobKeep is how long finished jobs stay to be looked at.
	jobKeep = time.Hour
	// jobStop is how long running jobs have to finish when the server stops.
	jobStop = 10 * time.Second
)

// Task is something to do in the background. It holds no more than where to look:
// what is to be done is written in the application's own tables.
type Task struct {
	Name  string
	Scope tenancy.Scope // zero for a job that is about no application
}

// SchedulerOptions says what the jobs of a node do.
type SchedulerOptions struct {
	Do      func(context.Context, Task) error
	Every   map[string]time.Duration // jobs that come by themselves, on one node at a time
	Workers int                      // how many run at once on this node
	Log     *slog.Logger
}

// Scheduler runs jobs, on whichever node is free.
type Scheduler struct {
	client *river.Client[pgx.Tx]
}

// jobArgs is a job as River keeps it.
type jobArgs struct {
	Name string `json:"name"`
	Org  string `json:"org,omitempty"`
	App  string `json:"app,omitempty"`
}

func (j Task) args() jobArgs {
	args := jobArgs{Name: j.Name}
	if j.Scope != (tenancy.Scope{}) {
		args.Org, args.App = j.Scope.OrgID.Format(ids.Organization), j.Scope.AppID.Format(ids.Application)
	}
	return args
}

func (a jobArgs) job() (j Task, err error) {
	j.Name = a.Name
	if a.App == "" {
		return j, nil
	}
	if j.Scope.OrgID, err = ids.Parse(ids.Organization, a.Org); err != nil {
		return j, err
	}
	j.Scope.AppID, err = ids.Parse(ids.Application, a.App)
	return j, err
}

// Kind is what River calls our jobs.
func (jobArgs) Kind() string { return "purser" }

// InsertOpts keeps the same job from being added over and over. A failed one is
// not tried again: whatever it was about is still there to be found.
func (jobArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: jobPeriod}}
}

type jobWorker struct {
	river.WorkerDefaults[jobArgs]
	do func(context.Context, Task) error
}

// Work does one job.
func (w jobWorker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	asked, err := job.Args.job()
	if err != nil {
		return river.JobCancel(err)
	}
	return w.do(ctx, asked)
}

// OpenScheduler gets jobs ready. Nothing runs before Run does.
func (s *Store) OpenScheduler(o SchedulerOptions) (*Scheduler, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, jobWorker{do: o.Do})
	var periodic []*river.PeriodicJob
	for name, interval := range o.Every {
		periodic = append(periodic, river.NewPeriodicJob(river.PeriodicInterval(interval),
			func() (river.JobArgs, *river.InsertOpts) { return jobArgs{Name: name}, nil },
			&river.PeriodicJobOpts{RunOnStart: true}))
	}
	client, err := river.NewClient(riverpgxv5.New(s.db.Pool), &river.Config{
		Schema:       jobsSchema,
		Queues:       map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Workers}},
		Workers:      workers,
		PeriodicJobs: periodic,
		// No connection is kept for notifications: the pool belongs to requests, and a
		// job that is waited for is not left to this queue.
		PollOnly:                    true,
		JobTimeout:                  jobTime,
		RescueStuckJobsAfter:        jobRescue,
		CompletedJobRetentionPeriod: jobKeep,
		CancelledJobRetentionPeriod: jobKeep,
		DiscardedJobRetentionPeriod: jobKeep,
		Logger:                      warningsOf(o.Log),
	})
	if err != nil {
		return nil, fmt.Errorf("store: jobs: %w", err)
	}
	return &Scheduler{client: client}, nil
}

// quiet is no log.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// warningsOf is the log without what River says of itself every few seconds.
func warningsOf(log *slog.Logger) *slog.Logger {
	if log == nil {
		return quiet()
	}
	return slog.New(warnings{log.Handler()})
}

type warnings struct{ slog.Handler }

// Enabled lets warnings and worse pass.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs keeps it so.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup keeps it so.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// Add has jobs done, on whichever node. One that is there already is not added.
func (j *Scheduler) Add(ctx context.Context, jobs ...Task) error {
	var params []river.InsertManyParams
	added := make(map[Task]bool, len(jobs))
	for _, job := range jobs {
		if !added[job] { // one statement cannot meet itself
			added[job] = true
			params = append(params, river.InsertManyParams{Args: job.args()})
		}
	}
	if len(params) == 0 {
		return nil
	}
	if _, err := j.client.InsertMany(ctx, params); err != nil {
		return fmt.Errorf("store: adding jobs: %w", err)
	}
	return nil
}

// Run does jobs until the context ends, and then lets those that run finish.
func (j *Scheduler) Run(ctx context.Context) error {
	if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("store: jobs: %w", err)
	}
	<-ctx.Done()
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
	defer cancel()
	if err := j.client.Stop(finish); err != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
		defer cancel()
		return errors.Join(ctx.Err(), j.client.StopAndCancel(hard))
	}
	return ctx.Err()
}

// migrateJobs brings River's own tables up to date, and lets the serving role
// use them. Like the rest, it may be repeated.
func migrateJobs(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("store: migrating jobs: %w", err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: jobsSchema, Logger: quiet()})
	if err != nil {
		return fmt.Errorf("store: migrating jobs: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("store: migrating jobs: %w", err)
	}
	for _, grant := range []string{
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ` + jobsSchema + ` TO ` + pg.AppRole,
		`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ` + jobsSchema + ` TO ` + pg.AppRole,
	} {
		if _, err := pool.Exec(ctx, grant); err != nil {
			return fmt.Errorf("store: migrating jobs: %w", err)
		}
	}
	return nil
}
