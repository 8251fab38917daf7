package delivery_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"purser/notify"
	"purser/notify/delivery"
	"purser/store/notifications"
)

// mood is how a receiver answers, in parts of ten thousand. The rest is accepted.
type mood struct{ fails, busy, slow, hangs, gone uint32 }

// moody is a receiver that answers by the notification and the attempt: two runs with the
// same notifications meet the same answers.
type moody struct {
	*httptest.Server
	mood   mood
	hooks  *standardwebhooks.Webhook
	closed chan struct{}

	mu       sync.Mutex
	refuse   bool // everything, until the test changes it
	attempts map[string]uint32
	seen     map[string]seen // by notification
	answers  map[int]int     // by status; zero for none
	faults   []string
	each     func() // called for every request
}

// seen is what a receiver knows of one notification.
type seen struct {
	seq, previous int64
	sum           [sha256.Size]byte
	accepted      int
}

func newMoody(t *testing.T, m mood) *moody {
	t.Helper()
	r := &moody{mood: m, closed: make(chan struct{}), attempts: map[string]uint32{}, seen: map[string]seen{}, answers: map[int]int{}, each: func() {}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	t.Cleanup(func() { close(r.closed) }) // before the server waits for its requests
	return r
}

func (r *moody) trust(t *testing.T, secret notify.Secret) {
	t.Helper()
	hooks, err := standardwebhooks.NewWebhook(secret.Reveal())
	noError(t, err)
	r.hooks = hooks
}

func (r *moody) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	got, err := readWebhook(request)
	if err != nil {
		return // the sender died
	}
	id := request.Header.Get(notify.HeaderID)
	r.mu.Lock()
	status := r.judge(id, request.Header, got)
	r.answers[status]++
	each := r.each
	r.mu.Unlock()
	each()
	switch status {
	case 0: // no answer: until the sender gives up
		select {
		case <-request.Context().Done():
		case <-r.closed:
		}
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
	default:
		w.WriteHeader(status)
	}
}

// judge keeps what came, and chooses the answer.
func (r *moody) judge(id string, header http.Header, got received) int {
	if err := r.hooks.VerifyIgnoringTimestamp(got.body, header); err != nil {
		r.faults = append(r.faults, "a signature is refused: "+err.Error())
	}
	known, again := r.seen[id]
	now := seen{seq: got.Seq, previous: *got.PreviousSeq, sum: sha256.Sum256(got.body), accepted: known.accepted}
	if got.ID != id || again && (now.seq != known.seq || now.previous != known.previous || now.sum != known.sum) {
		r.faults = append(r.faults, "another notification came with the id "+id)
	}
	r.attempts[id]++
	status := r.mood.answer(id, r.attempts[id])
	if r.refuse {
		status = http.StatusServiceUnavailable
	}
	if status == http.StatusOK {
		now.accepted++
	}
	r.seen[id] = now
	return status
}

func (m mood) answer(id string, attempt uint32) int {
	sum := fnv.New32a()
	_, _ = fmt.Fprint(sum, id, attempt)
	n := sum.Sum32() % 10_000
	for _, c := range []struct {
		part   uint32
		status int
	}{{m.fails, 500}, {m.busy, 429}, {m.slow + m.hangs, 0}, {m.gone, 410}} {
		if n < c.part {
			return c.status
		}
		n -= c.part
	}
	return http.StatusOK
}

// accepted counts the notifications that the receiver has.
func (r *moody) accepted() (number, twice int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s.accepted > 0 {
			number++
		}
		if s.accepted > 1 {
			twice++
		}
	}
	return number, twice
}

// whole checks that the receiver has every number up to the last, linked without a gap.
func (r *moody) whole(t *testing.T, last int64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]seen, 0, len(r.seen))
	for _, s := range r.seen {
		if s.accepted > 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b seen) int { return int(a.seq - b.seq) })
	if int64(len(list)) != last {
		t.Errorf("%d of %d notifications came", len(list), last)
	}
	for i, s := range list {
		if s.seq != int64(i)+1 || s.previous != int64(i) {
			t.Fatalf("after %d comes %d, which follows %d", i, s.seq, s.previous)
		}
	}
	for _, fault := range r.faults {
		t.Error(fault)
	}
}

// enable enables endpoints that are paused or disabled, as a person would.
func (r *harness) enable() {
	r.Helper()
	app := r.db.Notifications(r.scope)
	list, err := app.Endpoints(r.Context())
	noError(r, err)
	for _, e := range list {
		if e.Status != notify.Enabled {
			_, err := app.UpdateEndpoint(r.Context(), e.ID, notify.EndpointPatch{Status: new(notify.Enabled)}, false)
			noError(r, err)
		}
	}
}

// last is the newest number of the feed.
func (r *harness) last() int64 {
	r.Helper()
	page, err := r.db.Notifications(r.scope).Feed(r.Context(), notifications.Query{After: 0, Types: []notify.Type{"none"}, Limit: 1})
	noError(r, err)
	for page.More {
		page, err = r.db.Notifications(r.scope).Feed(r.Context(), notifications.Query{After: page.NextAfter, Types: []notify.Type{"none"}, Limit: 1})
		noError(r, err)
	}
	return page.NextAfter
}

// Receivers that fail, are busy, answer nothing or are gone, and a node that stops in the
// middle of a run, lose nothing. `make webhooks` does the same with many notifications,
// and with nodes that are killed.
func TestNoNotificationIsLost(t *testing.T) {
	t.Parallel()
	r := newHarness(t, func(o *delivery.Options) { o.Timeout = 500 * time.Millisecond })
	receivers := []*moody{newMoody(t, mood{}), newMoody(t, mood{fails: 1500, busy: 500, gone: 200}), newMoody(t, mood{fails: 500, hangs: 300})}
	for _, hooks := range receivers {
		_, secret := r.endpoint(hooks.URL)
		hooks.trust(t, secret)
	}
	for range 25 {
		r.deposit()
	}
	ctx, stop := context.WithCancel(t.Context())
	requests := 0
	receivers[0].each = func() {
		receivers[0].mu.Lock()
		defer receivers[0].mu.Unlock()
		if requests++; requests == 10 {
			stop() // with answers under way
		}
	}
	if err := r.queue.DrainLane(ctx, r.scope.AppID, delivery.Lane); err == nil && ctx.Err() == nil {
		t.Error("the node was not stopped")
	}
	stop()
	for day := 0; ; day++ {
		r.drain()
		last := r.last()
		complete := true
		for _, hooks := range receivers {
			number, _ := hooks.accepted()
			complete = complete && int64(number) == last
		}
		if complete {
			break
		}
		if day > 200 {
			t.Fatal("they never arrive")
		}
		r.advance(25 * time.Hour)
		r.enable()
	}
	for _, hooks := range receivers {
		hooks.whole(t, r.last())
	}
}
