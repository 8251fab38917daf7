package site

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress is the client's address: that of the connection, or the one that a
// trusted proxy forwarded. Each proxy appends the address it was called from, and the
// client may have written anything before that, so the list is read from its end for as
// long as the proxies are trusted.
func (s *Site) clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	nearest, err := readAddress(host)
	if err != nil {
		return host
	}
	if len(r.Header["X-Forwarded-For"]) > 0 && !s.isProxy(nearest) {
		s.warnForwarded(nearest)
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.isProxy(nearest); i-- {
		before, err := readAddress(hops[i])
		if err != nil {
			break
		}
		nearest = before
	}
	return nearest.String()
}

// warnForwarded logs once that a forwarded address was ignored: all clients of an
// undeclared proxy share one network and one limit. Anyone can send the header, so
// public and private senders are logged separately.
func (s *Site) warnForwarded(sender netip.Addr) {
	once := &s.forwardedPublic
	if sender.IsPrivate() || sender.IsLoopback() {
		once = &s.forwardedPrivate
	}
	once.Do(func() {
		s.Log.Warn("X-Forwarded-For ignored: if the sender is your proxy, name it in PURSER_TRUSTED_PROXY, else all of its clients share one limit", "sender", sender.String())
	})
}

// isProxy reports whether the address is a trusted proxy.
func (s *Site) isProxy(address netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(network netip.Prefix) bool { return network.Contains(address) })
}

// readAddress parses an address in canonical form. Some proxies add the port.
func readAddress(text string) (netip.Addr, error) {
	text = strings.TrimSpace(text)
	address, err := netip.ParseAddr(text)
	if err != nil {
		withPort, portErr := netip.ParseAddrPort(text)
		if portErr != nil {
			return netip.Addr{}, err
		}
		address = withPort.Addr()
	}
	return address.Unmap().WithZone(""), nil
}

// NetworkOf is the client network of a request, behind trusted proxies.
func (s *Site) NetworkOf(r *http.Request) netip.Prefix { return Network(s.clientAddress(r)) }

// Network is what limits count an address for: /24, or /48 of IPv6, which a provider assigns to
// one customer: by /64, that customer would have 65,536 networks. Invalid addresses share one.
func Network(address string) netip.Prefix {
	ip, err := readAddress(address)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 48
	if ip.Is4() {
		bits = 24
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
