package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"purser/httpd/outgoing"
	"purser/notify"
)

const (
	// listenWait is how long a request for the feed waits, in seconds, and listenTimeout
	// when it is given up.
	listenWait    = 25
	listenTimeout = 40 * time.Second
	// forwardTimeout bounds one attempt, as for a webhook.
	forwardTimeout = 15 * time.Second
	// maxListenAnswer bounds a page of the feed.
	maxListenAnswer = 16 << 20
	listenPage      = 200
)

// listener forwards the feed of an application to a program on this machine.
type listener struct {
	server  string // without a slash at its end
	key     string
	forward string
	types   string // separated by commas; empty for all
	secret  notify.Secret
	client  *http.Client
	out     io.Writer
	errors  io.Writer
	// retries are the delays before further attempts of one notification.
	retries []time.Duration
	// reconnect is the delay before the next request to a server that fails, and
	// maxReconnect what it grows to.
	reconnect, maxReconnect time.Duration
}

// listen forwards notifications until the context ends.
func listen(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	if _, err := readConfig(environ); err != nil {
		return err
	}
	l := listener{
		server: "http://127.0.0.1:8080", out: stdout, errors: stderr,
		retries: []time.Duration{time.Second, 3 * time.Second}, reconnect: time.Second, maxReconnect: 10 * time.Second,
		client: outgoing.NewClient(http.DefaultTransport),
	}
	for _, pair := range environ {
		switch name, value, _ := strings.Cut(pair, "="); {
		case value == "":
		case name == "PURSER_URL":
			l.server = value
		case name == "PURSER_KEY":
			l.key = value
		}
	}
	after := int64(-1)
	flags := flag.NewFlagSet("listen", flag.ContinueOnError)
	flags.StringVar(&l.server, "url", l.server, "address of the server (PURSER_URL)")
	flags.StringVar(&l.forward, "forward", "", "where to send notifications, such as http://localhost:3000/hooks")
	flags.StringVar(&l.types, "types", "", "types of notifications, separated by commas (default all)")
	flags.Func("after", "forward notifications with a higher number (default only new ones)", func(text string) (err error) {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return errors.New("must be the number of a notification, 0 for all")
		}
		return nil
	})
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	var err error
	if l.secret, err = notify.NewSecret(rand.Reader); err != nil {
		return err
	}
	if err := l.run(ctx, after); ctx.Err() == nil {
		return err
	}
	return nil
}

func (l *listener) check() error {
	if l.forward == "" {
		return errors.New("listen needs --forward with the address of your program, such as http://localhost:3000/hooks")
	}
	if l.key == "" {
		return errors.New("listen needs an API key with the permission notifications:read in PURSER_KEY")
	}
	for name, address := range map[string]string{"--forward": l.forward, "--url": l.server} {
		if !isAbsoluteURL(address) {
			return fmt.Errorf("%s must be an absolute URL, such as http://localhost:3000", name)
		}
	}
	l.server = strings.TrimRight(l.server, "/")
	return nil
}

func isAbsoluteURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

type feedPage struct {
	Data      []notify.Body `json:"data"`
	NextAfter int64         `json:"nextAfter"`
	Last      int64         `json:"last"`
}

// run forwards what comes after a number, or only what is new when it is negative.
func (l *listener) run(ctx context.Context, after int64) error {
	if after < 0 {
		page, err := l.read(ctx, "limit=1")
		if err != nil {
			return err
		}
		after = page.Last
	}
	fmt.Fprintf(l.out, "Forwarding notifications after #%d to %s.\nSigning secret of this session: %s\nPress Ctrl-C to stop.\n", after, l.forward, l.secret.Reveal())
	previous := int64(0)
	for ctx.Err() == nil {
		query := url.Values{"after": {strconv.FormatInt(after, 10)}, "wait": {strconv.Itoa(listenWait)}, "limit": {strconv.Itoa(listenPage)}}
		if l.types != "" {
			query.Set("types", l.types)
		}
		page, err := l.read(ctx, query.Encode())
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, n := range page.Data {
			if !l.deliver(ctx, n, previous) {
				break
			}
			previous, after = n.Seq, n.Seq
		}
		if ctx.Err() == nil {
			after = max(after, page.NextAfter)
		}
	}
	_, err := fmt.Fprintf(l.out, "Stopped. To continue from here, add --after %d.\n", after)
	return err
}

// read reads a page of the feed. While the server does not answer, it tries again.
func (l *listener) read(ctx context.Context, query string) (page feedPage, err error) {
	for wait := l.reconnect; ; wait = min(2*wait, l.maxReconnect) {
		retry, err := l.request(ctx, query, &page)
		if err == nil || !retry || ctx.Err() != nil {
			return page, err
		}
		fmt.Fprintf(l.errors, "purser listen: %s. Trying again.\n", err)
		if !pause(ctx, wait) {
			return page, ctx.Err()
		}
	}
}

// request asks once, and reports whether an error may pass.
func (l *listener) request(ctx context.Context, query string, page *feedPage) (retry bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server+"/v1/notifications?"+query, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+l.key)
	response, err := l.client.Do(request)
	if err != nil {
		return true, fmt.Errorf("no answer from %s", l.server)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxListenAnswer))
	if err != nil {
		return true, fmt.Errorf("the answer of %s was cut off", l.server)
	}
	if response.StatusCode != http.StatusOK {
		var refusal struct{ Message string }
		_ = json.Unmarshal(text, &refusal) // of a proxy it may be no JSON
		retry := response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests
		return retry, fmt.Errorf("%s answers %d: %s", l.server, response.StatusCode, printable(refusal.Message))
	}
	*page = feedPage{}
	if err := json.Unmarshal(text, page); err != nil {
		return true, fmt.Errorf("%s answers with something else than a feed", l.server)
	}
	return false, nil
}

// deliver forwards a notification, with some attempts, and prints what came of it. It
// returns false when the context ended first.
func (l *listener) deliver(ctx context.Context, n notify.Body, previous int64) bool {
	n.PreviousSeq = &previous
	message, err := json.Marshal(n)
	if err != nil {
		message = nil // what was decoded encodes
	}
	line := fmt.Sprintf("#%d  %s", n.Seq, n.Type)
	if n.Identity != "" {
		line += "  " + printable(n.Identity)
	}
	for attempt := 0; ; attempt++ {
		result, accepted := l.send(ctx, n.ID, message)
		if ctx.Err() != nil {
			return false
		}
		now := time.Now().Format(time.TimeOnly)
		switch {
		case accepted:
			fmt.Fprintf(l.out, "%s  %s  → %s\n", now, line, result)
			return true
		case attempt == len(l.retries):
			fmt.Fprintf(l.out, "%s  %s  → %s. Gave up after %d attempts; send it again with --after %d.\n", now, line, result, attempt+1, n.Seq-1)
			return true
		}
		fmt.Fprintf(l.out, "%s  %s  → %s. Trying again in %s.\n", now, line, result, l.retries[attempt])
		if !pause(ctx, l.retries[attempt]) {
			return false
		}
	}
}

// send posts one message, signed for this attempt.
func (l *listener) send(ctx context.Context, id string, message []byte) (result string, accepted bool) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.forward, bytes.NewReader(message))
	if err != nil {
		return "the address can't be used", false
	}
	started := time.Now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Purser-Listen/1.0")
	request.Header.Set(notify.HeaderID, id)
	request.Header.Set(notify.HeaderTimestamp, strconv.FormatInt(started.Unix(), 10))
	request.Header.Set(notify.HeaderSignature, notify.Sign(id, started.Unix(), message, l.secret))
	response, err := l.client.Do(request)
	if err != nil {
		return "no answer from " + request.URL.Host, false
	}
	response.Body.Close()
	took := time.Since(started).Milliseconds()
	return fmt.Sprintf("%d in %d ms", response.StatusCode, took), notify.Result{Status: response.StatusCode}.Accepted()
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// printable is a text for a terminal: control characters in an identity would change what
// is on it.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
