package notifications_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/notify"
	"purser/store/internal/limits"
	"purser/store/internal/pg"
	"purser/store/notifications"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

const moment int64 = 1_800_000_000_000

// newScope is a new application in the shared database.
func newScope(tb testing.TB) tenancy.Scope {
	tb.Helper()
	db := storetest.Open(tb)
	org, err := tenancy.NewOrganization(ids.New(), "Org "+ids.New().String(), moment)
	noError(tb, err)
	application, err := tenancy.NewApplication(ids.New(), org, "Chat", false, moment)
	noError(tb, err)
	application, err = db.Directory().ProvisionIn(tb.Context(), people.OrgRef{Name: org.Name}, org, application)
	noError(tb, err)
	return application.Scope()
}

// newNodes are pools on the shared database, as several servers have them.
func newNodes(tb testing.TB, number int) []*pg.DB {
	tb.Helper()
	nodes := make([]*pg.DB, number)
	for i := range nodes {
		db, err := pg.Open(tb.Context(), storetest.URL(tb), pg.Options{MaxConns: 12}, limits.Current())
		noError(tb, err)
		tb.Cleanup(db.Close)
		nodes[i] = db
	}
	return nodes
}

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var errRolledBack = errors.New("rolled back by the test")

// writer is a transaction that has inserted notifications and has not ended.
type writer struct {
	ids    []ids.ID
	end    chan error // nil commits
	result chan error
}

func open(t *testing.T, app pg.App, number int) writer {
	t.Helper()
	w := writer{end: make(chan error), result: make(chan error, 1)}
	list := make([]notify.Notification, number)
	for i := range list {
		list[i] = notify.Notification{ID: ids.New(), Type: notify.DepositCreated, Data: []byte(`{}`), CreatedAt: moment}
		w.ids = append(w.ids, list[i].ID)
	}
	inserted := make(chan struct{})
	go func() {
		w.result <- app.Attempt(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
			err := tx.Notify(ctx, list...)
			close(inserted)
			return errors.Join(err, <-w.end)
		})
	}()
	<-inserted
	return w
}

// reader follows the feed from its start.
type reader struct {
	after int64
	seen  []ids.ID
}

func (r *reader) read(t *testing.T, app pg.App) {
	t.Helper()
	type row struct {
		Seq int64
		ID  ids.ID
	}
	noError(t, app.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		rows, err := tx.Conn.Query(ctx, `SELECT seq, id FROM notifications WHERE app_id = $1 AND seq > $2 ORDER BY seq LIMIT 7`, app.Scope.AppID, r.after)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		for _, n := range list {
			if n.Seq != r.after+1 {
				t.Errorf("a reader at %d meets %d", r.after, n.Seq)
			}
			r.after = n.Seq
			r.seen = append(r.seen, n.ID)
		}
		return err
	}))
}

// Whatever the order of inserts, commits, rollbacks and passes of sequencers on three
// nodes, readers meet each committed notification once, in the order of its number.
func TestFeedGivesEachCommittedNotificationOnce(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, 3)
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 7))
		scope := newScope(t)
		node := func() pg.App { return nodes[random.IntN(len(nodes))].App(scope) }
		var committed []ids.ID
		var waiting []writer
		readers := make([]reader, 3)
		end := func(how error) {
			i := random.IntN(len(waiting))
			w := waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			w.end <- how
			if err := <-w.result; !errors.Is(err, how) {
				t.Fatal(err)
			}
			if how == nil {
				committed = append(committed, w.ids...)
			}
		}
		for range 150 {
			switch action := random.IntN(10); {
			case action < 4 && len(waiting) < 8:
				waiting = append(waiting, open(t, node(), 1+random.IntN(3)))
			case action < 6 && len(waiting) > 0:
				end(nil)
			case action < 7 && len(waiting) > 0:
				end(errRolledBack)
			case action < 9:
				var both errgroup.Group // at once
				for range 2 {
					app := notifications.Open(node())
					both.Go(func() error { _, err := app.Number(t.Context(), moment); return err })
				}
				noError(t, both.Wait())
			default:
				readers[random.IntN(len(readers))].read(t, node())
			}
		}
		for len(waiting) > 0 {
			end(nil)
		}
		_, err := notifications.Open(node()).Number(t.Context(), moment)
		noError(t, err)
		for i := range readers {
			r := &readers[i]
			for before := int64(-1); r.after > before; {
				before = r.after
				r.read(t, node())
			}
			if got, want := sorted(r.seen), sorted(committed); !slices.Equal(got, want) {
				t.Errorf("seed %d: a reader has %d notifications, %d were committed", seed, len(got), len(want))
			}
		}
	}
}

func sorted(list []ids.ID) []string {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = id.String()
	}
	slices.Sort(texts)
	return texts
}

// A sequencer numbers at most a batch, and says so.
func TestNumberGoesInBatches(t *testing.T) {
	t.Parallel()
	app := newNodes(t, 1)[0].App(newScope(t))
	list := make([]notify.Notification, notify.MaxBatch+1)
	for i := range list {
		list[i] = notify.Notification{ID: ids.New(), Type: notify.DepositCreated, Data: []byte(`{}`), CreatedAt: moment}
	}
	var woken []tenancy.Scope
	app.DB.OnNotifications(func(scope tenancy.Scope) { woken = append(woken, scope) })
	noError(t, app.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error { return tx.Notify(ctx, list...) }))
	if !slices.Equal(woken, []tenancy.Scope{app.Scope}) {
		t.Errorf("woken for %v", woken)
	}
	for _, want := range []int{notify.MaxBatch, 1, 0} {
		if got, err := notifications.Open(app).Number(t.Context(), moment); err != nil || got != want {
			t.Errorf("numbered %d, %v, want %d", got, err, want)
		}
	}
}

// A transaction that is rolled back leaves no notification, and an unknown application
// takes none.
func TestNotificationsNeedTheirTransaction(t *testing.T) {
	t.Parallel()
	app := newNodes(t, 1)[0].App(newScope(t))
	n := notify.Notification{ID: ids.New(), Type: notify.DepositCreated, Data: []byte(`{}`), CreatedAt: moment}
	err := app.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		err := tx.Notify(ctx, n)
		var inserted bool
		noError(t, tx.Conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM notifications WHERE app_id = $1 AND id = $2)`, app.Scope.AppID, n.ID).Scan(&inserted))
		if !inserted {
			t.Error("the notification is not in the transaction")
		}
		return errors.Join(err, errRolledBack)
	})
	if !errors.Is(err, errRolledBack) {
		t.Fatal(err)
	}
	if got, err := notifications.Open(app).Number(t.Context(), moment); err != nil || got != 0 {
		t.Errorf("numbered %d, %v", got, err)
	}
	app.Scope.AppID = ids.New()
	if err := app.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error { return tx.Notify(ctx, n) }); err == nil {
		t.Error("an application that does not exist has a notification")
	}
}
