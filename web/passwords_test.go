package web

import (
	"context"
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
