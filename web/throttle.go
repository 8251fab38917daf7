package web

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"purser/fault"
	"purser/tenancy/credential"
)

// From one network so many attempts to sign in are taken in a minute. Each node
// counts for itself; what counts for all is kept by account.
const (
	attemptsPerMinute  = 20
	networksRemembered = 10_000
)

// networks counts attempts by where they come from.
type networks struct {
	limits *lru.Cache[netip.Prefix, *rate.Limiter]
}

func newNetworks() *networks {
	limits, err := lru.New[netip.Prefix, *rate.Limiter](networksRemembered)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &networks{limits: limits}
}

// allow takes one attempt from the address.
func (n *networks) allow(address string, now time.Time) bool {
	network := networkOf(address)
	limiter, known := n.limits.Get(network)
	if !known {
		limiter = rate.NewLimiter(rate.Every(time.Minute/attemptsPerMinute), attemptsPerMinute)
		if earlier, raced, _ := n.limits.PeekOrAdd(network, limiter); raced {
			limiter = earlier
		}
	}
	return limiter.AllowN(now, 1)
}

// NetworkOf is the network that a request comes from, as far as proxies of ours
// tell.
func (s *Site) NetworkOf(r *http.Request) netip.Prefix { return networkOf(s.clientAddress(r)) }

// networkOf is what one household or office has: /24, or /64 of version 6. What
// cannot be read counts as one network.
func networkOf(address string) netip.Prefix {
	ip, err := readAddress(address)
	if err != nil {
		return netip.Prefix{}
	}
	return Network(ip)
}

// Network is the network of an address.
func Network(ip netip.Addr) netip.Prefix {
	bits := 64
	if ip.Is4() {
		bits = 24
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// So many refused attempts in a minute, from wherever, are no forgetful people.
const alarmingRefusals = 100

// alarm counts what is refused to everybody together, on this node: guesses at many
// accounts from many networks stay below every other limit.
type alarm struct {
	mu      sync.Mutex
	minute  int64
	refused int
}

// refuse counts one, and reports whether it is time to call somebody: once in a
// minute.
func (a *alarm) refuse(now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if minute := now / time.Minute.Milliseconds(); minute != a.minute {
		a.minute, a.refused = minute, 0
	}
	a.refused++
	return a.refused == alarmingRefusals
}

// refused notes that an attempt to prove something came to nothing.
func (v *visit) refused() {
	v.site.log.Warn("sign-in refused", "request", v.requestID(), "address", v.bearer.address)
	if v.site.alarm.refuse(v.site.now()) {
		v.site.log.Error("many sign-ins are refused: somebody may be guessing passwords", "refused", alarmingRefusals)
	}
}

// attempt counts an attempt to prove something, by network and by subject, before
// it is made. The refusal is the same whether the subject exists or not.
func (v *visit) attempt(subject credential.Hash) error {
	if !v.site.networks.allow(v.bearer.address, time.UnixMilli(v.site.now())) {
		v.refused()
		return tooMany(time.Minute / attemptsPerMinute)
	}
	wait, err := v.site.store.Entrance().Attempt(v.context, subject, v.site.now())
	if err != nil {
		return err
	}
	if wait > 0 {
		v.refused()
		return tooMany(wait)
	}
	return nil
}

// waiting is a refusal that ends by itself.
type waiting struct {
	*fault.Fault
	seconds int64
}

func (w waiting) Unwrap() error { return w.Fault }

func tooMany(wait time.Duration) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	return waiting{fault.Newf(fault.RateLimited, "Too many attempts. Nothing was checked. Try again in %d seconds.", seconds), seconds}
}
