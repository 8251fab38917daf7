package api_test

import (
	"net/url"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"purser/api"
	"purser/store"
	"purser/store/storetest"
)

// nodeOn is a node whose store is opened in another way than usual.
func nodeOn(t *testing.T, url string, o store.Options) *node {
	t.Helper()
	o.MaxConns = 4
	s, err := store.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	n, err := openNode(s, api.Options{}, &clock{}, t.Cleanup)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// readiness asks a node until its status and text are these. One other answer proves
// nothing: on a busy machine it may say that the database was too slow.
func readiness(t *testing.T, n *node, status int, text string) {
	t.Helper()
	whole := regexp.MustCompile("^" + text + "\n$")
	for deadline := time.After(3 * time.Minute); ; {
		got, err := n.exchange(reads("/readyz"))
		if err == nil && got.status == status && whole.Match(got.body) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("it answers %d %q, %v", got.status, got.body, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestReadyzSaysInOneSentenceWhatIsWrong(t *testing.T) {
	t.Parallel()
	readiness(t, nodeOn(t, storetest.URL(t), store.Options{}), 200, "ready")
	address, err := url.Parse(storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("default_transaction_read_only", "on")
	address.RawQuery = query.Encode()
	readiness(t, nodeOn(t, address.String(), store.Options{}), 503, "not ready: the database does not take writes: it is read-only")
}

// A machine whose wall clock jumps at every look never knows the database's time.
func TestNothingIsServedWhileTheTimeIsUnknown(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	identity := newHolder()
	tn.deposit(identity, "gold", "9000")
	var wall atomic.Int64
	var jumps atomic.Bool
	start := time.Now()
	n := nodeOn(t, storetest.URL(t), store.Options{Machine: func() (int64, time.Duration) {
		if jumps.Load() {
			wall.Add(int64(time.Hour))
		}
		now := time.Now()
		return now.UnixNano() + wall.Load(), now.Sub(start)
	}})
	on := *tn
	on.client = tn.on(n)
	on.use(identity, "chat", nil).is(201)
	held := tn.balance(identity, "gold")
	jumps.Store(true)
	for _, r := range []request{
		adds("/v1/events", fields{"id": newName(), "identity": identity, "feature": "chat"}),
		adds("/v1/deposits", newDeposit(identity, "gold")),
		reads("/v1/credits/gold"),
	} {
		if got := on.send(r); got.status != 500 {
			t.Errorf("%s answers %d", r.target, got.status)
		}
	}
	readiness(t, n, 503, "not ready: the time of the database is not known: .*")
	if left := tn.balance(identity, "gold"); left != held {
		t.Errorf("the balance went from %s to %s", held, left)
	}
	jumps.Store(false)
	readiness(t, n, 200, "ready")
	on.use(identity, "chat", nil).is(201)
}
