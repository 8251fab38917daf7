package people_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// patience is longer than a busy machine needs.
const patience = 2 * time.Minute

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// A member of two organizations acts while the log of one of them is held: the other log,
// and the account, stay free.
func TestAnActionInTwoAuditLogsHoldsNoneWhileItWaits(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]int{"for the first": 0, "for the second": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, url := storetest.Open(t), storetest.URL(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			by := audit.Actor{Name: "Ann", At: 1}
			user, err := tenancy.NewUser(ids.New(), ids.New().String()+"@example.com", "Ann", 1)
			noError(t, err)
			storetest.CreateUser(t, url, user)
			var orgs []tenancy.Organization // in the order of their ids
			for range 2 {
				requested, err := tenancy.NewOrganization(ids.New(), "Audited", 1)
				noError(t, err)
				org := storetest.CreateOrganization(t, url, requested)
				storetest.AddMember(t, url, tenancy.Member{OrgID: org.ID, UserID: user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: 1})
				noError(t, db.Org(org.ID).By(by).Rename(ctx, "Renamed")) // the log has a head now
				orgs = append(orgs, org)
			}
			connect := func() *pgx.Conn {
				conn, err := pgx.Connect(ctx, url)
				noError(t, err)
				t.Cleanup(func() { _ = conn.Close(context.Background()) })
				return conn
			}
			locker, watcher := connect(), connect()
			tx, err := locker.Begin(ctx)
			noError(t, err)
			_, err = tx.Exec(ctx, `SELECT FROM audit_heads WHERE org_id = $1 FOR UPDATE`, orgs[held].ID)
			noError(t, err)

			renamed := make(chan error, 1)
			go func() { renamed <- db.User(user.ID).Rename(ctx, "Bea", by) }()
			for waits := false; !waits; {
				noError(t, watcher.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid)))`, locker.PgConn().PID()).Scan(&waits))
				select {
				case err := <-renamed:
					t.Fatalf("it did not wait: %v", err)
				case <-time.After(time.Millisecond):
				}
			}
			for what, statement := range map[string]string{
				"the other log": `SELECT FROM audit_heads WHERE org_id = $1 AND $2::uuid IS NOT NULL FOR UPDATE NOWAIT`,
				"the account":   `SELECT FROM users WHERE id = $2 AND $1::uuid IS NOT NULL FOR UPDATE NOWAIT`,
			} {
				if _, err := watcher.Exec(ctx, statement, orgs[1-held].ID, user.ID); err != nil {
					t.Errorf("%s is locked meanwhile: %v", what, err)
				}
			}
			noError(t, tx.Rollback(ctx))
			noError(t, <-renamed)
			for _, org := range orgs {
				v, err := db.Org(org.ID).VerifyAudit(ctx)
				if err != nil || len(v.Differences) > 0 || v.Head.Number != 2 {
					t.Errorf("the log is %+v, %v", v, err)
				}
			}
		})
	}
}

func TestABusyAuditLogIsTriedAFewTimes(t *testing.T) {
	t.Parallel()
	user := storetest.Open(t).User(ids.New())
	try := func(busy int) (tries int, err error) {
		err = user.InTx(t.Context(), func() error {
			if tries++; tries <= busy {
				return pg.AuditHeadBusy{Org: ids.New()} // which nothing holds by then
			}
			return nil
		})
		return tries, err
	}
	if tries, err := try(people.MaxAuditTurns - 1); err != nil || tries != people.MaxAuditTurns {
		t.Errorf("%d tries: %v", tries, err)
	}
	if tries, err := try(people.MaxAuditTurns); !fault.Is(err, fault.Overloaded) || tries != people.MaxAuditTurns {
		t.Errorf("%d tries: %v", tries, err)
	}
}

// The logs of both organizations of a member are written to all the time. What the member
// changes of the account, such as a password, still happens.
func TestAnActionInTwoBusyAuditLogsHappens(t *testing.T) {
	t.Parallel()
	db, url := storetest.Open(t), storetest.URL(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	by := audit.Actor{Name: "Ann", At: 1}
	user, err := tenancy.NewUser(ids.New(), ids.New().String()+"@example.com", "Ann", 1)
	noError(t, err)
	storetest.CreateUser(t, url, user)
	busy, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for range 2 {
		requested, err := tenancy.NewOrganization(ids.New(), "Audited", 1)
		noError(t, err)
		org := storetest.CreateOrganization(t, url, requested)
		storetest.AddMember(t, url, tenancy.Member{OrgID: org.ID, UserID: user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: 1})
		noError(t, db.Org(org.ID).By(by).Rename(ctx, "Renamed")) // the log has a head now
		for range 2 {
			conn, err := pgx.Connect(ctx, url)
			noError(t, err)
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			writers.Go(func() {
				for busy.Err() == nil {
					err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
						if err := pg.AppendAudit(ctx, tx.Conn(), org.ID, by, audit.Action{Action: "deposit.create", Target: "a deposit"}); err != nil {
							return err
						}
						time.Sleep(2 * time.Millisecond) // of a commit
						return nil
					})
					if err != nil && busy.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	for i := range 5 {
		if err := db.User(user.ID).Rename(ctx, fmt.Sprint("Bea ", i), by); err != nil {
			t.Errorf("the change %d: %v", i, err)
		}
	}
}
