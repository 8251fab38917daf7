package credential_test

import (
	"testing"
	"time"

	"purser/tenancy/credential"
)

func TestAttemptsWait(t *testing.T) {
	const now = int64(1_700_000_000_000)
	for count, want := range map[int]time.Duration{
		0: 0, 4: 0, 5: time.Second, 6: 2 * time.Second, 10: 32 * time.Second, 14: 512 * time.Second, 15: 15 * time.Minute, 1000: 15 * time.Minute,
	} {
		if got := (credential.Attempts{Count: count, LastAt: now}).Wait(now); got != want {
			t.Errorf("after %d attempts one waits %s, want %s", count, got, want)
		}
	}
	sixth := credential.Attempts{Count: 6, LastAt: now}
	if got := sixth.Wait(now + 1500); got != 500*time.Millisecond {
		t.Errorf("%s are left", got)
	}
	if got := sixth.Wait(now + 2000); got != 0 {
		t.Errorf("%s are left when it is over", got)
	}
	if got := sixth.Wait(now - 60_000); got != 2*time.Second {
		t.Errorf("a clock that went back makes it %s", got)
	}
	day := credential.ForgottenAfter.Milliseconds()
	if got := (credential.Attempts{Count: 50, LastAt: now}).Next(now + day); got.Count != 1 {
		t.Errorf("after a day it counts %d", got.Count)
	}
}

func TestGuardedAttemptsWaitLonger(t *testing.T) {
	const now = int64(1_700_000_000_000)
	for count, want := range map[int]time.Duration{
		0: 0, 1: 0, 2: 15 * time.Minute, 3: 30 * time.Minute, 8: 16 * time.Hour, 9: 24 * time.Hour, 1000: 24 * time.Hour,
	} {
		if got := (credential.Attempts{Count: count, LastAt: now}).GuardedWait(now); got != want {
			t.Errorf("after %d attempts one waits %s, want %s", count, got, want)
		}
	}
}
