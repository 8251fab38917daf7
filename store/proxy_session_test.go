package store_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// proxySession is one client's connection, carried through.
type proxySession struct {
	proxy    *faultProxy
	client   net.Conn
	server   net.Conn
	prepared map[string]string // statements by name, as the client sends them

	armed  atomic.Int32 // the commitFault that the server's next messages meet
	silent atomic.Bool  // nothing passes any more
}

func (p *faultProxy) serve(client net.Conn) {
	if !p.keep(client) {
		_ = client.Close()
		return
	}
	defer p.drop(client)
	fromClient := bufio.NewReader(client)
	startup, code, err := readStartup(fromClient)
	for err == nil && (code == sslRequest || code == gssRequest) {
		if _, err = client.Write([]byte("N")); err == nil {
			startup, code, err = readStartup(fromClient)
		}
	}
	if err != nil {
		return
	}
	if p.silence.Load() {
		_, _ = io.Copy(io.Discard, fromClient) // until the client gives up, or Close
		return
	}
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	if !p.keep(server) {
		_ = server.Close()
		return
	}
	defer p.drop(server)
	if _, err := server.Write(startup); err != nil || code == cancelRequest {
		return
	}
	s := &proxySession{proxy: p, client: client, server: server, prepared: make(map[string]string)}
	var ways sync.WaitGroup
	ways.Go(func() { s.carry(fromClient, server, s.sent) })
	ways.Go(func() { s.carry(bufio.NewReader(server), client, s.received) })
	ways.Wait()
}

// carry passes messages on until one side ends or a fault ends both. The look
// says how much of the message passes, and whether anything may come after it.
func (s *proxySession) carry(from *bufio.Reader, to net.Conn, look func(proxyFrame) (pass int, more bool)) {
	defer s.cut()
	out := bufio.NewWriter(to)
	for {
		f, err := readFrame(from)
		if err != nil {
			return
		}
		pass, more := look(f)
		if s.proxy.silence.Load() {
			s.silent.Store(true)
		}
		if s.silent.Load() {
			continue
		}
		if _, err := out.Write(f[:pass]); err != nil {
			return
		}
		if !more || from.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return
			}
		}
		if !more {
			return
		}
	}
}

func (s *proxySession) cut() {
	_ = s.client.Close()
	_ = s.server.Close()
}

// sent looks at what the client sends.
func (s *proxySession) sent(f proxyFrame) (pass int, more bool) {
	var sql string
	switch f.kind() {
	case clientParse:
		name, rest := frameText(f.body())
		s.prepared[name], _ = frameText(rest)
		return len(f), true
	case clientBind:
		_, rest := frameText(f.body())
		name, _ := frameText(rest)
		sql = s.prepared[name]
	case clientQuery:
		sql, _ = frameText(f.body())
	default:
		return len(f), true
	}
	for _, do := range s.proxy.takeHooks(sql) {
		do()
	}
	if strings.EqualFold(strings.TrimSpace(sql), "commit") {
		return s.commit(f)
	}
	return len(f), true
}

func (s *proxySession) commit(f proxyFrame) (pass int, more bool) {
	switch fault := s.proxy.nextFault(); fault {
	case noFault:
	case beforeCommit:
		s.proxy.strike(fault)
		return 0, false
	default:
		s.armed.Store(int32(fault))
	}
	return len(f), true
}

// received looks at what the server sends.
func (s *proxySession) received(f proxyFrame) (pass int, more bool) {
	fault := commitFault(s.armed.Load())
	switch {
	case fault == afterCommit && isCommitted(f):
		s.proxy.strike(fault)
		return 0, false
	case fault == midRow && f.kind() == serverDataRow:
		s.proxy.strike(fault)
		return len(f) / 2, false
	case fault == blackHole && isCommitted(f):
		s.proxy.strike(fault)
		s.silent.Store(true)
	}
	return len(f), true
}

func isCommitted(f proxyFrame) bool {
	if f.kind() != serverCommandComplete {
		return false
	}
	tag, _ := frameText(f.body())
	return tag == "COMMIT"
}
