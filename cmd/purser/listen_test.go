package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"purser/notify"
)

// hookReceiver is a developer's program.
type hookReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []notify.Body
	raw    []http.Header
	bodies [][]byte
	status func(attempt int) int // of the answer; 204 when nil
	calls  int
}

func newHookReceiver(t *testing.T, status func(attempt int) int) *hookReceiver {
	t.Helper()
	r := &hookReceiver{status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		answer := http.StatusNoContent
		if r.status != nil {
			answer = r.status(r.calls)
		}
		r.calls++
		if answer < 300 {
			var n notify.Body
			if err := json.Unmarshal(body, &n); err != nil {
				t.Error(err)
			}
			r.got, r.raw, r.bodies = append(r.got, n), append(r.raw, request.Header.Clone()), append(r.bodies, body)
		}
		w.WriteHeader(answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *hookReceiver) received() []notify.Body {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// startListen runs 'purser listen' until end is called, which gives what it printed.
func startListen(t *testing.T, environ []string, args ...string) (out *safeBuffer, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = new(safeBuffer)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append([]string{"listen"}, args...), environ, out, out) }()
	var once sync.Once
	var err error
	end = func() error {
		once.Do(func() { cancel(); err = <-ended })
		return err
	}
	t.Cleanup(func() { _ = end() })
	return out, end
}

func TestListen(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	key := makeKey(t, environ, "Listening", "setup")
	deposit := func(t *testing.T, identity string) {
		t.Helper()
		body := `{"identity": "` + identity + `", "creditKey": "tokens", "amountNanocredits": "5", "idempotencyKey": "` + identity + `"}`
		if status, answer := fetch(t, http.MethodPost, base+"/v1/deposits", key, body); status != http.StatusCreated {
			t.Fatalf("the deposit answers %d %s", status, answer)
		}
	}
	fetch(t, http.MethodPost, base+"/v1/credits", key, `{"key": "tokens", "name": "Tokens", "unit": "token"}`)
	deposit(t, "early")
	seqOf := func(t *testing.T, identity string) int64 {
		t.Helper()
		var page feedPage
		eventually(t, "the feed has "+identity, func() bool {
			_, text := fetch(t, http.MethodGet, base+"/v1/notifications?identity="+identity, key, "")
			page = feedPage{}
			return json.Unmarshal([]byte(text), &page) == nil && len(page.Data) == 1
		})
		return page.Data[0].Seq
	}
	first := seqOf(t, "early")

	// The server goes away and comes back behind this address.
	var gone atomic.Bool
	var refused atomic.Int64
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			refused.Add(1)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)

	settings := append([]string{"PURSER_URL=" + front.URL, "PURSER_KEY=" + key}, environ...)

	t.Run("forwards what is new, signed, with one line each", func(t *testing.T) {
		receiver := newHookReceiver(t, nil)
		out, end := startListen(t, settings, "--forward", receiver.URL+"/hooks")
		eventually(t, "it prints its secret", func() bool { return strings.Contains(out.String(), "whsec_") })
		deposit(t, "one")
		deposit(t, "two")
		eventually(t, "two notifications arrive", func() bool { return len(receiver.received()) == 2 })
		eventually(t, "it printed both", func() bool { return strings.Count(out.String(), "→ 204 in ") == 2 })
		if err := end(); err != nil {
			t.Errorf("Ctrl-C ends it with %v", err)
		}
		got := receiver.received()
		if got[0].Identity != "one" || got[1].Identity != "two" || *got[1].PreviousSeq != got[0].Seq || got[0].Seq <= first {
			t.Errorf("received %+v", got)
		}
		hooks, err := standardwebhooks.NewWebhook(regexp.MustCompile(`whsec_\S+`).FindString(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		for i, body := range receiver.bodies {
			if err := hooks.Verify(body, receiver.raw[i]); err != nil {
				t.Errorf("the official library refuses it: %v", err)
			}
		}
		if text := out.String(); !strings.Contains(text, "deposit.created  one  → 204") || !strings.Contains(text, "add --after ") {
			t.Errorf("it printed\n%s", text)
		}
	})
	t.Run("starts after a number, and only sends the types that are asked for", func(t *testing.T) {
		receiver := newHookReceiver(t, nil)
		_, end := startListen(t, settings, "--forward", receiver.URL, "--after", "0", "--types", "deposit.created,key.revoked")
		eventually(t, "all come", func() bool { return len(receiver.received()) == 3 })
		if err := end(); err != nil || receiver.received()[0].Seq != first {
			t.Errorf("%v, %+v", err, receiver.received())
		}
	})
	t.Run("survives a restart of the server, and loses nothing", func(t *testing.T) {
		receiver := newHookReceiver(t, nil)
		l := listener{
			server: front.URL, key: key, forward: receiver.URL, client: &http.Client{}, out: io.Discard, errors: io.Discard,
			reconnect: time.Millisecond, maxReconnect: 10 * time.Millisecond,
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		gone.Store(true)
		go func() { ended <- l.run(ctx, first) }()
		eventually(t, "it is refused some times", func() bool { return refused.Load() > 2 })
		gone.Store(false)
		eventually(t, "both come", func() bool { return len(receiver.received()) == 2 })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("tries a failing receiver again, then goes on", func(t *testing.T) {
		receiver := newHookReceiver(t, func(attempt int) int {
			if attempt < 4 { // one attempt more than the first notification gets
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
		var out safeBuffer
		l := listener{
			server: base, key: key, forward: receiver.URL, client: &http.Client{}, out: &out, errors: io.Discard,
			retries: []time.Duration{time.Millisecond, time.Millisecond}, reconnect: time.Millisecond, maxReconnect: time.Millisecond,
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.run(ctx, first) }()
		eventually(t, "the second comes", func() bool { return len(receiver.received()) == 1 })
		cancel()
		<-ended
		if got := receiver.received()[0]; got.Identity != "two" || !strings.Contains(out.String(), "one  → 500 in ") || !strings.Contains(out.String(), "Gave up after 3 attempts") {
			t.Errorf("received %+v and printed\n%s", got, out.String())
		}
	})
	t.Run("says what is wrong", func(t *testing.T) {
		for _, wrong := range []struct {
			environ []string
			args    []string
			says    string
		}{
			{settings, nil, "--forward"},
			{environ, []string{"--forward", "http://localhost:1"}, "PURSER_KEY"},
			{settings, []string{"--forward", "localhost:1"}, "--forward must be an absolute URL"},
			{append([]string{"PURSER_URL=" + base, "PURSER_KEY=psr_test_wrong"}, environ...), []string{"--forward", "http://localhost:1"}, "answers 401"},
			{settings, []string{"--forward", "http://localhost:1", "--types", "nothing"}, "answers 400"},
		} {
			var out safeBuffer
			err := run(t.Context(), append([]string{"listen"}, wrong.args...), wrong.environ, &out, &out)
			if err == nil || !strings.Contains(err.Error(), wrong.says) || strings.Contains(err.Error(), "psr_") {
				t.Errorf("%v says %v", wrong.args, err)
			}
		}
	})
}
