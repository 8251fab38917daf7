package store_test

import (
	"testing"

	"purser/billing"
	"purser/ids"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/tenancy/audit"
)

// TestTheQueuesHintIsLockedBehindJobs has changes of an application's queue wait for a row
// that another session holds. The end of a job locks its row and then the hint, so a change
// that locked them the other way around would deadlock with it.
func TestTheQueuesHintIsLockedBehindJobs(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := storetest.Open(t)
	by := audit.Actor{Name: "someone", At: moment}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, a tenant) (held string, args []any)
		change  func(t *testing.T, a tenant) error
		free    string // a row that the change must not have locked before
		of      func(a tenant) ids.ID
	}{
		"by an apply of several plans": {
			prepare: func(t *testing.T, a tenant) (string, []any) {
				var second billing.Plan
				for _, key := range []string{"first", "second"} {
					draft := plainPlan(key, "Plan")
					p, err := a.CreatePlan(t.Context(), draft, func(catalog billing.Catalog) (billing.Plan, error) {
						return billing.NewPlan(ids.New(), draft, catalog, moment)
					})
					noError(t, err)
					second = p
				}
				return `SELECT FROM work_queue WHERE app_id = $1 AND kind = 'plan' AND object = $2 FOR UPDATE`,
					[]any{a.application.ID, second.ID.String()}
			},
			change: func(t *testing.T, a tenant) error {
				stored, err := a.Catalog(t.Context())
				if err != nil {
					return err
				}
				draft := billing.CatalogDraft{Plans: []billing.PlanDraft{plainPlan("first", "Changed"), plainPlan("second", "Changed")}}
				_, _, err = a.ApplyCatalog(t.Context(), stored.Version(), moment, "", func(s billing.CatalogState) (billing.CatalogDiff, error) {
					return s.Compare(draft, billing.CatalogOptions{NewID: ids.New, Now: moment})
				})
				return err
			},
			free: `SELECT app_id::text FROM work_hints WHERE app_id = $1 AND kind = 'billing' FOR UPDATE NOWAIT`,
			of:   func(a tenant) ids.ID { return a.application.ID },
		},
		// A plan's change has the hint and waits for the log.
		"by a retry, before the audit log": {
			prepare: func(t *testing.T, a tenant) (string, []any) {
				noError(t, a.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobInvoice, Object: "in_1"}))
				due, err := a.DueJobs(t.Context(), 0, 1)
				noError(t, err)
				noError(t, a.Queue().RetryJob(t.Context(), due[0], "no answer", 10))
				noError(t, a.By(by).RecordAction(t.Context(), "test", "", nil)) // the log has a head now
				return `SELECT FROM work_hints WHERE app_id = $1 AND kind = 'billing' FOR UPDATE`, []any{a.application.ID}
			},
			change: func(t *testing.T, a tenant) error {
				return a.Queue().By(by).RetryJobNow(t.Context(), queue.JobInvoice, "in_1", 5)
			},
			free: `SELECT org_id::text FROM audit_heads WHERE org_id = $1 FOR UPDATE NOWAIT`,
			of:   func(a tenant) ids.ID { return a.org.ID },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTenant(t, db)
			sql, args := c.prepare(t, a)
			holder, watch := connect(t, url), connect(t, url)
			tx, err := holder.Begin(t.Context())
			noError(t, err)
			exec(t, tx, sql, args...)
			changed := make(chan error, 1)
			go func() { changed <- c.change(t, a) }()
			soon(t, "the change waits", func() bool {
				return len(texts(t, watch, `SELECT pid::text FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))`, holder.PgConn().PID())) == 1
			})
			if got := texts(t, tx, c.free, c.of(a)); len(got) != 1 {
				t.Errorf("%d rows", len(got))
			}
			noError(t, tx.Rollback(t.Context()))
			noError(t, <-changed)
		})
	}
}

func plainPlan(key, name string) billing.PlanDraft {
	return billing.PlanDraft{Key: key, Name: name, Price: billing.Price{AmountCents: 2900, Currency: "usd", Interval: billing.Month}, Active: true}
}
