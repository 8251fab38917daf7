package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"purser/ids"
)

// message is a mail as the SMTP server gets it.
type message struct {
	id                  ids.ID
	to                  string
	subject, text, html string
	at                  time.Time
}

// failure is why a mail was not delivered. It has no text of the server, which often
// repeats the address.
type failure struct {
	code     int    // of SMTP; zero for none
	enhanced string // such as 5.1.1; empty for none
	// refused is final: the server does not take this mail, now or later.
	refused bool
	// server concerns every mail: no connection, no authentication, no sender.
	server bool
	cause  error // of the network or of TLS; nil for an answer of the server
}

func (f *failure) Error() string {
	switch {
	case f.cause != nil:
		return f.cause.Error()
	case f.enhanced != "":
		return fmt.Sprintf("SMTP %d %s", f.code, f.enhanced)
	}
	return fmt.Sprintf("SMTP %d", f.code)
}

// connection is one connection to the SMTP server, for many mails.
type connection struct {
	client *gomail.Client
	conn   *smtp.Client
	from   netmail.Address
	close  func()
}

// dial connects and authenticates. The context ends the connection, also one that hangs.
func (o *Outbox) dial(ctx context.Context) (*connection, error) {
	s := o.options.Server
	config := o.options.TLS.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.ServerName, config.MinVersion = s.Host, tls.VersionTLS12
	var opened net.Conn
	options := []gomail.Option{
		gomail.WithPort(s.Port), gomail.WithTimeout(o.options.Timeout), gomail.WithTLSConfig(config), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
			if s.ImplicitTLS {
				conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, network, s.address())
			} else {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, s.address())
			}
			if err == nil {
				opened = conn
			}
			return conn, err
		}),
	}
	switch {
	case s.ImplicitTLS:
		options = append(options, gomail.WithSSL())
	case s.Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.User != "" {
		options = append(options, gomail.WithUsername(s.User), gomail.WithPassword(s.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5))
	}
	client, err := gomail.NewClient(s.Host, options...)
	if err != nil {
		return nil, err
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		if opened != nil {
			_ = opened.Close() // the library leaves it open; nothing was sent
		}
		return nil, serverFailure(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = opened.Close() })
	return &connection{client: client, conn: conn, from: o.options.From, close: func() {
		stop()
		_ = client.CloseWithSMTPClient(conn) // says goodbye; every mail has its answer already
		_ = opened.Close()
	}}, nil
}

// serverFailure keeps the status of an answer and drops its text.
func serverFailure(err error) *failure {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return &failure{code: answer.Code, server: true}
	}
	return &failure{cause: err, server: true}
}

// send delivers one mail. A connection is of no use after a failure of the server.
func (c *connection) send(m message) error {
	mail := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	mail.FromMailAddress(&c.from)
	mail.ToMailAddress(&netmail.Address{Address: m.to})
	mail.Subject(m.subject)
	mail.SetDateWithValue(m.at)
	_, domain, _ := strings.Cut(c.from.Address, "@")
	mail.SetMessageIDWithValue(m.id.String() + "@" + domain)
	mail.SetGenHeader("Auto-Submitted", "auto-generated")
	mail.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	mail.SetBodyString(gomail.TypeTextPlain, m.text)
	mail.AddAlternativeString(gomail.TypeTextHTML, m.html)
	err := c.client.SendWithSMTPClient(c.conn, mail)
	if err == nil || mail.IsDelivered() { // a failed RSET does not take a mail back
		return nil
	}
	sent, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return serverFailure(err)
	}
	f := &failure{code: sent.ErrorCode(), enhanced: sent.EnhancedStatusCode()}
	if f.code == 0 {
		f.cause = errors.New("the connection broke")
	}
	switch sent.Reason {
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
		// 5.7 is policy, such as "relaying denied": an operator can change that.
		f.refused = f.code >= 500 && !strings.HasPrefix(f.enhanced, "5.7.")
		f.server = f.code == 0 || f.code == 421
	case gomail.ErrGetRcpts:
		f.refused = true
	default:
		f.server = true
	}
	return f
}
