package delivery

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/fault"
	"purser/ids"
	"purser/jobs"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
	"purser/store/queue"
	"purser/tenancy"
	"purser/tenancy/vault"
)

const (
	// maxRun is how long one run of an endpoint's job starts deliveries. The rest of a
	// long backlog is the next run's.
	maxRun = 30 * time.Second
	// roundSize is how many due deliveries are read at once.
	roundSize = 50
	// maxRunning is how many endpoints a node sends to at once, and the others how many of
	// one organization and of one application.
	maxRunning       = 64
	maxRunningPerOrg = maxRunning / 2
	maxRunningPerApp = notify.MaxEndpoints
)

// Options are the dependencies of a dispatcher.
type Options struct {
	Store *store.Store
	Vault *vault.Vault
	Jobs  *jobs.Queue
	Log   *slog.Logger
	// Opened are networks that webhooks may reach besides public addresses.
	Opened  []netip.Prefix
	Timeout time.Duration    // of one attempt; DefaultTimeout when zero
	Roots   *x509.CertPool   // that receivers' certificates are checked by; the system's when nil
	Now     func() time.Time // the real clock; the database's when nil
	// Keep is how long notifications are kept, by the application's clock; DefaultKeep
	// when zero.
	Keep time.Duration
	// Observe is called after every attempt; nil for no measurement.
	Observe func(Attempted)
}

// Attempted describes one attempt.
type Attempted struct {
	Result string // delivered, refused or unreachable
	Took   time.Duration
}

// Dispatcher numbers notifications and sends them to endpoints.
type Dispatcher struct {
	options Options
	client  *client
	hub     *hub
}

// New creates a dispatcher and registers its jobs with the queue.
func New(o Options) *Dispatcher {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Now == nil {
		o.Now = o.Store.Clock().Time
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Attempted) {}
	}
	d := &Dispatcher{options: o, hub: newHub(), client: newClient(clientOptions{Opened: o.Opened, Timeout: o.Timeout, Roots: o.Roots, Now: o.Now})}
	o.Jobs.Detach(Lane, maxRunning, maxRunningPerOrg, maxRunningPerApp)
	o.Jobs.Before(Lane, d.prepare)
	o.Jobs.Register(queue.JobDelivery, jobs.Handler{Run: d.run, Timeout: maxRun + o.Timeout + 15*time.Second, Lane: Lane})
	o.Jobs.Every(jobs.Task{Name: "number notifications", Interval: sweepInterval, Run: d.prepareAll})
	o.Jobs.Every(jobs.Task{Name: "prune notifications", Interval: pruneInterval, Timeout: pruneTimeout, Run: d.pruneAll})
	o.Jobs.Every(jobs.Task{Name: "announce expiring keys", Interval: keysInterval, Run: d.announceKeys})
	o.Store.OnNotifications(func(scope tenancy.Scope) { o.Jobs.Wake(scope, Lane) })
	return d
}

// run sends the due deliveries of one endpoint. The queue runs it on one node at a time.
func (d *Dispatcher) run(ctx context.Context, job jobs.Job) (next int64, err error) {
	app := d.options.Store.Notifications(job.Scope)
	id, err := ids.Parse(ids.WebhookEndpoint, job.Object)
	if err != nil {
		return 0, &jobs.Failure{Err: err, Stop: true}
	}
	application, err := d.options.Store.Org(job.Scope.OrgID).Application(ctx, job.Scope.AppID)
	if err != nil {
		return 0, err
	}
	var idle atomic.Int64
	idle.Store(d.idle(job))
	for end := d.options.Now().Add(maxRun); d.options.Now().Before(end); {
		endpoint, err := app.Endpoint(ctx, id)
		if fault.Is(err, fault.WebhookEndpointNotFound) || err == nil && endpoint.Status != notify.Enabled {
			return 0, nil // enabling it requests the job again
		}
		if err != nil {
			return 0, err
		}
		if endpoint.ResetAfter != nil {
			if err := app.ResetDeliveries(ctx, id); err != nil && !fault.Is(err, fault.WebhookEndpointNotFound) {
				return 0, err
			}
			continue
		}
		due, err := app.DueDeliveries(ctx, id, d.now(job), roundSize)
		if err != nil {
			return 0, err
		}
		if len(due) == 0 {
			return app.NextDelivery(ctx, id)
		}
		if err := d.round(ctx, job, application.Live, endpoint, due, &idle, end); err != nil {
			return 0, err
		}
	}
	return d.now(job), nil
}

func (d *Dispatcher) now(job jobs.Job) int64 { return d.options.Now().UnixMilli() + job.ClockOffset }

// idle is for how long no attempt was made before this run: the job was due, or failed
// before it sent anything. It is due again when a run ends, so a backlog does not count.
func (d *Dispatcher) idle(job jobs.Job) int64 {
	since := job.DueAt
	if job.FailingSince != 0 {
		since = min(since, job.FailingSince+job.ClockOffset)
	}
	return max(0, d.now(job)-since)
}

// round sends deliveries. None starts after end: what the job's deadline cuts off is sent
// twice. When one fails at an endpoint that worked, or the endpoint changes, no other starts:
// the next round goes by its new state.
func (d *Dispatcher) round(ctx context.Context, job jobs.Job, live bool, endpoint notify.Endpoint, due []notifications.Delivery, idle *atomic.Int64, end time.Time) error {
	secrets, err := d.secrets(job.Scope, endpoint)
	if err != nil {
		return err
	}
	var changed atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(notify.Concurrent(endpoint.FailingSince))
	for _, delivery := range due {
		group.Go(func() error {
			if changed.Load() || ctx.Err() != nil || !d.options.Now().Before(end) {
				return ctx.Err()
			}
			after, err := d.attempt(ctx, job, live, endpoint, secrets, delivery, idle)
			if (after.FailingSince != 0) != (endpoint.FailingSince != 0) || after.Revision != endpoint.Revision {
				changed.Store(true)
			}
			return err
		})
	}
	return group.Wait()
}

// attempt sends one delivery and stores what came of it. The first one of a run notes how
// long there was none before it.
func (d *Dispatcher) attempt(ctx context.Context, job jobs.Job, live bool, e notify.Endpoint, secrets []notify.Secret, delivery notifications.Delivery, idle *atomic.Int64) (notify.Endpoint, error) {
	message, err := delivery.Message(live, delivery.PreviousSeq)
	if err != nil {
		return e, err
	}
	got := d.client.send(ctx, webhook{URL: e.URL, ID: delivery.ID.Format(ids.Notification), Message: message, Secrets: secrets})
	if ctx.Err() != nil {
		return e, ctx.Err() // the server stops: the outcome is unknown, and it is sent again
	}
	d.options.Observe(Attempted{Result: got.kind(), Took: got.Took})
	after, err := d.options.Store.Notifications(job.Scope).Finish(ctx, notifications.Attempt{
		ID: ids.New(), EndpointID: e.ID, NotificationID: delivery.ID, URL: e.URL, Status: got.Status, Error: got.Error, Answer: got.Answer,
		StartedAt: got.StartedAt.UnixMilli(), TookMillis: int(got.Took.Milliseconds()), Idle: idle.Swap(0),
	}, got.Result, d.now(job), rand.Uint64())
	if errors.Is(err, notifications.ErrNoDelivery) || fault.Is(err, fault.WebhookEndpointNotFound) {
		return notify.Endpoint{}, nil // deleted meanwhile
	}
	if err == nil && after.Status != notify.Enabled && e.Status == notify.Enabled {
		d.options.Log.Warn("webhook endpoint paused", "app", job.Scope.AppID.Format(ids.Application),
			"endpoint", e.ID.Format(ids.WebhookEndpoint), "reason", string(after.PauseReason))
	}
	return after, err
}

func (r response) kind() string {
	switch {
	case r.Accepted():
		return "delivered"
	case r.Status != 0:
		return "refused"
	default:
		return "unreachable"
	}
}

// secrets are those that sign now: the current one, and the previous one while it
// overlaps.
func (d *Dispatcher) secrets(scope tenancy.Scope, e notify.Endpoint) (list []notify.Secret, err error) {
	sealed := [][]byte{e.SealedSecret}
	if len(e.SealedPrevious) > 0 && d.options.Now().UnixMilli() < e.PreviousUntil {
		sealed = append(sealed, e.SealedPrevious)
	}
	for _, text := range sealed {
		opened, err := d.options.Vault.Open(placeOf(scope, e.ID), text)
		if err != nil {
			return nil, fmt.Errorf("delivery: the secret of an endpoint: %w", err)
		}
		secret, err := notify.ParseSecret(string(opened))
		if err != nil {
			return nil, err
		}
		list = append(list, secret)
	}
	return list, nil
}
