package accounts

import (
	"context"
	"runtime"
	"testing"

	"purser/fault"
	"purser/ids"
)

func TestAPasswordCheckThatWaitedInVainIsNoServerError(t *testing.T) {
	t.Parallel()
	p := newPasswords()
	for range checkingAtOnce {
		leave, err := p.enter(t.Context(), ids.ID{})
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.enter(over, ids.ID{}); !fault.Is(err, fault.Overloaded) {
		t.Errorf("it is told %v", err)
	}
}

func TestPasswordsAreCheckedAtABoundedCost(t *testing.T) {
	t.Parallel()
	p := newPasswords()
	var leave []func()
	for range checkingAtOnce {
		free, err := p.enter(t.Context(), ids.ID{})
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, free)
	}
	entered := make(chan func(), checkingInQueue)
	for range checkingInQueue {
		go func() {
			free, err := p.enter(t.Context(), ids.ID{})
			if err != nil {
				t.Error(err)
			}
			entered <- free
		}()
	}
	for len(p.queue) < checkingAtOnce+checkingInQueue { // until the context of the test ends
		runtime.Gosched()
	}
	if _, err := p.enter(t.Context(), ids.ID{}); err == nil {
		t.Error("one more was let in")
	}
	for _, free := range leave {
		free()
	}
	for range checkingInQueue {
		(<-entered)()
	}
	if free, err := p.enter(t.Context(), ids.ID{}); err != nil {
		t.Error(err)
	} else {
		free()
	}
}

func TestOneUserLeavesRoomForOthersInTheQueueOfKnownDevices(t *testing.T) {
	t.Parallel()
	p := newPasswords()
	one, other := ids.New(), ids.New()
	for i := range knownInQueue / 2 {
		if _, err := p.enterQueue(one); err != nil {
			t.Fatalf("check %d: %v", i+1, err)
		}
	}
	if _, err := p.enterQueue(one); err == nil {
		t.Error("one user has more than half of the queue")
	}
	if _, err := p.enterQueue(other); err != nil {
		t.Errorf("another user is refused: %v", err)
	}
}
