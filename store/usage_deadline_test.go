package store_test

import (
	"testing"
	"time"

	"purser/store"
	"purser/store/storetest"
)

// Real time that an answer may take on a busy machine, and what it would take if the
// deadline were not kept.
const (
	busyMachine = time.Minute
	tooLong     = 10 * time.Minute
)

func TestASilentDatabaseIsAnsweredByTheDeadline(t *testing.T) {
	t.Parallel()
	const requests, deadline = 20, time.Second
	url := storetest.URL(t)
	proxy, err := startProxy(url)
	noError(t, err)
	n := openNode(t, withParameter(proxy.URL(), "connect_timeout", "5"), store.EngineOptions{}) // as by default
	t.Cleanup(proxy.Close)
	s := shop{nodes: []node{n, openNode(t, url, store.EngineOptions{})}}.stocked(t)
	n.usage.SetTimeouts(busyMachine, busyMachine)
	s.credit(t, "ann", 10_000)
	s.warm(t, n, "ann", true)
	n.usage.SetTimeouts(deadline, tooLong)
	proxy.Silence(true)
	for _, connections := range []string{"that were open", "to be opened"} {
		outcomes := make([]outcome, requests)
		answered := make(chan struct{})
		go func() {
			atOnce(requests, func(i int) { outcomes[i] = trackOutcome(n, s.message("ann", numbered("silent", i))) })
			close(answered)
		}()
		select {
		case <-answered:
		case <-time.After(busyMachine):
			t.Fatalf("on connections %s a use has no answer after %s, with a deadline of %s", connections, busyMachine, deadline)
		}
		for _, o := range outcomes {
			if o.String() != "error" && o.String() != "overloaded" {
				t.Errorf("on connections %s the use is %s", connections, o)
			}
		}
	}

	proxy.Silence(false)
	n.usage.SetTimeouts(busyMachine, busyMachine)
	for i := range requests { // the same ids: each is charged once, whatever became of it
		if o := trackOutcome(n, s.message("ann", numbered("silent", i))); o.String() != "accepted" && o.String() != "duplicate" {
			t.Errorf("after the silence the use is %s: %v", o, o.err)
		}
	}
	if left := s.balance(t, "ann"); left != 10_000-(requests+1)*messagePrice {
		t.Errorf("%s is left", left)
	}
	soundBooks(t, url, s.tenant)
}

func TestAnExpiredUseIsAnsweredWhileItsBatchGoesOn(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 1)
	n := s.nodes[0]
	n.usage.SetTimeouts(tooLong, tooLong)
	s.credit(t, "ann", 1000)
	n.usage.ForcePessimistic(s.application.ID, "ann")
	let := s.hold(t, url, "ann")
	patient := make(chan outcome, 1)
	go func() { patient <- trackOutcome(n, s.message("ann", "patient")) }()
	soon(t, "the batch waits for the lock", func() bool { return s.standsStill(t, url, "ann") })

	hasty := s.message("ann", "hasty")
	hasty.Deadline = time.Now().Add(100 * time.Millisecond)
	// No batch has taken it, so it is certain that it was not charged.
	if o := trackOutcome(n, hasty); o.String() != "overloaded" {
		t.Errorf("the use whose time was over is %s: %v", o, o.err)
	}
	let()
	if o := <-patient; o.String() != "accepted" {
		t.Errorf("the use that could wait is %s: %v", o, o.err)
	}
	mustAccept(t, n, s.message("ann", "another"))
	if left := s.balance(t, "ann"); left != 1000-2*messagePrice {
		t.Errorf("%s is left: the use whose time was over is charged too", left)
	}
	soundBooks(t, url, s.tenant)
}
