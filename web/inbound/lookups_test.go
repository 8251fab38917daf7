package inbound

import (
	"context"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"purser/fault"
)

func TestWebhookLookupsAreBoundedByNetwork(t *testing.T) {
	t.Parallel()
	flood, other := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")
	l := newLookups()
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range lookupsOfNetwork { // run, and do not end
		leave, err := l.enter(ctx, flood)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	for range lookupsPresent - lookupsOfNetwork {
		waiting.Go(func() {
			if _, err := l.enter(ctx, flood); !fault.Is(err, fault.Overloaded) {
				t.Errorf("a lookup that waited in vain ends with %v", err)
			}
		})
	}
	for { // until all of them wait
		l.mu.Lock()
		present := l.networks[flood].admitted
		l.mu.Unlock()
		if present == lookupsPresent {
			break
		}
		runtime.Gosched()
	}
	if _, err := l.enter(ctx, flood); !fault.Is(err, fault.Overloaded) {
		t.Errorf("beyond its bound a network is told %v", err)
	}
	for range 3 * lookupsAtOnce { // others are not behind the flood
		leave, err := l.enter(t.Context(), other)
		if err != nil {
			t.Fatalf("another network is told %v", err)
		}
		leave()
	}
	stop()
	waiting.Wait()
	if len(l.running) != lookupsOfNetwork || l.networks[other] != nil {
		t.Errorf("%d lookups run, and %d networks are kept", len(l.running), len(l.networks))
	}
}

func TestAWebhookOverTheLimitIsSentAgain(t *testing.T) {
	t.Parallel()
	if status, message := webhookStatus(fault.New(fault.Overloaded)); status != http.StatusTooManyRequests || message == "" {
		t.Errorf("%d %q", status, message)
	}
}
