package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/vault"
	letters "purser/views/mail"
)

// Kind is what a mail is about. It is stored and a label of metrics.
type Kind string

// The kinds of mails.
const (
	Invitation Kind = "invitation"
	Reset      Kind = "password-reset"
	Security   Kind = "security"
	Alert      Kind = "alert"
)

const (
	// DefaultTimeout bounds the connection, and then each mail.
	DefaultTimeout = 15 * time.Second
	// Interval is the time between two runs of SendDue.
	Interval = 5 * time.Second
	// maxRun is how many mails one run sends at most.
	maxRun = 200
	// claimLease is longer than a mail can take.
	claimLease = 2 * time.Minute
	// usefulFor is how long a mail is retried, unless what it tells of ends earlier.
	usefulFor = 3 * 24 * time.Hour
	// storeTimeout bounds storing the outcome when the server stops meanwhile.
	storeTimeout = 5 * time.Second
	// A failing server is logged at once and then at this interval.
	complainEvery = 15 * time.Minute
	// LateAfter is how long a mail may wait before pages show that mail is failing.
	LateAfter = 15 * time.Minute
)

// Options are the dependencies of an outbox.
type Options struct {
	Store   *store.Store
	Vault   *vault.Vault
	Server  Server
	From    netmail.Address
	BaseURL string // of the dashboard, for links
	Log     *slog.Logger
	// TLS is the client configuration, such as other roots; nil for the system's.
	TLS     *tls.Config
	Timeout time.Duration // DefaultTimeout when zero
	// Now is the clock, in milliseconds; the database's when nil.
	Now func() int64
	// Observe is called for every attempt with its outcome: sent, retried, refused or
	// dropped. Nil for no measurement.
	Observe func(kind Kind, outcome string)
}

// Outbox writes mails and sends them. It is safe for concurrent use.
type Outbox struct {
	options Options

	mu           sync.Mutex
	failing      bool
	complainedAt time.Time
}

// New creates an outbox. Nothing is sent before SendDue.
func New(options Options) *Outbox {
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = options.Store.Clock().Now
	}
	if options.Observe == nil {
		options.Observe = func(Kind, string) {}
	}
	return &Outbox{options: options}
}

// content is what a row of the outbox seals.
type content struct {
	To     string
	Letter letters.Letter // empty for a reset, whose link is made when it is sent
	Reader *reader        `json:",omitempty"` // of a mail about an application
}

// reader is the member who gets a mail about an application. Mails may wait for days, in
// which members lose their access or unsubscribe.
type reader struct {
	OrgID, UserID ids.ID
	Topics        []tenancy.MailTopic // it is about one of them
	Live          bool                // the application
}

// isReader reports whether the member would get the mail now.
func (o *Outbox) isReader(ctx context.Context, r reader) (bool, error) {
	m, err := o.options.Store.Org(r.OrgID).MailMember(ctx, r.UserID)
	if fault.Is(err, fault.PathNotFound) {
		return false, nil
	}
	return slices.ContainsFunc(r.Topics, func(t tenancy.MailTopic) bool { return m.GetsMail(t, m.Chosen, r.Live) }), err
}

// Place is where a sealed mail belongs.
func Place(id ids.ID) vault.Place { return vault.Place{Purpose: "mail", Row: id} }

// Seal makes a row of the outbox. Until is when the mail is of no use any more; zero for
// the usual time.
func (o *Outbox) Seal(kind Kind, to string, letter letters.Letter, until int64) (m people.Mail, err error) {
	return o.seal(kind, content{To: to, Letter: letter}, until)
}

func (o *Outbox) seal(kind Kind, c content, until int64) (m people.Mail, err error) {
	now := o.options.Now()
	m = people.Mail{ID: ids.New(), Kind: string(kind), CreatedAt: now, ExpiresAt: now + usefulFor.Milliseconds()}
	if until != 0 {
		m.ExpiresAt = min(m.ExpiresAt, until)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return m, fmt.Errorf("mail: %w", err)
	}
	m.Sealed, err = o.options.Vault.Seal(Place(m.ID), text)
	return m, err
}

// SendDue sends the mails that are due. A failure of the server ends the run and is
// logged; the mails stay in the outbox.
func (o *Outbox) SendDue(ctx context.Context) error {
	var conn *connection
	defer func() {
		if conn != nil {
			conn.close()
		}
	}()
	for range maxRun {
		if end, bounded := ctx.Deadline(); ctx.Err() != nil || bounded && time.Until(end) < 2*o.options.Timeout {
			return nil // the next run continues
		}
		m, found, err := o.options.Store.Outbox().Claim(ctx, o.options.Now(), claimLease)
		if err != nil || !found {
			return err
		}
		err = o.deliver(ctx, &conn, m)
		storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		goOn, err := o.conclude(storing, m, err)
		cancel()
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// errDropped is a mail of no use: it expired, its address has no account, or its reader
// does not get it any more.
var errDropped = errors.New("mail: dropped")

// deliver sends one mail, over the connection of the run.
func (o *Outbox) deliver(ctx context.Context, conn **connection, m people.ClaimedMail) error {
	now := o.options.Now()
	if now >= m.ExpiresAt {
		o.options.Log.Warn("mail dropped, it could not be sent in time", "mail", m.ID.String(), "kind", m.Kind, "tries", m.Tries-1)
		return errDropped
	}
	text, err := o.options.Vault.Open(Place(m.ID), m.Sealed)
	if err != nil {
		return err
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	if c.Reader != nil {
		if reads, err := o.isReader(ctx, *c.Reader); err != nil {
			return err
		} else if !reads {
			o.options.Log.Info("mail dropped, the member does not get it any more", "mail", m.ID.String(), "kind", m.Kind)
			return errDropped
		}
	}
	if *conn == nil { // before a link is made that would not be sent
		if *conn, err = o.dial(ctx); err != nil {
			*conn = nil
			return err
		}
	}
	if Kind(m.Kind) == Reset {
		if c.Letter, err = o.resetLetter(ctx, m.ID, c.To, now); err != nil {
			return err
		}
	}
	html, err := c.Letter.HTML(ctx)
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	return (*conn).send(message{
		id: m.ID, to: c.To, subject: c.Letter.SubjectLine(), text: c.Letter.Text(), html: html, at: time.UnixMilli(m.CreatedAt).UTC(),
	})
}

// conclude stores what became of a mail, and reports whether the run goes on.
func (o *Outbox) conclude(ctx context.Context, m people.ClaimedMail, err error) (goOn bool, _ error) {
	var f *failure
	failed := errors.As(err, &f)
	kind, outbox := Kind(m.Kind), o.options.Store.Outbox()
	switch {
	case err == nil:
		o.recovered()
		o.options.Observe(kind, "sent")
		return true, outbox.Remove(ctx, m)
	case errors.Is(err, errDropped):
		o.options.Observe(kind, "dropped")
		return true, outbox.Remove(ctx, m)
	case failed && f.refused:
		o.options.Log.Error("mail refused by the SMTP server", "mail", m.ID.String(), "kind", m.Kind, "cause", f)
		o.options.Observe(kind, "refused")
		return true, outbox.Remove(ctx, m)
	}
	o.options.Observe(kind, "retried")
	if failed && f.server {
		o.complain(f)
	} else {
		o.options.Log.Warn("mail not sent, will retry", "mail", m.ID.String(), "kind", m.Kind, "tries", m.Tries, "cause", err)
	}
	return !failed || !f.server, outbox.Retry(ctx, m, o.options.Now()+retryDelay(m.Tries).Milliseconds())
}

// retryDelay doubles from a quarter of a minute to half an hour.
func retryDelay(tries int) time.Duration {
	return min(30*time.Minute, 15*time.Second<<min(max(tries-1, 0), 10))
}

// complain logs a failing server, not for every mail.
func (o *Outbox) complain(f *failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); !o.failing || now.Sub(o.complainedAt) >= complainEvery {
		o.failing, o.complainedAt = true, now
		o.options.Log.Error("SMTP server failed, mails are waiting", "cause", f)
	}
}

func (o *Outbox) recovered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing {
		o.failing = false
		o.options.Log.Info("SMTP server accepts mail again")
	}
}

// LateSince is since when the oldest mail has been waiting, if that is too long; zero
// otherwise.
func (o *Outbox) LateSince(ctx context.Context) (int64, error) {
	queue, err := o.options.Store.Outbox().Waiting(ctx)
	if err != nil || queue.Since == 0 || o.options.Now()-queue.Since < LateAfter.Milliseconds() {
		return 0, err
	}
	return queue.Since, nil
}
