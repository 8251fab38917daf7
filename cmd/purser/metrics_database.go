package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"purser/store"
	"purser/store/people"
	"purser/store/queue"
	"purser/store/verify"
)

const (
	// collectTimeout bounds the queries behind a scrape.
	collectTimeout = 5 * time.Second
	// collectInterval is how often these queries run at most, however many scrape.
	collectInterval = 10 * time.Second
)

// registerDatabase adds the connection pools of this node, and what the database has for
// all nodes: job queues, the age of verifications and packed events. The latter are absent while the
// database is down.
func (m *metrics) registerDatabase(db *store.Store, u *store.Engine, intervals map[verify.Kind]time.Duration) {
	m.registry.MustRegister(poolCollector{db, u}, &databaseCollector{db: db, intervals: intervals, now: time.Now})
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	poolConnections = describe("purser_db_connections", "Database connections by pool and state: in_use, idle or connecting.", "pool", "state")
	poolMax         = describe("purser_db_connections_max", "Limit of database connections by pool.", "pool")
	poolAcquires    = describe("purser_db_acquires_total", "Connections taken from a pool.", "pool")
	poolWaits       = describe("purser_db_waits_total", "Connections taken from a pool after waiting for one.", "pool")
	poolWaitTime    = describe("purser_db_wait_seconds_total", "Time spent waiting for a connection of a pool.", "pool")
	poolAbandoned   = describe("purser_db_abandoned_waits_total", "Waits for a connection that ended without one.", "pool")
	poolOpened      = describe("purser_db_opened_total", "Connections opened by a pool.", "pool")
)

// poolCollector reads the pools: everything else, events, checks.
type poolCollector struct {
	db    *store.Store
	usage *store.Engine
}

func (c poolCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConnections, poolMax, poolAcquires, poolWaits, poolWaitTime, poolAbandoned, poolOpened} {
		to <- d
	}
}

func (c poolCollector) Collect(to chan<- prometheus.Metric) {
	for _, p := range append(c.usage.PoolStats(), c.db.PoolStats()) {
		gauge(to, poolConnections, float64(p.InUse), p.Name, "in_use")
		gauge(to, poolConnections, float64(p.Idle), p.Name, "idle")
		gauge(to, poolConnections, float64(p.Connecting), p.Name, "connecting")
		gauge(to, poolMax, float64(p.Max), p.Name)
		count(to, poolAcquires, float64(p.Acquires), p.Name)
		count(to, poolWaits, float64(p.Waits), p.Name)
		count(to, poolWaitTime, p.WaitTime.Seconds(), p.Name)
		count(to, poolAbandoned, float64(p.Abandoned), p.Name)
		count(to, poolOpened, float64(p.Opened), p.Name)
	}
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func count(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

var (
	jobsFailing = describe("purser_jobs_failing", "Failing jobs of all applications, by queue.", "queue")
	jobsSince   = describe("purser_jobs_failing_since_seconds",
		"When the oldest failing job of a queue started failing, as Unix time; 0 for none.", "queue")
	jobsOverdue = describe("purser_jobs_overdue_seconds", "How long the longest waiting job of a queue has been due; 0 for none.", "queue")
	verifyAge   = describe("purser_verify_oldest_timestamp_seconds",
		"When the application that has waited longest was last verified, by kind, as Unix time.", "kind")
	mailsWaiting   = describe("purser_mails_waiting", "Mails in the outbox; the same on every node.")
	mailsAge       = describe("purser_mails_oldest_seconds", "How long the oldest mail of the outbox has been waiting; 0 for none.")
	verifyInterval = describe("purser_verify_interval_seconds", "How often each kind of verification runs.", "kind")
	packedEvents   = describe("purser_packed_events", "Usage events that finished runs have put into blocks, of all applications; the same on every node.")
	packedBytes    = describe("purser_packed_bytes", "Size of packed usage events with their indexes; the same on every node.")
	packSkipped    = describe("purser_pack_skipped_wallets", "Wallets that the last run of 'purser pack' skipped, of all applications.")
	packFinished   = describe("purser_pack_finished_timestamp_seconds", "When the last run of 'purser pack' finished, as Unix time; 0 for none.")
)

// databaseCollector reads what all nodes share.
type databaseCollector struct {
	db        *store.Store
	intervals map[verify.Kind]time.Duration // zero for kinds that are off
	now       func() time.Time

	mu     sync.Mutex
	readAt time.Time
	queues []queue.JobQueue
	ages   []verify.VerificationAge
	mails  people.MailQueue
	packed *verify.Packing
}

func (c *databaseCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsFailing, jobsSince, jobsOverdue, mailsWaiting, mailsAge, verifyAge, verifyInterval, packedEvents, packedBytes, packSkipped, packFinished} {
		to <- d
	}
}

func (c *databaseCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.readAt.IsZero() || now.Sub(c.readAt) >= collectInterval {
		c.queues, c.ages, c.packed, c.readAt = nil, nil, nil, now
		ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
		defer cancel()
		queues, err := c.db.Queues().JobQueues(ctx)
		if err != nil {
			return
		}
		ages, err := c.db.Installation().VerificationAges(ctx)
		if err != nil {
			return
		}
		mails, err := c.db.Outbox().Waiting(ctx)
		if err != nil {
			return
		}
		c.queues, c.ages, c.mails = queues, ages, mails
		// The size of a table can't be read while it is rewritten: the others are still reported.
		if packed, err := c.db.Installation().Packing(ctx); err == nil {
			c.packed = &packed
		}
	}
	clock := c.db.Clock().Now()
	for _, q := range c.queues {
		gauge(to, jobsFailing, float64(q.Failing), q.Kind)
		gauge(to, jobsSince, float64(q.FailingSince)/1000, q.Kind)
		overdue := int64(0)
		if q.OldestDue != 0 {
			overdue = max(0, clock-q.OldestDue)
		}
		gauge(to, jobsOverdue, float64(overdue)/1000, q.Kind)
	}
	if c.queues != nil {
		gauge(to, mailsWaiting, float64(c.mails.Waiting))
		age := int64(0)
		if c.mails.Since != 0 {
			age = max(0, clock-c.mails.Since)
		}
		gauge(to, mailsAge, float64(age)/1000)
	}
	if c.packed != nil {
		gauge(to, packedEvents, float64(c.packed.Events))
		gauge(to, packedBytes, float64(c.packed.Bytes))
		gauge(to, packSkipped, float64(c.packed.Skipped))
		gauge(to, packFinished, float64(c.packed.FinishedAt)/1000)
	}
	kinds := make([]verify.Kind, 0, len(c.ages))
	for _, age := range c.ages {
		if every := c.intervals[age.Kind]; every > 0 && !slices.Contains(kinds, age.Kind) {
			kinds = append(kinds, age.Kind)
			gauge(to, verifyAge, float64(age.Oldest)/1000, string(age.Kind))
			gauge(to, verifyInterval, every.Seconds(), string(age.Kind))
		}
	}
}
