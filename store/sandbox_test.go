package store_test

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/payments/sandbox/persist"
	"purser/store"
	"purser/store/payments"
	"purser/store/storetest"
)

// headOf is what every request reads of an account.
func headOf(t *testing.T, accounts payments.SandboxAccounts, app ids.ID) (head []byte, err error) {
	t.Helper()
	err = accounts.View(t.Context(), app, persist.Want{}, func(session persist.Session) error {
		head = session.Head
		return nil
	})
	return head, err
}

func TestSandboxAccounts(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	accounts := db.SandboxAccounts()

	t.Run("begin with nothing", func(t *testing.T) {
		a := newTenant(t, db)
		if state, err := headOf(t, accounts, a.application.ID); err != nil || state != nil {
			t.Errorf("%q, %v", state, err)
		}
		noError(t, accounts.Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
			if session.Head != nil || session.Legacy != nil {
				t.Errorf("it begins with %+v", session)
			}
			return persist.Change{Head: []byte("made")}, nil
		}))
		if state, err := headOf(t, accounts, a.application.ID); err != nil || string(state) != "made" {
			t.Errorf("%q, %v", state, err)
		}
	})

	t.Run("change one at a time, on all nodes together", func(t *testing.T) {
		a := newTenant(t, db)
		other := openStore(t, storetest.URL(t)).SandboxAccounts()
		var wait sync.WaitGroup
		for i := range 20 {
			node := []payments.SandboxAccounts{accounts, other}[i%2]
			wait.Go(func() {
				err := node.Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
					n, _ := strconv.Atoi(string(session.Head)) // nothing is zero
					return persist.Change{Head: []byte(strconv.Itoa(n + 1))}, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if state, err := headOf(t, accounts, a.application.ID); err != nil || string(state) != "20" {
			t.Errorf("%q, %v", state, err)
		}
	})

	t.Run("keep nothing of a change that fails", func(t *testing.T) {
		a := newTenant(t, db)
		refused := errors.New("refused")
		err := accounts.Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
			return persist.Change{Head: []byte("half"), ClockOffset: 5, WakeAt: 1}, refused
		})
		if !errors.Is(err, refused) {
			t.Error(err)
		}
		if state, err := headOf(t, accounts, a.application.ID); err != nil || state != nil {
			t.Errorf("%q, %v", state, err)
		}
		if ahead, err := a.ClockOffset(t.Context()); err != nil || ahead != 0 {
			t.Errorf("%d, %v", ahead, err)
		}
	})

	t.Run("belong to applications that exist", func(t *testing.T) {
		err := accounts.Update(t.Context(), ids.New(), persist.Want{}, func(session persist.Session) (persist.Change, error) { return persist.Change{Head: []byte("x")}, nil })
		if err == nil {
			t.Error("there is an account of no application")
		}
	})

	t.Run("wake when they said, and not after they said never", func(t *testing.T) {
		a := newTenant(t, db)
		wake := func(at int64) {
			t.Helper()
			noError(t, accounts.Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) { return persist.Change{WakeAt: at}, nil }))
		}
		due := func(at int64) bool {
			t.Helper()
			list, err := accounts.Due(t.Context(), at, 1000)
			noError(t, err)
			return slices.Contains(list, a.application.ID)
		}
		wake(100)
		if due(99) || !due(100) {
			t.Error("it wakes at another time")
		}
		wake(200)
		if due(100) || !due(200) {
			t.Error("it does not wake later")
		}
		wake(0)
		if due(1 << 60) {
			t.Error("it wakes without having anything to do")
		}
	})
}

// The whole application lives on its clock, on every node, from the moment that the
// clock was moved.
func TestUsesGoByTheApplicationsClock(t *testing.T) {
	t.Parallel()
	const day = 24 * 60 * 60 * 1000
	for name, locked := range map[string]bool{"from memory": false, "under locks": true} {
		t.Run(name, func(t *testing.T) {
			here, there := storetest.Open(t), openStore(t, storetest.URL(t))
			nodes := []*store.Engine{openUsage(t, here), openUsage(t, there)}
			a := newTenant(t, here)
			a.newCredit(t, "tokens")
			daily := featureOf("daily", "tokens")
			daily.Deduplication = metering.DeduplicateDay
			a.newFeature(t, daily)
			key, _ := a.newKey(t, keys.Setup)
			a.deposit(t, depositOf("ann", "tokens", 1_000, "all"))
			if locked {
				for _, node := range nodes {
					node.ForcePessimistic(a.application.ID, "ann")
				}
			}
			move := func(ahead int64) {
				t.Helper()
				noError(t, here.SandboxAccounts().Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
					return persist.Change{ClockOffset: ahead}, nil
				}))
			}
			a.newFeature(t, featureOf("messages", "tokens"))
			a.deposit(t, depositOf("solo", "tokens", 1_000, "solo's"))
			useOf := func(identity, feature string) store.Usage {
				return store.Usage{Scope: a.application.Scope(), KeyID: key.ID, Identity: identity, FeatureKey: feature,
					Usage: metering.Usage{TransactionID: ids.New(), EventID: ids.New().String(), Quantity: 1}}
			}
			use := func() store.Usage { return useOf("ann", "daily") }
			for i := range 6 {
				ahead := int64(i) * day
				move(ahead)
				// First asked on one node, then used on the other, then both again.
				asker, user := nodes[i%2], nodes[(i+1)%2]
				d, err := asker.Check(use())
				noError(t, err)
				if d.Verdict != metering.Accepted || d.Event.Period != metering.DayOf(moment+ahead) {
					t.Errorf("day %d: check says %s in %v", i, d.Verdict, d.Event.Period)
				}
				d, err = user.Track(use())
				noError(t, err)
				if d.Verdict != metering.Accepted || d.Event.OccurredAt != moment+ahead || d.Event.CreatedAt != moment+ahead {
					t.Errorf("day %d: track says %s at %d", i, d.Verdict, d.Event.OccurredAt-moment)
				}
				for _, node := range nodes {
					d, err := node.Track(use())
					noError(t, err)
					if d.Verdict != metering.Deduplicated {
						t.Errorf("day %d: it is billed twice: %s", i, d.Verdict)
					}
				}
				// A wallet that one node alone writes stays in its memory.
				d, err = nodes[0].Track(useOf("solo", "daily"))
				noError(t, err)
				noError(t, d.Err())
				for range 3 {
					d, err := nodes[0].Track(useOf("solo", "messages"))
					noError(t, err)
					if d.Event.OccurredAt != moment+ahead {
						t.Errorf("day %d: a use is dated %d", i, d.Event.OccurredAt-moment)
					}
					d, err = nodes[0].Check(useOf("solo", "daily"))
					noError(t, err)
					if d.Verdict != metering.Deduplicated || d.Event.Period != metering.DayOf(moment+ahead) {
						t.Errorf("day %d: check says %s in %v", i, d.Verdict, d.Event.Period)
					}
				}
			}
			owner := connect(t, storetest.URL(t))
			days := texts(t, owner, `SELECT DISTINCT ((created_at - $2) / $3)::text FROM usage_events WHERE app_id = $1 ORDER BY 1`, a.application.ID, moment, int64(day))
			if !slices.Equal(days, []string{"0", "1", "2", "3", "4", "5"}) {
				t.Errorf("they are recorded on days %v", days)
			}
		})
	}

	t.Run("and no application by another's", func(t *testing.T) {
		db := storetest.Open(t)
		usage := openUsage(t, db)
		moved, home := newFixture(t, db, usage), newFixture(t, db, usage)
		noError(t, db.SandboxAccounts().Update(t.Context(), moved.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
			return persist.Change{ClockOffset: 3 * day}, nil
		}))
		var wait sync.WaitGroup
		for i := range 10 {
			for _, h := range []fixture{moved, home} {
				wait.Go(func() {
					d, err := usage.Track(h.useOf("messages", "clock "+strconv.Itoa(i)))
					want := moment
					if h.application.ID == moved.application.ID {
						want += 3 * day
					}
					if err != nil || d.Event.OccurredAt != want {
						t.Errorf("at %d, %v", d.Event.OccurredAt-moment, err)
					}
				})
			}
		}
		wait.Wait()
	})

	t.Run("but a key lives by the real one", func(t *testing.T) {
		db := storetest.Open(t)
		usage := openUsage(t, db)
		h := newFixture(t, db, usage)
		_, err := h.RotateKey(t.Context(), h.key.ID, func(old keys.APIKey) (keys.Rotated, error) {
			old.RevokedAt = moment + day
			fresh := old
			fresh.ID, fresh.RevokedAt, fresh.Hash[0] = ids.New(), 0, fresh.Hash[0]+1
			return keys.Rotated{Old: old, New: fresh}, nil
		})
		noError(t, err)
		noError(t, db.SandboxAccounts().Update(t.Context(), h.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
			return persist.Change{ClockOffset: 30 * day}, nil
		}))
		d, err := usage.Track(h.useOf("messages", "with the old key"))
		noError(t, err)
		wantFault(t, d.Err(), fault.Code(""))
	})
}
