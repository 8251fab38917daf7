package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// faultProxy stands between clients and one Postgres, on the loopback. It reads the framing
// of Postgres's protocol, so a test can end a connection at the one message it is about. A
// fault is planned by the number of the COMMIT that passes, over all connections, so a plan
// from a seed can be drawn again; whatever is not broken passes unchanged. It declines TLS.
type faultProxy struct {
	listener net.Listener
	database *url.URL
	network  string // of the server
	address  string
	sessions sync.WaitGroup
	silence  atomic.Bool

	mu      sync.Mutex
	plan    faultPlan
	commits int
	struck  map[commitFault]int
	hooks   []proxyHook
	open    map[net.Conn]struct{}
	closed  bool
}

// startProxy listens on the loopback for clients of the database.
func startProxy(databaseURL string) (*faultProxy, error) {
	database, err := url.Parse(databaseURL)
	if err != nil {
		return nil, errors.New("fault proxy: the database's address cannot be read")
	}
	p := &faultProxy{database: database, struck: make(map[commitFault]int), open: make(map[net.Conn]struct{})}
	p.network, p.address = serverOf(database)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	p.sessions.Go(p.accept)
	return p, nil
}

// serverOf finds the server as libpq does: the query may name its host, and a
// host that is a path is a folder with a socket in it.
func serverOf(database *url.URL) (network, address string) {
	host, port := database.Hostname(), database.Port()
	if given := database.Query().Get("host"); given != "" {
		host = given
	}
	if given := database.Query().Get("port"); given != "" {
		port = given
	}
	port = cmp.Or(port, "5432")
	if strings.HasPrefix(host, "/") {
		return "unix", filepath.Join(host, ".s.PGSQL."+port)
	}
	return "tcp", net.JoinHostPort(host, port)
}

// URL is the database's address through the proxy.
func (p *faultProxy) URL() string {
	through := *p.database
	query := through.Query()
	_, port, _ := net.SplitHostPort(p.listener.Addr().String())
	query.Set("host", "127.0.0.1")
	query.Set("port", port)
	query.Set("sslmode", "disable")
	through.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // Postgres clients take a plus for a plus
	return through.String()
}

// Close ends every connection.
func (p *faultProxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for conn := range p.open {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.sessions.Wait()
}

func (p *faultProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.sessions.Go(func() { p.serve(client) })
	}
}

// keep remembers a connection so that Close can end it; false after Close.
func (p *faultProxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open[conn] = struct{}{}
	}
	return !p.closed
}

func (p *faultProxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
	_ = conn.Close()
}

// takeHooks gives the hooks that wait for the statement, each of them once.
func (p *faultProxy) takeHooks(sql string) (due []func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.hooks[:0]
	for _, h := range p.hooks {
		if strings.Contains(sql, h.text) {
			due = append(due, h.do)
		} else {
			kept = append(kept, h)
		}
	}
	p.hooks = kept
	return due
}
