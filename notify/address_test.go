package notify

import (
	"net/netip"
	"testing"
)

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.1.2.3", "127.255.255.255",
		"168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.168.0.1", "192.168.255.255",
		"192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::",
		"3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1",
	} {
		if MayReach(netip.MustParseAddr(text), nil) {
			t.Errorf("%s may be reached", text)
		}
	}
	if MayReach(netip.Addr{}, nil) {
		t.Error("no address may be reached")
	}
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"} {
		if !MayReach(netip.MustParseAddr(text), nil) {
			t.Errorf("%s may not be reached", text)
		}
	}
	opened := prefixes("10.1.0.0/16", "::1/128")
	for text, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "::1": true, "127.0.0.1": false} {
		if MayReach(netip.MustParseAddr(text), opened) != want {
			t.Errorf("with %v open, %s may be reached: %t", opened, text, !want)
		}
	}
}
