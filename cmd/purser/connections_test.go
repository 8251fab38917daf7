package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveBounded serves ok on a listener with a bound on connections, once the body
// of a request has arrived.
func serveBounded(t *testing.T, limit int, proxies ...netip.Prefix) *connections {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitConnections(listener, limit, proxies, slog.New(slog.DiscardHandler))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})}
	l.bind(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return l
}

// exchange sends a text as a request and reads the reply.
func exchange(t *testing.T, c net.Conn, text string) (*http.Response, string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// ask exchanges one request and waits until its connection counts as idle.
func ask(t *testing.T, l *connections, c net.Conn) (*http.Response, string) {
	t.Helper()
	response, body := exchange(t, c, plainRequest)
	eventually(t, "the connection is idle", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for open := range l.open {
			if open.RemoteAddr().String() == c.LocalAddr().String() {
				return open.idleSince.Load() > 0
			}
		}
		return false
	})
	return response, body
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dialFrom dials from another address of this machine: 127.0.1.1 and 127.0.2.1 are
// two networks.
func dialFrom(t *testing.T, l net.Listener, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// halfSent is a request whose body never arrives. The server says when it has begun
// to wait for it.
const halfSent = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"

// hold sends a request whose body never arrives, and reports whether the server
// took it.
func hold(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, halfSent)
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.Contains(line, "100")
}

func TestOneNetworkCannotHoldAllConnections(t *testing.T) {
	t.Parallel()
	const limit = 12
	l := serveBounded(t, limit)
	for i, network := range []struct {
		from  string
		share int
	}{{"127.0.1.1", 6}, {"127.0.2.1", 3}, {"127.0.3.1", 2}} {
		for range network.share {
			if !hold(t, dialFrom(t, l, network.from)) {
				t.Fatalf("network %d does not get its share", i)
			}
		}
		if hold(t, dialFrom(t, l, network.from)) {
			t.Fatalf("network %d gets more than is free", i)
		}
	}
	for range 5 * limit { // the last connection serves one after the other
		c := dialFrom(t, l, "127.0.4.1")
		if _, body := ask(t, l, c); body != "ok" {
			t.Errorf("another network is answered %q", body)
		}
	}
	if open := l.count(); open > limit {
		t.Errorf("%d connections are open", open)
	}
}

func TestANetworkAtItsShareLosesItsOwnIdleConnections(t *testing.T) {
	t.Parallel()
	l := serveBounded(t, 6)
	other := dialFrom(t, l, "127.0.2.1")
	ask(t, l, other) // idle before all others
	for range 20 {
		if _, body := ask(t, l, dialFrom(t, l, "127.0.1.1")); body != "ok" {
			t.Errorf("answered %q", body)
		}
	}
	if _, body := exchange(t, other, plainRequest); body != "ok" {
		t.Errorf("the other network is answered %q", body)
	}
}

func TestIdleConnectionsOfLargerNetworksMakeRoom(t *testing.T) {
	t.Parallel()
	const limit = 12
	l := serveBounded(t, limit)
	// Three networks hold idle connections, so that a fourth has a share of two.
	for range 3 {
		ask(t, l, dialFrom(t, l, "127.0.1.1"))
	}
	for range 2 {
		ask(t, l, dialFrom(t, l, "127.0.2.1"))
	}
	for range 4 {
		ask(t, l, dialFrom(t, l, "127.0.3.1"))
	}
	customer := []net.Conn{dialFrom(t, l, "127.0.4.1")}
	ask(t, l, customer[0])
	for range 3 { // the last two are beyond the share
		c := dialFrom(t, l, "127.0.4.1")
		ask(t, l, c)
		customer = append(customer, c)
	}
	for i, c := range customer {
		if _, body := ask(t, l, c); body != "ok" {
			t.Errorf("connection %d is answered %q", i, body)
		}
	}
	if open := l.count(); open > limit {
		t.Errorf("%d connections are open", open)
	}
}

func TestRefusedConnectionsAreLoggedOnceASecond(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var log bytes.Buffer
	l := limitConnections(listener, 4, nil, slog.New(slog.NewTextHandler(&log, nil)))
	l.warned = sinceStart() + int64(time.Hour) // the last line lies ahead: no second passes
	for i := range 2 {
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, byte(i), 0}), 24)
		if l.closeIdleOf(&connection{owner: l, network: &network}) {
			t.Error("room is made where nothing is idle")
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
	l.warned = 0
	for i := range 2 {
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, byte(i), 0}), 24)
		l.closeIdleOf(&connection{owner: l, network: &network})
	}
	if !strings.Contains(log.String(), "192.0.0.0/24") {
		t.Errorf("not logged: %s", log.String())
	}
}

func TestATrustedProxyHasNoShare(t *testing.T) {
	t.Parallel()
	const limit = 6
	l := serveBounded(t, limit, netip.MustParsePrefix("127.0.1.0/24"))
	for range limit - 1 {
		if !hold(t, dialFrom(t, l, "127.0.1.1")) {
			t.Fatal("the proxy is refused")
		}
	}
	if _, body := exchange(t, dialFrom(t, l, "127.0.2.1"), plainRequest); body != "ok" {
		t.Errorf("another network is answered %q", body)
	}
}

const plainRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 3
	l := serveBounded(t, limit)
	var idle []net.Conn
	for range limit - 1 {
		c := dial(t, l)
		ask(t, l, c)
		idle = append(idle, c)
	}
	silent := dial(t, l) // sends half a header, and no more
	if _, err := io.WriteString(silent, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	for range 5 * limit { // each takes the place of one that waits for a request
		if response, body := ask(t, l, dial(t, l)); response.StatusCode != http.StatusOK || body != "ok" {
			t.Errorf("status %d: %s", response.StatusCode, body)
		}
		if open := l.count(); open > limit {
			t.Errorf("%d connections are open", open)
		}
	}
	for i, c := range append(idle, silent) {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("connection %d, idle longer than others, is still open", i)
		}
	}
}

func TestRequestsThatCannotBeParsedAreAnsweredInJSON(t *testing.T) {
	t.Parallel()
	l := serveBounded(t, 10)
	for text, status := range map[string]int{
		"GET /v1/wallets/%zz HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n":                                400,
		"GET / HTTP/1.1\r\n\r\n":                                                     400,
		plainRequest + "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n":                        200,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n":              400,
		"GET / HTTP/3.0\r\nHost: x\r\n\r\n":                                          400,
		"GET / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n":                             417,
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n": 431,
	} {
		response, body := exchange(t, dial(t, l), text)
		if response.StatusCode != status {
			t.Errorf("%.60q: status %d: %s", text, response.StatusCode, body)
		}
		if status == http.StatusOK {
			continue
		}
		var said struct{ Error, Message string }
		if err := json.Unmarshal([]byte(body), &said); err != nil || said.Error != "invalid_request" || said.Message == "" ||
			response.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(response.Header.Get("X-Request-Id"), "req_") || !response.Close {
			t.Errorf("%.60q: %v %s", text, response.Header, body)
		}
	}
}

// TestHostileHeadersAreNoServerError sends what no client sends to everything that
// is mounted.
func TestHostileHeadersAreNoServerError(t *testing.T) {
	t.Parallel()
	base, _ := startServer(t)
	address := strings.TrimPrefix(base, "http://")
	paths := []string{
		"/", "/v1/credits", "/v1/events", "/v1/openapi.json", "/healthz", "/readyz", "/login", "/setup/x", "/o", "/docs", "/static/x", "/nowhere",
		"/webhooks/stripe/con_x", "/sandbox/stripe/v1/customers", "/sandbox/stripe/v1/nothing", "/sandbox/control/x", "/sandbox/pay/x", "/sandbox/x",
	}
	headers := []string{
		"Authorization: Bearer \xff", "Authorization: Bearer sk_test_\xff\xfe", "Authorization: Basic \xff", "Authorization: Bearer psr_test_\xff",
		"Idempotency-Key: \xff", "Stripe-Version: \xff", "Stripe-Signature: t=\xff,v1=\xff", "Cookie: purser=\xff; \xff", "Content-Type: \xff",
		"Accept-Encoding: \xff", "X-Forwarded-For: \xff", "Traceparent: \xff", "Range: bytes=\xff", "HX-Request: \xff", "Origin: \xff",
		"Referer: \xff", "User-Agent: \xff", "If-None-Match: \xff", "Accept-Language: \xff", "X-Request-Id: \xff", "Content-Encoding: \xff",
	}
	// All at once: answers to strangers are delayed.
	var group sync.WaitGroup
	defer group.Wait()
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			group.Go(func() {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				reader := bufio.NewReader(c)
				for i, header := range headers {
					last := ""
					if i == len(headers)-1 {
						last = "Connection: close\r\n"
					}
					fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n%s\r\n%s\r\n", method, path, header, last)
					response, err := http.ReadResponse(reader, &http.Request{Method: method})
					if err != nil {
						t.Errorf("%s %s with %q: %v", method, path, header, err)
						return
					}
					body, err := io.ReadAll(response.Body)
					slow := path == "/readyz" && response.StatusCode == http.StatusServiceUnavailable // its probe, on a busy machine
					if err != nil || response.StatusCode >= http.StatusInternalServerError && !slow {
						t.Errorf("%s %s with %q: %s, %v\n%s", method, path, header, response.Status, err, body)
					}
					if response.Header.Get("X-Content-Type-Options") != "nosniff" {
						t.Errorf("%s %s: no nosniff", method, path)
					}
					if response.Close {
						c.Close()
						if c, err = net.Dial("tcp", address); err != nil {
							t.Error(err)
							return
						}
						reader = bufio.NewReader(c)
					}
				}
				c.Close()
			})
		}
	}
}

// count is how many connections are open.
func (l *connections) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// TestRequestsThatAreNoneDoNotFillTheLog sends what no handler sees, and what no limit of
// logged requests counts.
func TestRequestsThatAreNoneDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	lines := newLogWriter(&out, slog.LevelInfo, newRequestLog(defaultRequestLines, defaultRequestLines))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitConnections(listener, 100, nil, lines.log)
	server := &http.Server{Handler: http.NotFoundHandler()}
	l.bind(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	const sent = 50
	for range sent {
		c := dial(t, l)
		if response, _ := exchange(t, c, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"); response.StatusCode != http.StatusBadRequest {
			t.Fatalf("status %d", response.StatusCode)
		}
		c.Close()
	}
	_ = server.Close()
	<-ended
	lines.close()
	var written, counted float64
	for _, line := range logged(t, out.String()) {
		if line["msg"] == "request not parsed" {
			repeated, _ := line["repeated"].(float64)
			written, counted = written+1, counted+max(1, repeated)
		}
	}
	if written > sent/2 || counted != sent {
		t.Errorf("%d requests make %v lines, which count %v", sent, written, counted)
	}
}
