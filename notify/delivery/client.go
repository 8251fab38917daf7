package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"purser/httpd/outgoing"
	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
)

const (
	// DefaultTimeout bounds one attempt, from the connection to the end of the answer.
	DefaultTimeout = 15 * time.Second
	// maxAnswer is how much of an answer is kept. The rest is not read.
	maxAnswer = 2 << 10
	// maxError is how many characters of an error are kept: one about a certificate has the
	// names in it.
	maxError = 300
	// maxAnswerHeader bounds the headers of an answer.
	maxAnswerHeader = 64 << 10
	// maxIdle and maxIdlePerHost bound the connections that are kept for the next delivery.
	maxIdle        = 64
	maxIdlePerHost = 2
	userAgent      = "Purser-Webhooks/1.0"
)

// errRefused is the end of a connection to an address that webhooks may not reach.
var errRefused = errors.New("delivery: the address is not public")

// client sends webhooks. It follows no redirect, uses no proxy and checks each address
// after it was resolved, when it connects: a name that leads elsewhere at the second look
// gains nothing.
type client struct {
	http    *http.Client
	timeout time.Duration
	now     func() time.Time
}

// clientOptions tune a client. Roots are the certificates that it trusts; those of the
// system when nil.
type clientOptions struct {
	Opened  []netip.Prefix
	Timeout time.Duration
	Roots   *x509.CertPool
	Now     func() time.Time
	// Resolver looks host names up; the system's when nil.
	Resolver *net.Resolver
}

func newClient(o clientOptions) *client {
	dialer := &net.Dialer{Timeout: o.Timeout, Resolver: o.Resolver, ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") || !notify.MayReach(target.Addr(), o.Opened) {
			return errRefused
		}
		return nil
	}}
	return &client{
		timeout: o.Timeout, now: o.Now,
		http: outgoing.NewClient(&http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
			TLSHandshakeTimeout:    o.Timeout,
			DisableCompression:     true, // a small answer could become a large one
			MaxIdleConns:           maxIdle,
			MaxIdleConnsPerHost:    maxIdlePerHost,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: maxAnswerHeader,
		}),
	}
}

// webhook is one request to send.
type webhook struct {
	URL     string
	ID      string
	Message []byte
	Secrets []notify.Secret
}

// response is what came of sending a webhook.
type response struct {
	notify.Result
	Error     string // empty when an answer came
	Answer    string
	StartedAt time.Time
	Took      time.Duration
}

// send sends one webhook. Its failure is part of the response.
func (c *client) send(ctx context.Context, w webhook) (r response) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r.StartedAt = c.now()
	begun := time.Now()
	defer func() { r.Took, r.Error = time.Since(begun), clean(r.Error, maxError) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(w.Message))
	if err != nil {
		r.Error = "The URL can't be used."
		return r
	}
	if !notify.MayUsePort(request.URL) {
		r.Error = "Webhooks aren't sent to this port. Use the standard one, or one from 1024 to 65535."
		return r
	}
	timestamp := r.StartedAt.Unix()
	for _, h := range headers(w.ID, timestamp) {
		request.Header.Set(h.Name, h.Value)
	}
	request.Header.Set(notify.HeaderSignature, notify.Sign(w.ID, timestamp, w.Message, w.Secrets...))
	answer, err := c.http.Do(request)
	if err != nil {
		r.Error = c.explain(err)
		return r
	}
	defer answer.Body.Close() // what is left of a long answer ends the connection
	r.Status = answer.StatusCode
	r.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), r.StartedAt)
	beginning, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	r.Answer = clean(string(beginning), maxAnswer)
	if err != nil && len(beginning) < maxAnswer && !r.Accepted() {
		r.Error = c.explain(err)
	}
	return r
}

// clean is the beginning of a receiver's text as Postgres can store it.
func clean(text string, most int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "�")
	count := 0
	for i := range text {
		if count++; count > most {
			return text[:i]
		}
	}
	return text
}

type Header struct{ Name, Value string }

// headers are those of a webhook besides its signature.
func headers(id string, timestamp int64) []Header {
	return []Header{
		{"Content-Type", "application/json"}, {"User-Agent", userAgent},
		{notify.HeaderID, id}, {notify.HeaderTimestamp, strconv.FormatInt(timestamp, 10)},
	}
}

// Sent is the request of an attempt, made again from what is stored: its headers without
// the signature, and its body. A customer who was renamed since has the new identity in it.
func Sent(d notifications.Delivery, a notifications.Attempt, live bool) ([]Header, []byte, error) {
	body, err := d.Message(live, d.PreviousSeq)
	return headers(d.ID.Format(ids.Notification), a.StartedAt/1000), body, err
}

// retryAfter reads the header: seconds or a date. What it cannot read is zero.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(notify.MaxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), notify.MaxRetryAfter)
	}
	return 0
}

// explain says why no answer came, without the addresses that a name led to: they may
// be of the operator's network.
func (c *client) explain(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network *net.OpError
	switch {
	case errors.Is(err, errRefused):
		return "The host's address isn't public. Webhooks are only sent to public addresses."
	case errors.As(err, &lookup):
		return "The host name can't be resolved."
	case errors.As(err, &certificate):
		return "The TLS certificate isn't valid: " + certificate.Err.Error()
	case errors.As(err, &record), errors.As(err, &alert):
		return "The TLS handshake failed: " + err.Error()
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "No complete answer within " + c.timeout.String() + "."
	case errors.Is(err, context.Canceled):
		return "The server stopped before an answer came."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The connection was refused."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "The connection was closed before an answer came."
	case errors.As(err, &network):
		return "The connection failed."
	default:
		return "No valid HTTP answer came."
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
