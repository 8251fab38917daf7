package api_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/api"
	"purser/httpd"
	"purser/store"
	"purser/store/storetest"
)

const internalError = `{"error":"internal_error","message":"Something went wrong on our end. Retrying with the same id or idempotency key is safe."}`

// lockedBuffer is a log that a test reads. It passes everything on to the
// logbook, which watches for secrets.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(line)
	return logbook.Write(line)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// brokenNode serves from a store that the test may close, without an engine for
// usage, which no request is to find out before its turn.
func brokenNode(t *testing.T) (*node, *store.Store, *lockedBuffer) {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	log := &lockedBuffer{}
	server, err := api.New(api.Options{Store: s, CursorKey: cursorKey})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{server: server, store: s, clock: &clock{}}
	n.serve(shellOf(server, httpd.Options{Log: slog.New(slog.NewJSONHandler(log, nil))}), t.Cleanup)
	return n, s, log
}

// fixed500 fails unless the answer tells nothing, and the log tells the cause
// under the id of the request.
func fixed500(t *testing.T, got answer, log *lockedBuffer) {
	t.Helper()
	if got.is(500); string(got.body) != internalError {
		t.Errorf("the answer is %s", got.body)
	}
	id := got.header.Get("X-Request-Id")
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, id) && strings.Contains(line, `"cause"`) {
			return
		}
	}
	t.Errorf("the log has no cause for %s", id)
}

func TestPanicIsAFixed500(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	n, _, log := brokenNode(t)
	for _, r := range []request{
		adds("/v1/check", fields{"identity": newHolder(), "feature": "chat"}),
		adds("/v1/events", fields{"id": newName(), "identity": newHolder(), "feature": "chat"}),
	} {
		for range 3 { // and gives its place back
			fixed500(t, tn.on(n).send(r), log)
		}
	}
	if !strings.Contains(log.String(), "panic: ") {
		t.Error("nothing has panicked")
	}
	tn.on(n).get("/v1/credits").is(200) // others are served
}

func TestLostDatabaseIsAFixed500(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	n, s, log := brokenNode(t)
	tn.on(n).get("/v1/credits/gold").is(200)
	s.Close()
	for _, r := range []request{
		reads("/v1/credits/gold"), reads("/v1/application"), adds("/v1/wallets", fields{"identity": newHolder()}),
		adds("/v1/deposits", newDeposit(newHolder(), "gold")), changes("/v1/credits/gold", fields{"name": "New"}),
	} {
		fixed500(t, tn.on(n).send(r), log)
	}
	t.Run("a key that was never seen is not called invalid", func(t *testing.T) {
		fixed500(t, tn.on(n).in(t).with(mintSecret(t).Reveal()).get("/v1/credits"), log)
	})
	t.Run("what needs no database is still served", func(t *testing.T) {
		c := tn.on(n).in(t)
		c.get("/v1/openapi.json").is(200)
		c.get("/v1/nothing").refused("not_found")
		c.with("").get("/v1/credits").refused("missing_api_key")
		c.with("psr_test_x").get("/v1/credits").refused("invalid_api_key")
	})
	t.Run("the server stays alive", func(t *testing.T) {
		if got, err := n.exchange(reads("/healthz")); err != nil || got.status != 200 {
			t.Errorf("it answers %d, %v", got.status, err)
		}
	})
}

func TestLogTellsOfEachRequestOnce(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	n, _, log := brokenNode(t)
	identity := newHolder()
	answers := map[string]answer{
		`"status":201`: tn.on(n).post("/v1/wallets", fields{"identity": identity}),
		`"status":200`: tn.on(n).get(walletPath(identity)),
		`"status":404`: tn.on(n).get(walletPath(newHolder())),
		`"status":401`: tn.on(n).with("").get(walletPath(identity)),
		`"status":400`: tn.on(n).post("/v1/wallets", `{"identity":`),
		`"status":405`: tn.on(n).send(request{method: "DELETE", target: walletPath(identity)}),
	}
	for status, got := range answers {
		// The caller has the answer before the line is written.
		lines := linesOf(log, got)
		for patience := time.Now().Add(2 * time.Minute); len(lines) == 0 && time.Now().Before(patience); lines = linesOf(log, got) {
			runtime.Gosched()
		}
		if len(lines) != 1 || !strings.Contains(lines[0], status) || got.status >= 400 != strings.Contains(lines[0], `"error"`) {
			t.Errorf("%s is logged as %q", got, lines)
		}
	}
	if lines, _ := logbook.counts(); lines == 0 {
		t.Error("the suite's log is empty: it proves nothing about secrets")
	}
}

// linesOf is what the log says of the request that was answered so.
func linesOf(log *lockedBuffer, got answer) (lines []string) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, got.header.Get("X-Request-Id")) {
			lines = append(lines, line)
		}
	}
	return lines
}
