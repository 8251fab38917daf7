package delivery

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/dns/dnsmessage"

	"purser/notify"
)

// resolverTo answers every name with the addresses, as a name server of an attacker does.
func resolverTo(addresses ...string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answerNames(theirs, addresses)
		return ours, nil
	}}
}

// answerNames serves name lookups as over TCP, with the length of each message first.
func answerNames(conn net.Conn, addresses []string) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		message := make([]byte, int(size[0])<<8|int(size[1]))
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		var asked dnsmessage.Message
		if asked.Unpack(message) != nil {
			return
		}
		answer := dnsmessage.Message{Header: dnsmessage.Header{ID: asked.ID, Response: true, RecursionAvailable: true}, Questions: asked.Questions}
		for _, text := range addresses {
			address := netip.MustParseAddr(text)
			header := dnsmessage.ResourceHeader{Name: asked.Questions[0].Name, Class: dnsmessage.ClassINET}
			switch kind := asked.Questions[0].Type; {
			case kind == dnsmessage.TypeA && address.Is4():
				answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
			case kind == dnsmessage.TypeAAAA && address.Is6():
				answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
			}
		}
		packed, err := answer.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append([]byte{byte(len(packed) >> 8), byte(len(packed))}, packed...)); err != nil {
			return
		}
	}
}

// Addresses of the server's own network are not reached, however they are written and
// whatever a name leads to.
func TestPrivateReceiversAreNotReached(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	receiver.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	receiver.Start()
	t.Cleanup(receiver.Close)
	_, port, err := net.SplitHostPort(receiver.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{
		"localhost", "LOCALHOST", "localhost.", "localhost.localdomain", "ip6-localhost", "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.0.0.2", "127.255.255.254",
		"0", "0.0.0.0", "0.0.0.1", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]",
		"[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "metadata.google.internal", "instance-data",
		"100.100.100.200", "168.63.129.16", "192.168.0.1", "172.16.0.1", "10.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "example.com", "a.b.c.example",
		"127.0.0.1.nip.io", "127-0-0-1.sslip.io", "localtest.me", "1.1.1.1.example", "xn--bcher-kva.example", "①②⑦.⓪.⓪.①", "127。0。0。1",
	}
	for _, octets := range [][4]int{{127, 0, 0, 1}, {10, 0, 0, 1}, {169, 254, 169, 254}, {192, 168, 1, 1}, {172, 16, 0, 1}, {0, 0, 0, 0}, {100, 64, 0, 1}, {198, 18, 0, 1}, {192, 0, 2, 7}} {
		number := octets[0]<<24 | octets[1]<<16 | octets[2]<<8 | octets[3]
		hosts = append(hosts, fmt.Sprint(number), fmt.Sprintf("0x%x", number), fmt.Sprintf("0X%X", number), fmt.Sprintf("0%o", number), fmt.Sprintf("00000%o", number))
		for _, first := range []string{"%d", "0x%x", "0%o", "%03d", "0x00%x"} {
			for _, rest := range []string{"%d", "0x%x", "0%o"} {
				form := strings.Join([]string{first, rest, rest, rest}, ".")
				hosts = append(hosts, fmt.Sprintf(form, octets[0], octets[1], octets[2], octets[3]))
			}
		}
		hosts = append(hosts, fmt.Sprintf("%d.%d", octets[0], number&0xffffff), fmt.Sprintf("%d.%d.%d", octets[0], octets[1], number&0xffff))
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	resolvers := []*net.Resolver{resolverTo("127.0.0.1", "::1"), resolverTo("10.0.0.1"), resolverTo("169.254.169.254", "fd00:ec2::254")}
	refusals := 0
	for i, host := range hosts {
		c := newClient(clientOptions{Timeout: 5 * time.Minute, Now: time.Now, Resolver: resolvers[i%len(resolvers)]})
		got := c.send(t.Context(), webhook{URL: "http://" + host + ":" + port + "/", ID: "ntf_1", Message: []byte("{}")})
		if got.Status != 0 || got.Error == "" {
			t.Errorf("%s answers %d", host, got.Status)
		}
		if strings.HasPrefix(got.Error, "The host's address isn't public") {
			refusals++
		}
		c.http.CloseIdleConnections()
	}
	if n := connections.Load(); n != 0 || len(hosts) < 200 || refusals < 140 {
		t.Errorf("%d connections were made to %d hosts, %d refused by their address", n, len(hosts), refusals)
	}
	// The same connection is made when the operator opens the network.
	opened := newClient(clientOptions{Timeout: 5 * time.Minute, Now: time.Now, Resolver: resolvers[0], Opened: ownNetwork})
	if got := opened.send(t.Context(), webhook{URL: "http://example.com:" + port + "/", ID: "ntf_1", Message: []byte("{}")}); got.Status != 200 {
		t.Errorf("an opened network answers %d %s", got.Status, got.Error)
	}
	opened.http.CloseIdleConnections()
}

// Endpoints may have been stored with a port that is refused since.
func TestPortsOfOtherServicesAreNotReached(t *testing.T) {
	t.Parallel()
	c := newClient(clientOptions{Timeout: 5 * time.Minute, Now: time.Now, Opened: ownNetwork})
	for _, target := range []string{"http://127.0.0.1:1/", "https://127.0.0.1:25/", "http://127.0.0.1:1023/"} {
		if got := c.send(t.Context(), webhook{URL: target, ID: "ntf_1", Message: []byte("{}")}); !strings.HasPrefix(got.Error, "Webhooks aren't sent to this port.") {
			t.Errorf("%s: %d %s", target, got.Status, got.Error)
		}
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 16, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "999999999999": notify.MaxRetryAfter, "soon": 0, "1.5": 0,
		"Mon, 16 Nov 2026 08:30:00 GMT": 30 * time.Minute, "Mon, 16 Nov 2020 08:30:00 GMT": 0, "Fri, 16 Nov 2029 08:30:00 GMT": notify.MaxRetryAfter,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

var ownNetwork = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// The names in a certificate are the receiver's text, up to hundreds of kilobytes, also
// with a NUL, which Postgres refuses.
func TestAnErrorIsShortAndCanBeStored(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a\x00b." + strings.Repeat("x", 100_000)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	receiver.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	receiver.StartTLS()
	t.Cleanup(receiver.Close)
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	c := newClient(clientOptions{Timeout: 5 * time.Minute, Now: time.Now, Roots: roots, Resolver: resolverTo("127.0.0.1"), Opened: ownNetwork})
	_, port, _ := net.SplitHostPort(receiver.Listener.Addr().String())
	got := c.send(t.Context(), webhook{URL: "https://example.com:" + port, ID: "ntf_1", Message: []byte("{}")})
	if !strings.HasPrefix(got.Error, "The TLS certificate isn't valid: x509: certificate is valid for ab.x") || utf8.RuneCountInString(got.Error) != maxError {
		t.Errorf("%d characters: %.200q", len(got.Error), got.Error)
	}
	for text, want := range map[string]string{"": "", "äöü": "äöü", "äöü€": "äöü", "a\x00b": "ab", "\xffab": "�ab", "ab\xff\xffc": "ab�"} {
		if got := clean(text, 3); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Waiting for a connection counts as the receiver's time, so slow receivers of one
// application may not use up the connections of a host that others share.
func TestDeliveriesToOneHostDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const number = 5 * notify.MaxConcurrent
	var arrived atomic.Int64
	all := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == number {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(receiver.Close)
	c := newClient(clientOptions{Timeout: time.Minute, Now: time.Now, Opened: ownNetwork})
	t.Cleanup(c.http.CloseIdleConnections)
	var group sync.WaitGroup
	for range number {
		group.Go(func() {
			if got := c.send(t.Context(), webhook{URL: receiver.URL, ID: "ntf_1", Message: []byte("{}")}); got.Status != 200 {
				t.Errorf("got %d %s", got.Status, got.Error)
			}
		})
	}
	group.Wait()
}
