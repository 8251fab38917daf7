package mailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// User and Password are what the server accepts.
const (
	User     = "purser"
	Password = "correct horse"
)

// Message is a received mail.
type Message struct {
	From, To string // of the envelope
	Raw      string
	Header   mail.Header
	Subject  string // decoded
	Text     string
	HTML     string
	TLS      bool
	SignedIn bool
}

// Server is a running SMTP server. Its hooks are set before the first connection.
type Server struct {
	Port int
	// Roots trust the server's certificate.
	Roots *x509.CertPool

	// OnRcpt and OnData may refuse a mail; nil accepts all.
	OnRcpt, OnData func(to string) error

	mu       sync.Mutex
	received []Message
}

// Options choose how the server speaks.
type Options struct {
	ImplicitTLS bool
	NoTLS       bool
	OnRcpt      func(to string) error
	OnData      func(to string) error
}

// Start runs a server on the loopback interface until the test ends.
func Start(tb testing.TB, options Options) *Server {
	tb.Helper()
	certificate, roots := certificate(tb)
	s := &Server{Roots: roots, OnRcpt: options.OnRcpt, OnData: options.OnData}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.Port = listener.Addr().(*net.TCPAddr).Port
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: s, conn: c}, nil }))
	server.Domain, server.ErrorLog = "mail.example.com", log.New(io.Discard, "", 0)
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	switch {
	case options.ImplicitTLS:
		listener = tls.NewListener(listener, config)
	case !options.NoTLS:
		server.TLSConfig = config
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Close
	}()
	tb.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return s
}

// Received are the mails so far.
func (s *Server) Received() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.received...)
}

// To are the mails to one address so far.
func (s *Server) To(address string) (list []Message) {
	for _, m := range s.Received() {
		if m.To == address {
			list = append(list, m)
		}
	}
	return list
}

type session struct {
	server   *Server
	conn     *smtp.Conn
	from, to string
	signedIn bool
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != Password {
			return smtp.ErrAuthFailed
		}
		s.signedIn = true
		return nil
	}), nil
}

// Reset implements smtp.Session.
func (s *session) Reset() { s.from, s.to = "", "" }

// Logout implements smtp.Session.
func (s *session) Logout() error { return nil }

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if s.server.OnRcpt != nil {
		return s.server.OnRcpt(to)
	}
	return nil
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.server.OnData != nil {
		if err := s.server.OnData(s.to); err != nil {
			return err
		}
	}
	m, err := read(string(raw))
	if err != nil {
		return err
	}
	_, encrypted := s.conn.TLSConnectionState()
	m.From, m.To, m.TLS, m.SignedIn = s.from, s.to, encrypted, s.signedIn
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.received = append(s.server.received, m)
	return nil
}

// read takes a mail apart as a mail program does.
func read(raw string) (m Message, err error) {
	parsed, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return m, err
	}
	m = Message{Raw: raw, Header: parsed.Header}
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		return m, err
	}
	_, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil {
		return m, err
	}
	parts := multipart.NewReader(parsed.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		var body io.Reader = part
		switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
		case "quoted-printable":
			body = quotedprintable.NewReader(part)
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, part)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return m, err
		}
		plain := strings.ReplaceAll(string(text), "\r\n", "\n")
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			m.HTML = plain
		} else {
			m.Text = plain
		}
	}
}

// certificate makes a certificate for the loopback interface, and what trusts it.
func certificate(tb testing.TB) (tls.Certificate, *x509.CertPool) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail.example.com"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
