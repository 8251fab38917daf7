package httpd

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"purser/fault"
)

// secretOf is a secret of the tests.
func secretOf(number int) Secret {
	return Secret{Kind: "key", Hash: [32]byte{byte(number), byte(number >> 8)}}
}

// TestUnknownSecretsAreLookedUpRarely counts what the database is asked.
func TestUnknownSecretsAreLookedUpRarely(t *testing.T) {
	t.Parallel()
	var now time.Duration
	var asked int
	stored := map[Secret]bool{}
	l := NewLookups(func() time.Duration { return now })
	network := netip.MustParsePrefix("192.0.2.0/24")
	find := func(secret Secret) (bool, error) {
		return l.Find(t.Context(), secret, network, func(context.Context) (bool, error) {
			asked++
			return stored[secret], nil
		})
	}
	unknown := secretOf(1)
	for range 100 {
		if known, err := find(unknown); known || err != nil {
			t.Fatalf("an unknown secret is known: %t, %v", known, err)
		}
	}
	if asked != unknownBurst {
		t.Errorf("the database was asked %d times", asked)
	}
	now += time.Second
	for range 100 {
		_, _ = find(unknown)
	}
	if asked != unknownBurst+1 {
		t.Errorf("a second later it was asked %d times in all", asked)
	}

	t.Run("a secret of another kind with the same hash is looked up", func(t *testing.T) {
		other := unknown
		other.Kind = "link"
		stored[other] = true
		if known, err := find(other); !known || err != nil {
			t.Errorf("it is known: %t, %v", known, err)
		}
	})
	t.Run("a secret that was asked for before it was stored works at once", func(t *testing.T) {
		early := secretOf(2)
		_, _ = find(early)
		stored[early] = true
		if known, err := find(early); !known || err != nil {
			t.Errorf("it is known: %t, %v", known, err)
		}
	})
	t.Run("a caller that hung up is looked up all the same", func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		known, err := l.Find(gone, secretOf(3), network, func(ctx context.Context) (bool, error) {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("the lookup has no deadline")
			}
			return true, ctx.Err()
		})
		if !known || err != nil {
			t.Errorf("it is known: %t, %v", known, err)
		}
	})
}

// TestGuessesWaitInAQueueOfTheirOwn fills a network's half of the queue of those that send
// unknown secrets.
func TestGuessesWaitInAQueueOfTheirOwn(t *testing.T) {
	t.Parallel()
	guessing, other, honest := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.51.100.0/24")
	l := NewLookups(func() time.Duration { return 0 })
	find := func(number int, network netip.Prefix) error {
		_, err := l.Find(t.Context(), secretOf(number), network, func(context.Context) (bool, error) { return false, nil })
		return err
	}
	for i := range guessBurst {
		for _, network := range []netip.Prefix{guessing, other} {
			if err := find(i, network); err != nil {
				t.Fatalf("guess %d is %v", i, err)
			}
		}
	}
	const most = (guessesAtOnce + guessesWaiting + 1) / 2
	ctx, stop := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range most {
		waiting.Go(func() {
			if leave, err := l.slow.enter(ctx, guessing); err == nil {
				<-ctx.Done()
				leave()
			}
		})
	}
	present := func() int64 {
		l.slow.admitted.mu.Lock()
		defer l.slow.admitted.mu.Unlock()
		return l.slow.admitted.owners[guessing]
	}
	for present() < most {
		runtime.Gosched()
	}
	if err := find(1000, guessing); !fault.Is(err, fault.Overloaded) {
		t.Errorf("one guess too many is %v", err)
	}
	if err := find(1000, honest); err != nil {
		t.Errorf("the secret of another network is %v", err)
	}
	if err := l.slow.admitted.Enter(other, 1); err != nil {
		t.Errorf("another network that guesses is refused: %v", err)
	}
	l.slow.admitted.Leave(other, 1)
	stop()
	waiting.Wait()
	if err := find(1001, guessing); err != nil {
		t.Errorf("after the others have left it is %v", err)
	}
}
