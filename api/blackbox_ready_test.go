package api_test

import (
	"net/url"
	"strings"
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

// readiness asks a node until it answers with a status, and gives what it says.
func readiness(t *testing.T, n *node, status int) string {
	t.Helper()
	for patience := time.Now().Add(time.Minute); ; {
		got, err := n.exchange(reads("/readyz"))
		if err == nil && got.status == status {
			return string(got.body)
		}
		if time.Now().After(patience) {
			t.Fatalf("it answers %d %q, %v", got.status, got.body, err)
		}
	}
}

func TestReadyzSaysInOneSentenceWhatIsWrong(t *testing.T) {
	t.Parallel()
	if said := readiness(t, nodeOn(t, storetest.URL(t), store.Options{}), 200); said != "ready\n" {
		t.Errorf("a node that serves says %q", said)
	}
	address, err := url.Parse(storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("default_transaction_read_only", "on")
	address.RawQuery = query.Encode()
	readOnly := nodeOn(t, address.String(), store.Options{})
	if said := readiness(t, readOnly, 503); said != "not ready: the database does not take writes: it is read-only\n" {
		t.Errorf("a node that cannot write says %q", said)
	}
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
	if said := readiness(t, n, 503); !strings.Contains(said, "the time of the database is not known") {
		t.Errorf("it says %q", said)
	}
	if left := tn.balance(identity, "gold"); left != held {
		t.Errorf("the balance went from %s to %s", held, left)
	}
	jumps.Store(false)
	readiness(t, n, 200)
	on.use(identity, "chat", nil).is(201)
}
