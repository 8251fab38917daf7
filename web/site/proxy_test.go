package site

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	ours := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		trusted   []netip.Prefix
		remote    string
		forwarded []string
		want      string
	}{
		"is the connection's when no proxy is configured":         {nil, "203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7"},
		"is the connection's when that is no proxy of ours":       {ours, "203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7"},
		"is what our proxy was called from":                       {ours, "10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"is not what the caller wrote before that":                {ours, "10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"is not what the caller wrote in a header of its own":     {ours, "10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1"}, "198.51.100.1"},
		"is not a proxy's of ours that the caller made up":        {ours, "10.0.0.1:1", []string{"10.0.0.9, 198.51.100.1"}, "198.51.100.1"},
		"is found behind several proxies of ours":                 {ours, "[fd00::1]:1", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"is the farthest proxy's when only ours are named":        {ours, "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"is the proxy's when it wrote nothing":                    {ours, "10.0.0.1:1", nil, "10.0.0.1"},
		"is the proxy's when what it wrote cannot be read":        {ours, "10.0.0.1:1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"is read with a port":                                     {ours, "10.0.0.1:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"is read with a port, in brackets":                        {ours, "10.0.0.1:1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		"has one spelling, also for version 4 inside of 6":        {ours, "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		"has no zone, which would make one network many":          {nil, "[fe80::1%eth0]:1", nil, "fe80::1"},
		"is passed on as it is when the connection has no number": {ours, "@", []string{"198.51.100.1"}, "@"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr, r.Header["X-Forwarded-For"] = c.remote, c.forwarded
			if got := (&Site{Options: Options{TrustedProxies: c.trusted, Log: slog.New(slog.DiscardHandler)}}).clientAddress(r); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAnUndeclaredProxyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &Site{Options: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Log: slog.New(slog.NewTextHandler(&log, nil))}}
	ask := func(remote string, forwarded ...string) {
		r := httptest.NewRequest(http.MethodPost, "/login", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = remote, forwarded
		s.NetworkOf(r)
	}
	ask("10.0.0.1:1")                 // no header
	ask("10.1.0.1:1", "198.51.100.1") // declared
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
	ask("203.0.113.7:1", "198.51.100.1") // does not use up the line about the next
	for range 3 {
		ask("10.0.0.1:1", "198.51.100.1")
	}
	if got := log.String(); strings.Count(got, "PURSER_TRUSTED_PROXY") != 2 || !strings.Contains(got, "sender=10.0.0.1") {
		t.Errorf("logged %s", got)
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.1": "192.0.2.0/24", "2001:db8:1:2:3::4": "2001:db8:1::/48", "[2001:db8:1:2::4]:80": "2001:db8:1::/48", "fe80::1%eth0": "fe80::/48", "@": "invalid Prefix",
	} {
		if got := Network(address).String(); got != want {
			t.Errorf("%s is of %s, want %s", address, got, want)
		}
	}
}
