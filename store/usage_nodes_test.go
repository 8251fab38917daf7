package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// node is what one server process has of the store: its pool and its engine.
// Several of them on one database are several processes to everything but memory.
type node struct {
	db    *store.Store
	usage *store.Engine
	close func() // at the end of the test, unless before
}

// nodeConns is enough for the few who do anything but use in these tests.
const nodeConns = 4

func openNode(tb testing.TB, url string, o store.EngineOptions) node {
	tb.Helper()
	db, err := store.Open(tb.Context(), url, store.Options{MaxConns: nodeConns})
	noError(tb, err)
	if o.Now == nil {
		o.Now = func() int64 { return moment }
	}
	if o.Lanes == 0 {
		o.Lanes = store.SingleLanes // also on a machine with few cores
	}
	usage, err := db.OpenEngine(tb.Context(), o)
	noError(tb, err)
	// A test that is about a deadline sets its own.
	usage.SetTimeouts(patience, patience)
	n := node{db: db, usage: usage, close: sync.OnceFunc(func() {
		usage.Close()
		db.Close()
	})}
	tb.Cleanup(n.close)
	return n
}

// messagePrice is what one use of the shop's feature "message" costs.
const messagePrice metering.Amount = 10

// shop is a tenant that sells messages for tokens, on some nodes.
type shop struct {
	tenant
	key   keys.APIKey
	nodes []node
}

func newShop(tb testing.TB, url string, nodes int) shop {
	tb.Helper()
	var s shop
	for range nodes {
		s.nodes = append(s.nodes, openNode(tb, url, store.EngineOptions{}))
	}
	return s.stocked(tb)
}

// newShopOfOneLane is a shop whose nodes have one queue of single events each.
func newShopOfOneLane(tb testing.TB, url string, nodes int) shop {
	tb.Helper()
	s := newShop(tb, url, nodes)
	for _, n := range s.nodes {
		n.usage.OneLane()
	}
	return s
}

// stocked makes the application, its key and its catalog, through the last node,
// which is the shop's own way in.
func (s shop) stocked(tb testing.TB) shop {
	tb.Helper()
	s.tenant = newTenant(tb, s.nodes[len(s.nodes)-1].db)
	s.key, _ = s.newKey(tb, keys.Ingestion)
	s.newCredit(tb, "tokens")
	message := featureOf("message", "tokens")
	message.Cost = messagePrice
	s.newFeature(tb, message)
	return s
}

// credit pays into a wallet.
func (s shop) credit(tb testing.TB, identity string, amount metering.Amount) {
	tb.Helper()
	s.deposit(tb, depositOf(identity, "tokens", amount, freshID()))
}

// message is one use of the feature "message", in a transaction of its own.
func (s shop) message(identity, eventID string) store.Usage {
	return s.useOf("message", identity, eventID)
}

func (s shop) useOf(feature, identity, eventID string) store.Usage {
	return store.Usage{
		Scope: s.application.Scope(), KeyID: s.key.ID, Identity: identity, FeatureKey: feature,
		Usage: metering.Usage{TransactionID: ids.New(), EventID: eventID, Quantity: 1},
	}
}

// warm has a node remember a wallet, or else work on it under locks.
func (s shop) warm(tb testing.TB, n node, identity string, remember bool) {
	tb.Helper()
	if !remember {
		n.usage.ForcePessimistic(s.application.ID, identity)
	}
	mustAccept(tb, n, s.message(identity, freshID()))
	if n.usage.IsCached(s.application.ID, identity) != remember {
		tb.Fatalf("remembers %q: %t", identity, !remember)
	}
}

// on is the shop's application as another node sees it.
func (s shop) on(n node) store.App { return n.db.App(s.application.Scope()) }

func (s shop) balance(tb testing.TB, identity string) metering.Amount {
	tb.Helper()
	w, err := s.Wallet(tb.Context(), identity)
	noError(tb, err)
	if len(w.Balances) == 0 {
		return 0
	}
	return w.Balances[0].Amount
}

// mustAccept sends a use that has to be accepted.
func mustAccept(tb testing.TB, n node, use store.Usage) metering.Decision {
	tb.Helper()
	d, err := n.usage.Track(use)
	if err == nil {
		err = d.Err()
	}
	if err != nil || d.Verdict != metering.Accepted {
		tb.Fatalf("use %q of %q: %s, %v", use.EventID, use.Identity, d.Verdict, err)
	}
	return d
}

// answer is what became of a use: the verdict, or the fault's code, or "error".
func answer(d metering.Decision, err error) string {
	switch {
	case err == nil && d.Allowed():
		return string(d.Verdict)
	case err == nil:
		return string(d.Code)
	case fault.Is(err, fault.Overloaded):
		return string(fault.Overloaded)
	case fault.Is(err, fault.RevokedAPIKey):
		return string(fault.RevokedAPIKey)
	default:
		return "error"
	}
}

// atOnce runs n of them together: none starts before all are ready.
func atOnce(n int, do func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			do(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// patience bounds what must not go on for ever. Only what never comes reaches it,
// however busy the machine is.
const patience = 2 * time.Minute

// soon waits for something that others bring about.
func soon(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-deadline:
			tb.Fatalf("not in time: %s", what)
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// hold locks a wallet past the store, so that the batch that needs it stands
// still and all that come after it wait together, until release.
func (s shop) hold(tb testing.TB, url, identity string) (release func()) {
	tb.Helper()
	conn := connect(tb, url)
	tx, err := conn.Begin(tb.Context())
	noError(tb, err)
	exec(tb, tx, "SELECT FROM wallets WHERE app_id = $1 AND identity = $2 FOR UPDATE", s.application.ID, identity)
	return func() { noError(tb, tx.Rollback(tb.Context())) }
}

// standsStill reports whether a transaction waits for the wallet's lock.
func (s shop) standsStill(tb testing.TB, url, identity string) (waits bool) {
	tb.Helper()
	conn := connect(tb, url)
	defer conn.Close(context.Background())
	// A session that waits for a row holds the lock on its place and waits for the holder. On Citus
	// the place is one in a shard.
	waiters := fmt.Sprintf(`
		SELECT EXISTS (
			SELECT FROM pg_locks l JOIN %%1$s w ON w.app_id = '%s' AND w.identity = '%s'
				AND l.relation = '%%1$s'::regclass AND l.locktype = 'tuple' AND (l.page, l.tuple) = ((w.ctid::text::point)[0], (w.ctid::text::point)[1])
			WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))`, s.application.ID, identity)
	if storetest.Distributed(tb) {
		noError(tb, conn.QueryRow(tb.Context(), `SELECT bool_or(result::boolean) FROM run_command_on_shards('wallets', $1)`, waiters).Scan(&waits))
		return waits
	}
	noError(tb, conn.QueryRow(tb.Context(), strings.ReplaceAll(waiters, "%1$s", "wallets")).Scan(&waits))
	return waits
}

// waitingFor counts the sessions that wait for a lock on a table of the connection's
// database. Databases that are copies of one have the same ids for their tables.
func waitingFor(tb testing.TB, on execer, table string) int {
	tb.Helper()
	return len(texts(tb, on, `SELECT pid::text FROM pg_locks WHERE NOT granted AND relation = $1::regclass
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, table))
}

// lockWaits counts the sessions that wait for a lock in a statement like the pattern, on
// every node that has the database.
func lockWaits(tb testing.TB, url, pattern string) (count int) {
	tb.Helper()
	for _, node := range storetest.Nodes(tb, url) {
		conn := connect(tb, node)
		count += len(texts(tb, conn, `SELECT pid::text FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`, pattern))
		noError(tb, conn.Close(context.Background()))
	}
	return count
}

// inOneBatch has an engine of one lane take all uses together: they wait behind a use
// of the gate, a wallet that the shop must have and that stands still until all are
// there. It returns what they became.
func (s shop) inOneBatch(tb testing.TB, url string, n node, gate string, requests []store.Usage, meanwhile func()) []outcome {
	tb.Helper()
	release := s.hold(tb, url, gate)
	outcomes := make([]outcome, len(requests))
	var done sync.WaitGroup
	done.Go(func() {
		if d, err := n.usage.Track(s.message(gate, freshID())); err != nil || d.Verdict != metering.Accepted {
			tb.Errorf("the gate: %s, %v", d.Verdict, err)
		}
	})
	soon(tb, "the batch at the gate", func() bool { return n.usage.Busy() && n.usage.Queued() == 0 && s.standsStill(tb, url, gate) })
	for i, use := range requests {
		done.Go(func() { outcomes[i] = trackOutcome(n, use) })
		soon(tb, "a place in the queue", func() bool { return n.usage.Queued() == i+1 })
	}
	if meanwhile != nil {
		meanwhile()
	}
	release()
	all := make(chan struct{})
	go func() {
		done.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(patience):
		tb.Fatal("a caller is still waiting")
	}
	return outcomes
}

// What is recorded is answered while others of its batch wait for a lock.
func TestEventsDoNotWaitForTheLocksOfOthers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 1)
	n := s.nodes[0]
	for _, identity := range []string{"ann", "bob", "gate"} {
		s.credit(t, identity, 10_000)
		s.warm(t, n, identity, identity == "ann")
	}
	releaseGate, release := s.hold(t, url, "gate"), s.hold(t, url, "bob")
	var all, anns sync.WaitGroup
	all.Go(func() { mustAccept(t, n, s.message("gate", freshID())) })
	soon(t, "the batch at the gate", func() bool { return n.usage.Busy() && s.standsStill(t, url, "gate") })
	for range store.MinOptimistic {
		anns.Go(func() { mustAccept(t, n, s.message("ann", freshID())) })
	}
	all.Go(func() { mustAccept(t, n, s.message("bob", freshID())) })
	soon(t, "all in one batch", func() bool { return n.usage.Queued() == store.MinOptimistic+1 })
	releaseGate()
	answered := make(chan struct{})
	go func() {
		anns.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-time.After(patience):
		t.Error("an event waits for the wallet of another customer")
	}
	release()
	all.Wait()
}

// What a read without locks says of an event is no answer: it is asked for under locks.
func TestEventsAreNotAnsweredByAPrefetch(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShopOfOneLane(t, url, 1)
	n := s.nodes[0]
	s.credit(t, "ann", 10_000)
	s.warm(t, n, "ann", true)
	release := s.hold(t, url, "ann")
	var answered atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := n.usage.Track(s.useOf("unknown", "ann", freshID()))
			wantFault(t, err, fault.FeatureNotFound)
			answered.Add(1)
		})
	}
	soon(t, "a batch waits for the wallet", func() bool { return s.standsStill(t, url, "ann") })
	if n := answered.Load(); n > 0 {
		t.Errorf("%d events are answered before the wallet is locked", n)
	}
	release()
	all.Wait()
}

// outcome is what one use became.
type outcome struct {
	use  store.Usage
	d    metering.Decision
	err  error
	took time.Duration
}

func (o outcome) String() string { return answer(o.d, o.err) }

func trackOutcome(n node, use store.Usage) outcome {
	started := time.Now()
	d, err := n.usage.Track(use)
	return outcome{use, d, err, time.Since(started)}
}

// tally counts outcomes by what they became.
func tally(outcomes []outcome) map[string]int {
	counts := make(map[string]int)
	for _, o := range outcomes {
		counts[o.String()]++
	}
	return counts
}

// deadlocks reads how many Postgres has seen in the database. A session reports
// when it ends, so all nodes have to be closed.
func deadlocks(tb testing.TB, url string) (n int) {
	tb.Helper()
	conn := connect(tb, url)
	soon(tb, "the end of the nodes' sessions", func() bool {
		var open int
		noError(tb, conn.QueryRow(tb.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'purser'`).Scan(&open))
		return open == 0
	})
	for _, node := range storetest.Nodes(tb, url) {
		var seen int
		noError(tb, connect(tb, node).QueryRow(tb.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&seen))
		n += seen
	}
	return n
}

// storedEvents reads which transaction each event id belongs to.
func (s shop) storedEvents(tb testing.TB, conn *pgx.Conn) map[string][]ids.ID {
	tb.Helper()
	rows, err := conn.Query(tb.Context(), `SELECT event_id, tx_id FROM usage_events WHERE app_id = $1`, s.application.ID)
	noError(tb, err)
	stored := make(map[string][]ids.ID)
	var event []byte
	var id ids.ID
	_, err = pgx.ForEachRow(rows, []any{&event, &id}, func() error {
		name := string(event)
		if event[0] == 0 { // a UUID is stored in short
			name = ids.ID(event[1:]).String()
		}
		stored[name] = append(stored[name], id)
		return nil
	})
	noError(tb, err)
	return stored
}

func numbered(name string, n int) string { return fmt.Sprintf("%s %d", name, n) }

// closeNodes ends the nodes before the test does.
func (s shop) closeNodes() {
	for _, n := range s.nodes {
		n.close()
	}
}
