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

// attemptsPerMinute limits the sign-in attempts of one network, known devices excepted.
// Each node counts its own; the limits by account and network are shared in Postgres.
const (
	attemptsPerMinute  = 20
	networksRemembered = 10_000
)

// networks counts attempts by network.
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

// allow counts one attempt of the address.
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

// NetworkOf is the client network of a request, behind trusted proxies.
func (s *Site) NetworkOf(r *http.Request) netip.Prefix { return networkOf(s.clientAddress(r)) }

// networkOf is the network of one household or office: /24, or /64 of IPv6. Invalid
// addresses share one network.
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

// siteOf is the network by which sign-in attempts are counted: /24, or /48 of IPv6. A
// /48 holds 65,536 networks of one customer, so /64 would not limit an attacker.
func siteOf(address string) netip.Prefix {
	network := networkOf(address)
	if !network.IsValid() || network.Addr().Is4() {
		return network
	}
	return netip.PrefixFrom(network.Addr(), 48).Masked()
}

// alarmThreshold is the number of refused attempts in a minute, from all networks, that
// indicates an attack.
const alarmThreshold = 100

// alarm counts all refused attempts on this node: guesses at many accounts from many
// networks stay below every other limit.
type alarm struct {
	mu      sync.Mutex
	minute  int64
	refused int
}

// recordRefusal counts a refusal, and reports at most once a minute that the threshold
// is reached.
func (a *alarm) recordRefusal(now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if minute := now / time.Minute.Milliseconds(); minute != a.minute {
		a.minute, a.refused = minute, 0
	}
	a.refused++
	return a.refused == alarmThreshold
}

// proof is one attempt to authenticate.
type proof struct {
	step    string // for the log: password, code, or either within a session
	user    ids.ID // the account's user; zero if the email has none
	subject credential.Hash
	address credential.Hash // counts attempts on the email from all networks; zero for none
	// known is an attempt from a known device of the user or within a session. Other
	// clients cannot make it, so it does not count for its network.
	known bool
}

// logRefusal logs a failed attempt and its account. The typed email is not logged:
// people type passwords there by mistake.
func logRefusal(req *request, p proof, reason string) {
	account := "unknown"
	if !p.user.IsZero() {
		account = p.user.Format(ids.User)
	}
	req.site.log.Warn("sign-in refused", "request", req.requestID(), "address", req.bearer.address, "user", account, "step", p.step, "reason", reason, "known_device", p.known)
	if req.site.alarm.recordRefusal(req.site.now()) {
		req.site.log.Error("many sign-ins refused, passwords may be guessed", "refused", alarmThreshold)
	}
}

// admitAttempt counts an attempt before it is made. The refusal is the same whether the
// account exists or not.
func admitAttempt(req *request, p proof) error {
	if err := attemptFromNetwork(req, p); err != nil {
		return err
	}
	return countAttempt(req, p)
}

// attemptFromNetwork counts an attempt for its network, on this node.
func attemptFromNetwork(req *request, p proof) error {
	if !p.known && !req.site.networks.allow(req.bearer.address, time.UnixMilli(req.site.now())) {
		logRefusal(req, p, "too many attempts from the network")
		return tooMany(time.Minute / attemptsPerMinute)
	}
	return nil
}

// countAttempt counts an attempt in Postgres, for all nodes.
func countAttempt(req *request, p proof) error {
	attempt, err := req.site.store.Auth().Attempt(req.context, p.subject, p.address, req.site.now())
	if err != nil {
		return err
	}
	if attempt.Wait > 0 {
		logRefusal(req, p, "too many attempts")
		return tooMany(attempt.Wait)
	}
	if attempt.ReachedLimit && !p.user.IsZero() {
		req.site.log.Error("one account's password is guessed from many networks", "user", p.user.Format(ids.User), "attempts", credential.AddressLimit)
	}
	return nil
}

// clearAttempts deletes the counted attempts after a success.
func clearAttempts(req *request, p proof) error {
	return req.site.store.Auth().ForgetAttempts(req.context, p.subject, p.address)
}

// waitError is a refusal with a Retry-After.
type waitError struct {
	*fault.Fault
	seconds int64
}

func (w waitError) Unwrap() error { return w.Fault }

func tooMany(wait time.Duration) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	return waitError{fault.Newf(fault.RateLimited, "Too many attempts. Try again in %d seconds.", seconds), seconds}
}
