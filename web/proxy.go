package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress is where a request comes from: the address of the connection, or
// what a proxy of ours has written down. Each proxy adds the address it was called
// from at the end, and whatever the caller wrote stands before that. So the list is
// read from its end, as far as the proxies are ours.
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
		s.noteForwarded(nearest)
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

// noteForwarded says once that a forwarded address was ignored: a proxy that is not
// declared makes all of its clients one network, with one limit. Anyone can send the
// header, so a public sender does not use up the line about a private one.
func (s *Site) noteForwarded(sender netip.Addr) {
	once := &s.forwardedPublic
	if sender.IsPrivate() || sender.IsLoopback() {
		once = &s.forwardedPrivate
	}
	once.Do(func() {
		s.log.Warn("X-Forwarded-For ignored: if the sender is your proxy, name it in PURSER_TRUSTED_PROXY, else all of its clients share one limit", "sender", sender.String())
	})
}

// isProxy reports whether what the address forwards is believed.
func (s *Site) isProxy(address netip.Addr) bool {
	for _, network := range s.proxies {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// readAddress reads an address in its one spelling. Some proxies add the port.
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
