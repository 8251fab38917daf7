package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"purser/billing/sandbox/persist"
	"purser/store"
	"purser/store/storetest"
)

func TestChangesOfOneSandboxLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	worlds := db.Worlds()
	busy, other := newTenant(t, db).application.ID, newTenant(t, db).application.ID
	entered, release := make(chan struct{}, 1), make(chan struct{})
	change := func(persist.Session) (store.Change, error) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-release
		return store.Change{Head: []byte("changed")}, nil
	}
	var wait sync.WaitGroup
	for range 10 { // more than the sandbox has connections
		wait.Go(func() {
			if err := worlds.Update(t.Context(), busy, persist.Want{}, change); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // ends a wait that has no end otherwise
	defer cancel()
	for range 100 {
		if err := worlds.View(ctx, other, persist.Want{}, func(persist.Session) error { return nil }); err != nil {
			t.Error(err)
			break
		}
	}
	close(release)
	wait.Wait()
}
