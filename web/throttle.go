package web

import (
	"crypto/sha256"
	"net/netip"
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

// networkOf is what one household or office has: /24, or /64 of version 6. What
// cannot be read counts as one network.
func networkOf(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
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

// attempt counts an attempt to prove something, by network and by subject, before
// it is made. The refusal is the same whether the subject exists or not.
func (v *visit) attempt(subject credential.Hash) error {
	if !v.site.networks.allow(v.bearer.address, time.UnixMilli(v.site.now())) {
		return tooMany(time.Minute / attemptsPerMinute)
	}
	wait, err := v.site.store.Entrance().Attempt(v.context, subject, v.site.now())
	if err != nil {
		return err
	}
	if wait > 0 {
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

// passwordSubject stands for the password of an account, whether there is one or
// not; codeSubject for the codes of a user.
func passwordSubject(email string) credential.Hash { return sha256.Sum256([]byte("password " + email)) }

func codeSubject(user string) credential.Hash { return sha256.Sum256([]byte("code " + user)) }
