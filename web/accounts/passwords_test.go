package accounts

import (
	"context"
	"runtime"
	"testing"

	"purser/fault"
)

func TestAPasswordCheckThatWaitedInVainIsNoServerError(t *testing.T) {
	t.Parallel()
	p := newPasswords()
	for range checkingAtOnce {
		leave, err := p.enter(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.enter(over, false); !fault.Is(err, fault.Overloaded) {
		t.Errorf("it is told %v", err)
	}
}

func TestPasswordsAreCheckedAtABoundedCost(t *testing.T) {
	t.Parallel()
	p := newPasswords()
	var leave []func()
	for range checkingAtOnce {
		free, err := p.enter(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, free)
	}
	entered := make(chan func(), checkingInQueue)
	for range checkingInQueue {
		go func() {
			free, err := p.enter(t.Context(), false)
			if err != nil {
				t.Error(err)
			}
			entered <- free
		}()
	}
	for len(p.queue) < checkingAtOnce+checkingInQueue { // until the context of the test ends
		runtime.Gosched()
	}
	if _, err := p.enter(t.Context(), false); err == nil {
		t.Error("one more was let in")
	}
	for _, free := range leave {
		free()
	}
	for range checkingInQueue {
		(<-entered)()
	}
	if free, err := p.enter(t.Context(), false); err != nil {
		t.Error(err)
	} else {
		free()
	}
}
