package web

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"purser/fault"
	"purser/ids"
	"purser/tenancy/credential"
)

// attemptsPerMinute is how many attempts to sign in are taken from one network, without
// those of known devices. Each node counts for itself; what counts for all nodes is kept
// by account and network.
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
	network := siteOf(address)
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

// siteOf is the network by which attempts to sign in are counted: /24, or /48 of version
// 6. A /48 holds 65,536 networks of one customer, so /64 would not limit an attacker.
func siteOf(address string) netip.Prefix {
	network := networkOf(address)
	if !network.IsValid() || network.Addr().Is4() {
		return network
	}
	return netip.PrefixFrom(network.Addr(), 48).Masked()
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

// proof is one attempt to prove who is there.
type proof struct {
	step    string // for the log: password, code, or either within a session
	user    ids.ID // whose account it is; zero when the address has none
	subject credential.Hash
	address credential.Hash // the count of the address from all networks; zero for none
	// known is an attempt from a device of the user or within a session. Strangers cannot
	// make it, so it is not counted with what else comes from its network.
	known bool
}

// refused logs an attempt that failed, and whose account it was at. What was typed as an
// address is not logged: people type passwords there by mistake.
func (v *visit) refused(p proof, reason string) {
	account := "unknown"
	if !p.user.IsZero() {
		account = p.user.Format(ids.User)
	}
	v.site.log.Warn("sign-in refused", "request", v.requestID(), "address", v.bearer.address, "user", account, "step", p.step, "reason", reason, "known_device", p.known)
	if v.site.alarm.refuse(v.site.now()) {
		v.site.log.Error("many sign-ins refused, passwords may be guessed", "refused", alarmingRefusals)
	}
}

// attempt counts an attempt before it is made. The refusal is the same whether the
// account exists or not.
func (v *visit) attempt(p proof) error {
	if err := v.attemptFromNetwork(p); err != nil {
		return err
	}
	return v.countAttempt(p)
}

// attemptFromNetwork counts an attempt for its network, on this node.
func (v *visit) attemptFromNetwork(p proof) error {
	if !p.known && !v.site.networks.allow(v.bearer.address, time.UnixMilli(v.site.now())) {
		v.refused(p, "too many attempts from the network")
		return tooMany(time.Minute / attemptsPerMinute)
	}
	return nil
}

// countAttempt counts an attempt in Postgres, for all nodes.
func (v *visit) countAttempt(p proof) error {
	attempt, err := v.site.store.Auth().Attempt(v.context, p.subject, p.address, v.site.now())
	if err != nil {
		return err
	}
	if attempt.Wait > 0 {
		v.refused(p, "too many attempts")
		return tooMany(attempt.Wait)
	}
	if attempt.ReachedLimit && !p.user.IsZero() {
		v.site.log.Error("one account's password is guessed from many networks", "user", p.user.Format(ids.User), "attempts", credential.AddressLimit)
	}
	return nil
}

// succeeded forgets the attempts before one that was right.
func (v *visit) succeeded(p proof) error {
	return v.site.store.Auth().ForgetAttempts(v.context, p.subject, p.address)
}

// waiting is a refusal that ends by itself.
type waiting struct {
	*fault.Fault
	seconds int64
}

func (w waiting) Unwrap() error { return w.Fault }

func tooMany(wait time.Duration) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	return waiting{fault.Newf(fault.RateLimited, "Too many attempts. Try again in %d seconds.", seconds), seconds}
}
