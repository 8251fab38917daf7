package mail_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"purser/fault"
	"purser/mail"
	"purser/mail/mailtest"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy/vault"
	letters "purser/views/mail"
)

// harness is an outbox with a database of its own: a run claims every due mail.
type harness struct {
	store    *store.Store
	outbox   *mail.Outbox
	log      *lines
	mu       sync.Mutex
	now      int64
	outcomes []string
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newHarness(t *testing.T, server mail.Server, options mail.Options) *harness {
	t.Helper()
	return newHarnessOn(t, storetest.FreshURL(t), server, options)
}

func newHarnessOn(t *testing.T, url string, server mail.Server, options mail.Options) *harness {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	seals, err := vault.New(rand.Reader, []byte(strings.Repeat("m", vault.MinSecret)))
	noError(t, err)
	h := &harness{store: db, log: &lines{}, now: db.Clock().Now()}
	options.Store, options.Vault, options.Server, options.BaseURL = db, seals, server, "https://purser.example.com"
	options.From = netmail.Address{Name: "Purser", Address: "billing@example.com"}
	options.Timeout = cmp.Or(options.Timeout, 5*time.Minute) // longer than a busy machine takes
	options.Log = slog.New(slog.NewTextHandler(h.log, nil))
	options.Now = h.clock
	options.Observe = func(_ mail.Kind, outcome string) { h.outcomes = append(h.outcomes, outcome) }
	h.outbox = mail.New(options)
	return h
}

func (h *harness) clock() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *harness) advance(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += by.Milliseconds()
}

func (h *harness) queue(t *testing.T, to string) people.Mail {
	t.Helper()
	m, err := h.outbox.Seal(mail.Security, to, mail.PasswordLetter(mail.Where{At: h.clock(), Address: "192.0.2.1"}), 0)
	noError(t, err)
	noError(t, h.store.Outbox().Queue(t.Context(), m))
	return m
}

func (h *harness) waiting(t *testing.T) int64 {
	t.Helper()
	queue, err := h.store.Outbox().Waiting(t.Context())
	noError(t, err)
	return queue.Waiting
}

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func startTLS(s *mailtest.Server) (mail.Server, mail.Options) {
	return mail.Server{Host: "127.0.0.1", Port: s.Port, User: mailtest.User, Password: mailtest.Password}, mail.Options{TLS: &tls.Config{RootCAs: s.Roots}}
}

func TestMailsAreDelivered(t *testing.T) {
	t.Parallel()
	for name, implicit := range map[string]bool{"over STARTTLS": false, "over implicit TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mailtest.Start(t, mailtest.Options{ImplicitTLS: implicit})
			server, options := startTLS(s)
			server.ImplicitTLS = implicit
			h := newHarness(t, server, options)
			first, second := h.queue(t, "ada@example.com"), h.queue(t, "grace@example.com")
			noError(t, h.outbox.SendDue(t.Context()))
			if h.waiting(t) != 0 || len(s.Received()) != 2 {
				t.Fatalf("%d mails wait, %d arrived: %s", h.waiting(t), len(s.Received()), h.log)
			}
			for i, m := range []people.Mail{first, second} {
				got := s.Received()[i]
				if !got.TLS || !got.SignedIn || got.From != "billing@example.com" {
					t.Errorf("TLS %t, signed in %t, from %s", got.TLS, got.SignedIn, got.From)
				}
				if id := got.Header.Get("Message-Id"); id != "<"+m.ID.String()+"@example.com>" {
					t.Errorf("Message-ID %s", id)
				}
				if got.Subject != "Your Purser password was changed" || !strings.Contains(got.Text, "192.0.2.1") || !strings.Contains(got.HTML, "192.0.2.1") {
					t.Errorf("%s\n%s\n%s", got.Subject, got.Text, got.HTML)
				}
				if got.Header.Get("Auto-Submitted") != "auto-generated" {
					t.Errorf("an absence reply would be sent to %v", got.Header)
				}
			}
		})
	}
}

func TestTheOutboxHidesAddressesAndTexts(t *testing.T) {
	t.Parallel()
	h := newHarness(t, mail.Server{Host: "127.0.0.1", Port: 1}, mail.Options{})
	h.queue(t, "ada@example.com")
	m, found, err := h.store.Outbox().Claim(t.Context(), h.clock(), time.Minute)
	noError(t, err)
	if !found || strings.Contains(string(m.Sealed), "example.com") || strings.Contains(string(m.Sealed), "password") {
		t.Errorf("found %t, sealed %q", found, m.Sealed)
	}
}

func TestARefusedAddressIsGivenUp(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{OnRcpt: func(to string) error {
		if to == "gone@example.com" {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no mailbox " + to}
		}
		return nil
	}})
	server, options := startTLS(s)
	h := newHarness(t, server, options)
	h.queue(t, "gone@example.com")
	h.queue(t, "ada@example.com")
	noError(t, h.outbox.SendDue(t.Context()))
	if h.waiting(t) != 0 || len(s.To("ada@example.com")) != 1 {
		t.Errorf("%d mails wait, %d arrived", h.waiting(t), len(s.Received()))
	}
	if log := h.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "550 5.1.1") || strings.Contains(log, "@example.com") {
		t.Errorf("the log must have the status and no address:\n%s", log)
	}
}

func TestATemporaryRefusalIsRetriedLater(t *testing.T) {
	t.Parallel()
	refusals := 2
	s := mailtest.Start(t, mailtest.Options{OnData: func(string) error {
		if refusals--; refusals >= 0 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "greylisted, ada@example.com"}
		}
		return nil
	}})
	server, options := startTLS(s)
	h := newHarness(t, server, options)
	h.queue(t, "ada@example.com")
	for range 2 {
		noError(t, h.outbox.SendDue(t.Context()))
		noError(t, h.outbox.SendDue(t.Context())) // not due yet
		if h.waiting(t) != 1 || len(s.Received()) != 0 {
			t.Fatalf("%d mails wait, %d arrived", h.waiting(t), len(s.Received()))
		}
		h.advance(time.Minute)
	}
	noError(t, h.outbox.SendDue(t.Context()))
	if h.waiting(t) != 0 || len(s.Received()) != 1 {
		t.Errorf("%d mails wait, %d arrived: %s", h.waiting(t), len(s.Received()), h.log)
	}
	if strings.Contains(h.log.String(), "@example.com") {
		t.Errorf("an address in the log:\n%s", h.log)
	}
}

// TestAServerThatDoesNotWorkLosesNothing covers what concerns all mails: they stay, one
// error is logged, and pages learn of it.
func TestAServerThatDoesNotWorkLosesNothing(t *testing.T) {
	t.Parallel()
	hang, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { _ = hang.Close() })
	plain := mailtest.Start(t, mailtest.Options{NoTLS: true})
	secure := mailtest.Start(t, mailtest.Options{})
	wrong, options := startTLS(secure)
	wrong.Password = "wrong horse"
	untrusted, _ := startTLS(secure)
	for name, c := range map[string]struct {
		server  mail.Server
		options mail.Options
	}{
		"it hangs":                     {mail.Server{Host: "127.0.0.1", Port: hang.Addr().(*net.TCPAddr).Port}, mail.Options{Timeout: 50 * time.Millisecond}},
		"it offers no TLS":             {mail.Server{Host: "127.0.0.1", Port: plain.Port}, mail.Options{}},
		"it refuses the password":      {wrong, options},
		"its certificate is not known": {untrusted, mail.Options{}},
		"it is down":                   {mail.Server{Host: "127.0.0.1", Port: storetest.ClosedPort(t)}, mail.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.server, c.options)
			h.queue(t, "ada@example.com")
			h.queue(t, "grace@example.com")
			noError(t, h.outbox.SendDue(t.Context()))
			noError(t, h.outbox.SendDue(t.Context()))
			if h.waiting(t) != 2 || len(h.outcomes) != 2 || h.outcomes[0] != "retried" {
				t.Errorf("%d mails wait, outcomes %v", h.waiting(t), h.outcomes)
			}
			if log := h.log.String(); strings.Count(log, "level=ERROR") != 1 || strings.Contains(log, "@example.com") || strings.Contains(log, "horse") {
				t.Errorf("log:\n%s", log)
			}
			h.advance(mail.LateAfter)
			if since, err := h.outbox.LateSince(t.Context()); err != nil || since == 0 {
				t.Errorf("late since %d, %v", since, err)
			}
			h.advance(4 * 24 * time.Hour)
			noError(t, h.outbox.SendDue(t.Context()))
			if h.waiting(t) != 0 {
				t.Errorf("%d mails are kept for ever", h.waiting(t))
			}
		})
	}
	if n := len(plain.Received()) + len(secure.Received()); n != 0 {
		t.Errorf("%d mails arrived", n)
	}
}

func TestAMailServerWithoutTLSHasToBeAskedFor(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{NoTLS: true})
	h := newHarness(t, mail.Server{Host: "127.0.0.1", Port: s.Port, Plain: true}, mail.Options{})
	h.queue(t, "ada@example.com")
	noError(t, h.outbox.SendDue(t.Context()))
	if got := s.Received(); len(got) != 1 || got[0].TLS {
		t.Errorf("%d mails arrived: %s", len(got), h.log)
	}
}

// TestANodeThatDiesSendsLater: the claim of a dead node ends, and a node that was only
// suspended removes nothing that another has claimed.
func TestANodeThatDiesSendsLater(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{})
	server, options := startTLS(s)
	h := newHarness(t, server, options)
	h.queue(t, "ada@example.com")
	dead, found, err := h.store.Outbox().Claim(t.Context(), h.clock(), time.Minute)
	noError(t, err)
	noError(t, h.outbox.SendDue(t.Context()))
	if !found || len(s.Received()) != 0 {
		t.Fatalf("found %t, %d mails arrived", found, len(s.Received()))
	}
	h.advance(time.Minute)
	again, found, err := h.store.Outbox().Claim(t.Context(), h.clock(), time.Minute)
	noError(t, err)
	noError(t, h.store.Outbox().Remove(t.Context(), dead))
	if !found || again.Tries != 2 || h.waiting(t) != 1 {
		t.Fatalf("found %t, %d tries, %d mails wait", found, again.Tries, h.waiting(t))
	}
	h.advance(time.Minute)
	noError(t, h.outbox.SendDue(t.Context()))
	if h.waiting(t) != 0 || len(s.Received()) != 1 {
		t.Errorf("%d mails wait, %d arrived", h.waiting(t), len(s.Received()))
	}
}

func TestAStoppedNodeLeavesTheConnection(t *testing.T) {
	t.Parallel()
	reached, hold := make(chan struct{}), make(chan struct{})
	s := mailtest.Start(t, mailtest.Options{OnData: func(string) error {
		close(reached)
		<-hold
		return errors.New("too late")
	}})
	server, options := startTLS(s)
	options.Timeout = 10 * time.Minute
	h := newHarness(t, server, options)
	h.queue(t, "ada@example.com")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.outbox.SendDue(ctx) }()
	<-reached
	stop()
	noError(t, <-done) // although the server has not answered
	close(hold)
	if h.waiting(t) != 1 {
		t.Errorf("%d mails wait", h.waiting(t))
	}
}

func TestNamesInjectNothing(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{})
	server, options := startTLS(s)
	h := newHarness(t, server, options)
	hostile := []string{
		"Acme\r\nBcc: victim@example.org\r\n\r\nHello", "Acme\nX-Injected: yes", "\u2028Acme", "=?UTF-8?q?Acme=0D=0ABcc:_victim?=",
		"<script>alert(1)</script>", "Your account is locked, see https://evil.example/login", strings.Repeat("Ä", 500), "\u202Eecruos", "Acme\x00", "\xff",
	}
	for _, name := range hostile {
		m, err := h.outbox.Seal(mail.Invitation, "ada@example.com", mail.InvitationLetter(name, name, "Support", "https://purser.example.com/invite/x", h.clock()), 0)
		noError(t, err)
		noError(t, h.store.Outbox().Queue(t.Context(), m))
	}
	noError(t, h.outbox.SendDue(t.Context()))
	if len(s.Received()) != len(hostile) {
		t.Fatalf("%d mails arrived: %s", len(s.Received()), h.log)
	}
	for i, got := range s.Received() {
		if len(got.Header["Bcc"])+len(got.Header["X-Injected"]) > 0 || got.To != "ada@example.com" || len(got.Header["Subject"]) != 1 {
			t.Errorf("%q: header %v to %s", hostile[i], got.Header, got.To)
		}
		if strings.ContainsAny(got.Subject, "\r\n\x00\u2028\u202E") || strings.ContainsAny(got.Text, "\r\x00\u202E") {
			t.Errorf("%q: %q, %q", hostile[i], got.Subject, got.Text)
		}
		if strings.Contains(got.HTML, "<script>") || strings.Contains(got.HTML, "evil.example") || strings.Contains(got.Text, "evil.example") {
			t.Errorf("%q:\n%s\n%s", hostile[i], got.HTML, got.Text)
		}
		if strings.Count(got.HTML, "href=") != 1 || !strings.Contains(got.HTML, `href="https://purser.example.com/invite/x"`) {
			t.Errorf("%q:\n%s", hostile[i], got.HTML)
		}
		for line := range strings.SplitSeq(got.Raw, "\r\n") {
			if len(line) > 998 {
				t.Errorf("%q: a line of %d bytes", hostile[i], len(line))
			}
		}
	}
}

func TestAScriptIsNoLink(t *testing.T) {
	t.Parallel()
	page, err := letters.Letter{Button: "Go", Link: "javascript:alert(1)"}.HTML(t.Context())
	noError(t, err)
	if strings.Contains(page, `href="javascript`) {
		t.Error(page)
	}
}

func TestServersAreParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]mail.Server{
		"smtps://purser:secret@mail.example.com":         {Host: "mail.example.com", Port: 465, ImplicitTLS: true, User: "purser", Password: "secret"},
		"smtp://purser:s%40cret@mail.example.com":        {Host: "mail.example.com", Port: 587, User: "purser", Password: "s@cret"},
		"smtp://mail.example.com:2525/":                  {Host: "mail.example.com", Port: 2525},
		"smtp://127.0.0.1:25?starttls=off":               {Host: "127.0.0.1", Port: 25, Plain: true},
		"smtp://[::1]:25":                                {Host: "::1", Port: 25},
		"smtp://purser%40example.com:x@mail.example.com": {Host: "mail.example.com", Port: 587, User: "purser@example.com", Password: "x"},
	} {
		if got, err := mail.ParseServer(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "mail.example.com", "http://mail.example.com", "smtp://", "smtp://mail.example.com/path", "smtp://mail.example.com:0", "smtp://mail.example.com:70000",
		"smtp://secret:secret@127.0.0.1?starttls=off", "smtps://mail.example.com?starttls=off", "smtp://mail.example.com?starttls=optional",
		"smtp://secret@mail.example.com", "smtp://user:secret@mail.example.com#x", "smtp://user:sec%zzret@mail.example.com",
	} {
		if _, err := mail.ParseServer(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if a, err := mail.ParseSender("Purser <billing@example.com>"); err != nil || a.Address != "billing@example.com" {
		t.Errorf("%v, %v", a, err)
	}
	for _, text := range []string{"", "billing", "a@example.com, b@example.com", "a@example.com\r\nBcc: b@example.com"} {
		if a, err := mail.ParseSender(text); err == nil {
			t.Errorf("%q is %v", text, a)
		}
	}
}

// Anyone can ask for password resets of addresses without an account.
func TestResetsDoNotDelayOtherMails(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{})
	server, options := startTLS(s)
	h := newHarness(t, server, options)
	reset := func(n int) error {
		m, err := h.outbox.Seal(mail.Reset, fmt.Sprintf("ada%d@example.com", n), letters.Letter{}, h.clock()+people.ResetLinkTTL.Milliseconds())
		noError(t, err)
		return h.store.Outbox().Queue(t.Context(), m)
	}
	const most = 1000
	for n := range most - 1 {
		noError(t, reset(n))
	}
	h.advance(time.Minute)
	h.queue(t, "bob@example.com")
	noError(t, reset(most))
	if err := reset(most + 1); !fault.Is(err, fault.Overloaded) {
		t.Errorf("one more gets %v", err)
	}
	first, found, err := h.store.Outbox().Claim(t.Context(), h.clock(), time.Minute)
	if err != nil || !found || first.Kind != string(mail.Security) {
		t.Errorf("first comes %q, %v", first.Kind, err)
	}
	if next, found, err := h.store.Outbox().Claim(t.Context(), h.clock(), time.Minute); err != nil || !found || next.Kind != string(mail.Reset) {
		t.Errorf("then comes %q, %v", next.Kind, err)
	}
}
