package notify

import (
	"net/netip"
	"slices"
)

// refused are the networks of version 4 that are no public receiver: this host, private
// and shared networks, link-local (with the metadata services of clouds), documentation,
// benchmarks, multicast and reserved ones, and the metadata service of Azure.
var refused = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
	// Of version 6: special purposes, documentation, and tunnels that carry an address of
	// version 4.
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// global is the part of version 6 that is routed publicly. Loopback, link-local, unique
// local, translated and multicast addresses are outside of it.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// MayReach reports whether a webhook may be sent to the address: a public one, or one
// in the networks that the operator opened.
func MayReach(address netip.Addr, opened []netip.Prefix) bool {
	address = address.Unmap().WithZone("")
	if !address.IsValid() {
		return false
	}
	if contains(opened, address) {
		return true
	}
	if contains(refused, address) {
		return false
	}
	return address.Is4() || global.Contains(address)
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}
