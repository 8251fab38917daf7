package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/web/site"
)

// spareFiles is how many file descriptors are reserved for the database, the log and the
// runtime.
const spareFiles = 256

// scanPause is how long a network without an idle connection is not scanned again: a
// scan visits every connection.
const scanPause = 100 * time.Millisecond

// connections is a listener with a limit on open connections. At the limit it closes
// those that have been idle longest; while every connection serves a request, a new one
// waits.
//
// One network may hold as many connections as are free: alone half of them, two networks
// a third each. Beyond that, idle connections of networks that hold more are closed, else
// the network's own, else the new one. Trusted proxies are exempt: they forward for many
// networks.
type connections struct {
	net.Listener
	limit   int
	proxies []netip.Prefix
	log     *slog.Logger

	mu      sync.Mutex
	open    map[*connection]struct{}
	peers   map[netip.Prefix]*peer
	closed  bool
	warned  int64         // when a refusal was last logged
	changed chan struct{} // wakes a waiting Accept when a connection closed or became idle
	waiting atomic.Bool
}

// peer counts the open connections of one network.
type peer struct {
	open int
	// scanAfter is when the network is scanned for idle connections again.
	scanAfter int64
}

type connection struct {
	net.Conn
	owner *connections
	// network is the client's network; nil for a trusted proxy.
	network *netip.Prefix
	// idleSince is when the last request ended, in nanoseconds since the process
	// started; 0 while a request is served.
	idleSince atomic.Int64
	// serving reports that a handler runs, so writes are its response.
	serving atomic.Bool
}

func limitConnections(listener net.Listener, limit int, proxies []netip.Prefix, log *slog.Logger) *connections {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(limit+spareFiles) {
		limit = max(1, int(files.Cur)-spareFiles)
		log.Warn("connections limited by open files", "connections", limit, "files", files.Cur)
	}
	return &connections{
		Listener: listener, limit: limit, proxies: proxies, log: log,
		open: make(map[*connection]struct{}), peers: make(map[netip.Prefix]*peer), changed: make(chan struct{}, 1),
	}
}

var processStarted = time.Now()

func sinceStart() int64 { return max(1, int64(time.Since(processStarted))) }

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: accepted, owner: l, network: l.networkOf(accepted.RemoteAddr())}
		c.idleSince.Store(sinceStart())
		if l.isOverShare(c) && !l.closeIdleOf(c) {
			_ = accepted.Close()
			continue
		}
		l.admit(c)
		return c, nil
	}
}

// admit waits until there is a free connection.
func (l *connections) admit(c *connection) {
	if l.add(c) {
		return
	}
	// Set before the next attempt, so that a close in between is not missed.
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	for !l.add(c) {
		if !l.closeIdle(func(*connection) bool { return true }) {
			<-l.changed
		}
	}
}

// add reports whether the connection is below the limit. A closed listener accepts it
// too: the server closes it.
func (l *connections) add(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.limit && !l.closed {
		return false
	}
	l.open[c] = struct{}{}
	if c.network != nil {
		own := l.peers[*c.network]
		if own == nil {
			own = &peer{}
			l.peers[*c.network] = own
		}
		own.open++
	}
	return true
}

func (l *connections) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return // closed before
	}
	delete(l.open, c)
	if c.network == nil {
		return
	}
	if own := l.peers[*c.network]; own.open == 1 {
		delete(l.peers, *c.network)
	} else {
		own.open--
	}
}

// networkOf is the network of the remote address, or nil for a trusted proxy.
func (l *connections) networkOf(remote net.Addr) *netip.Prefix {
	var network netip.Prefix // invalid addresses share one network
	if tcp, ok := remote.(*net.TCPAddr); ok {
		address := tcp.AddrPort().Addr().Unmap().WithZone("")
		for _, proxy := range l.proxies {
			if proxy.Contains(address) {
				return nil
			}
		}
		network = site.Network(address.String())
	}
	return &network
}

// isOverShare reports that the network may not open another connection.
func (l *connections) isOverShare(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.network == nil || l.closed {
		return false
	}
	own := l.peers[*c.network]
	return own != nil && own.open >= l.limit-len(l.open)
}

// refusalsLoggedEvery is the interval of log lines about refused connections, for all
// networks together.
const refusalsLoggedEvery = time.Second

// closeIdleOf frees a connection: of networks that hold more than this one, else of its
// own.
func (l *connections) closeIdleOf(c *connection) bool {
	l.mu.Lock()
	own := l.peers[*c.network]
	now := sinceStart()
	busy := own != nil && now < own.scanAfter
	l.mu.Unlock()
	if busy {
		return false
	}
	hasMore := func(other *connection) bool {
		own := l.peers[*c.network]
		return other.network != nil && own != nil && l.peers[*other.network].open > own.open
	}
	isOwn := func(other *connection) bool { return other.network != nil && *other.network == *c.network }
	if l.closeIdle(hasMore) || l.closeIdle(isOwn) {
		return true
	}
	l.mu.Lock()
	if own := l.peers[*c.network]; own != nil {
		own.scanAfter = now + int64(scanPause)
	}
	warns := l.warned == 0 || now-l.warned >= int64(refusalsLoggedEvery)
	if warns {
		l.warned = now
	}
	l.mu.Unlock()
	if warns {
		l.log.Warn("connections refused: one network has its share of PURSER_MAX_CONNECTIONS", "network", c.network.String())
	}
	return false
}

// closeIdle closes the longest idle hundredth of the connections that match, and reports
// whether there was one. It calls match with the lock held.
func (l *connections) closeIdle(match func(*connection) bool) bool {
	type idle struct {
		*connection
		since int64
	}
	var found []idle
	l.mu.Lock()
	for c := range l.open {
		if !match(c) {
			continue
		}
		if since := c.idleSince.Load(); since > 0 {
			found = append(found, idle{c, since})
		}
	}
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b idle) int { return cmp.Compare(a.since, b.since) })
	closed := false
	for _, c := range found[:min(len(found), max(1, l.limit/100))] {
		if c.idleSince.CompareAndSwap(c.since, 0) { // no request has begun since
			_ = c.Close()
			closed = true
		}
	}
	return closed
}

func (l *connections) notify() {
	if !l.waiting.Load() {
		return
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Close implements net.Listener.
func (l *connections) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.notify()
	return l.Listener.Close()
}

// bind tracks the state of the server's connections.
func (l *connections) bind(server *http.Server) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		own, ours := c.(*connection)
		if !ours {
			return
		}
		switch state {
		case http.StateActive:
			own.idleSince.Store(0)
		case http.StateIdle:
			own.serving.Store(false)
			own.idleSince.Store(sinceStart())
			l.notify()
		}
	}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, ours := r.Context().Value(connectionKey{}).(*connection); ours {
			own.serving.Store(true)
		}
		handler.ServeHTTP(w, r)
	})
}

type connectionKey struct{}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.owner.remove(c)
	c.owner.notify()
	return c.Conn.Close()
}

// Write implements net.Conn. net/http answers a request that it cannot parse before
// any handler runs, in plain text or without a body: Write replaces that by a JSON error.
func (c *connection) Write(text []byte) (int, error) {
	if !c.serving.Load() {
		if status, refused := parseOwnReply(text); refused {
			if _, err := c.Conn.Write(c.errorReply(status)); err != nil {
				return 0, err
			}
			return len(text), nil
		}
	}
	return c.Conn.Write(text)
}

// parseOwnReply reads the status of an error that net/http wrote itself. What it calls a
// server error (an unknown transfer coding or version) is the client's mistake.
func parseOwnReply(text []byte) (status int, refused bool) {
	rest, found := bytes.CutPrefix(text, []byte("HTTP/1.1 "))
	if !found || len(rest) < 3 {
		return 0, false
	}
	status, err := strconv.Atoi(string(rest[:3]))
	if status >= http.StatusInternalServerError {
		return http.StatusBadRequest, err == nil
	}
	return status, err == nil && status >= http.StatusBadRequest
}

func (c *connection) errorReply(status int) []byte {
	id := ids.New().Format(ids.Request)
	c.owner.log.Warn("request not parsed", "request", id, "status", status)
	body := fmt.Sprintf(`{"error":%q,"message":%q}`, fault.InvalidRequest, "The request is not valid HTTP: "+http.StatusText(status)+".")
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\n"+
		"Cache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), id, len(body), body)
}
