package cashier_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/store/verify"
)

// crashingTransport makes a node die at one of its provider calls. From then on the
// node does nothing more: it does not clean up, and keeps its leases.
type crashingTransport struct {
	at    int  // which call, from 0; negative for a node that lives
	after bool // it dies when the call was carried out, and not before

	mu    sync.Mutex
	calls []string // so far, as "POST /v1/…"
	died  chan struct{}
	over  chan struct{} // closed when the test has no more use for the dead
}

func newCrashingTransport(at int, after bool) *crashingTransport {
	return &crashingTransport{at: at, after: after, died: make(chan struct{}), over: make(chan struct{})}
}

func (m *crashingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	m.mu.Lock()
	n := len(m.calls)
	m.calls = append(m.calls, request.Method+" "+strings.TrimPrefix(request.URL.Path, "/sandbox/stripe"))
	m.mu.Unlock()
	if m.at < 0 || n < m.at {
		return http.DefaultTransport.RoundTrip(request)
	}
	if n == m.at {
		if m.after {
			if answer, err := http.DefaultTransport.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
		close(m.died)
	}
	m.rest()
	return nil, nil
}

// rest blocks the dead node's goroutines until the test ends.
func (m *crashingTransport) rest() {
	<-m.over
	runtime.Goexit()
}

// clock blocks goroutines of the dead node before they store a result: they read the
// time first.
func (m *crashingTransport) clock(now func() time.Time) func() time.Time {
	return func() time.Time {
		if m.isDead() {
			m.rest()
		}
		return now()
	}
}

func (m *crashingTransport) isDead() bool {
	select {
	case <-m.died:
		return true
	default:
		return false
	}
}

// boundaries are the calls before and after which a crash makes a difference. A read
// leaves nothing behind, so after it is before the next; a read that follows a read is
// part of it.
func (m *crashingTransport) boundaries() (all []*crashingTransport) {
	for at, call := range m.calls {
		switch {
		case slices.Contains([]string{"GET /v1/invoices", "GET /v1/refunds", "GET /v1/disputes"}, call):
		case strings.HasPrefix(call, http.MethodGet):
			all = append(all, newCrashingTransport(at, false))
		default:
			all = append(all, newCrashingTransport(at, false), newCrashingTransport(at, true))
		}
	}
	return all
}

// operation is something that a node does in several calls.
type operation struct {
	name    string
	arrange func(r *harness)
	do      func(r *harness, node *cashier.Cashier, key string) (cashier.Page, error)
	then    func(r *harness, page cashier.Page) // what shows the effect; nil when nothing more is needed
}

// until runs the operation on a node that dies as m says. restart removes what is left
// of the node.
func (d operation) until(r *harness, m *crashingTransport, key string) (restart func()) {
	r.Helper()
	// Its connections end with the node. Otherwise its goroutines that wait for a lease
	// would get it after the crash and block other nodes.
	own := must[*store.Store](r)(store.Open(r.Context(), storetest.URL(r.T), store.Options{MaxConns: spareConns}))
	node := r.newCashier(func(o *cashier.Options) { o.Store, o.SandboxTransport, o.Now = own, m, m.clock(r.clock) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := d.do(r, node, key); err != nil && !m.isDead() {
			r.Errorf("the node that lived says %v", err)
		}
	}()
	select {
	case <-ended:
	case <-m.died:
	}
	own.Close()
	return func() { close(m.over); <-ended }
}

// afterwards is the state when another node has taken over, two minutes later, and the
// caller has retried.
func (d operation) afterwards(r *harness, key string) string {
	r.Helper()
	r.clockOffset.Add(int64(2 * time.Minute))
	storetest.Lapse(r.T, storetest.URL(r.T), r.app.ID.String())
	r.cashier = r.newCashier()
	r.settle()
	page, err := d.do(r, r.cashier, key)
	if err != nil {
		r.Errorf("the caller who asks again is told %v", err)
	}
	r.settle()
	if d.then != nil {
		d.then(r, page)
		r.settle()
	}
	return r.state()
}

// state is the outcome, here and at the provider.
func (r *harness) state() string {
	r.Helper()
	var text strings.Builder
	text.WriteString(r.ledger())
	verified := must[verify.Verification](r)(r.store.Verification(r.scope).Verify(r.Context(), verify.Options{}))
	for _, d := range verified.Differences {
		fmt.Fprintf(&text, "verify: %+v\n", d)
		r.Errorf("verify finds %+v", d)
	}
	failing := must[[]queue.Job](r)(r.store.Queue(r.scope).FailingJobs(r.Context(), 100))
	for _, w := range failing {
		fmt.Fprintln(&text, "failing:", w.Kind, w.LastError)
	}
	text.WriteString(r.objectCounts())
	return text.String()
}

// objectCounts counts the provider's objects by everything but ids and times.
func (r *harness) objectCounts() string {
	r.Helper()
	counted := []string{"product", "price", "customer", "session", "subscription", "schedule", "invoice", "charge", "refund"}
	var lines []string
	for _, row := range r.providerState().Rows {
		var o struct {
			Status                            string
			Amount, Total, AmountPaid         int64
			Active, CancelAtPeriodEnd, Failed bool
			Phases                            []any
		}
		if !slices.Contains(counted, row.Kind) {
			continue
		}
		r.check(json.Unmarshal(row.Document, &o))
		phases := len(o.Phases)
		o.Phases = nil
		lines = append(lines, fmt.Sprintln(row.Kind, o, phases))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func changeTo(plan string) func(*harness, *cashier.Cashier, string) (cashier.Page, error) {
	return func(r *harness, node *cashier.Cashier, key string) (cashier.Page, error) {
		_, err := node.Change(r.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: plan}, key)
		return cashier.Page{}, err
	}
}

func cancelled(r *harness, node *cashier.Cashier, key string) (cashier.Page, error) {
	_, err := node.Cancel(r.Context(), r.scope, billing.CancelRequest{Identity: "ada", CancelAtPeriodEnd: true}, key)
	return cashier.Page{}, err
}

func topUp(r *harness, node *cashier.Cashier, key string) (cashier.Page, error) {
	return node.TopUpCheckout(r.Context(), r.scope, r.topUpRequest(3000), key)
}

func checkout(r *harness, node *cashier.Cashier, key string) (cashier.Page, error) {
	return node.SubscriptionCheckout(r.Context(), r.scope, r.checkoutRequest("basic"), key)
}

// settled is an operation without a caller: it runs due jobs.
func settled(r *harness, node *cashier.Cashier, _ string) (cashier.Page, error) {
	return cashier.Page{}, node.DrainAll(r.Context(), r.app.ID)
}

func payTheNewest(r *harness, _ cashier.Page) {
	sessions := r.callsTo("POST /v1/checkout/sessions")
	id, err := ids.Parse(ids.Checkout, sessions[len(sessions)-1].Get("client_reference_id"))
	r.check(err)
	r.pay(must[payments.Checkout](r)(r.store.Payments(r.scope).CheckoutByID(r.Context(), id)).URL, cardPays)
}

// untilRenewing has ada on the plan, while the draft of her renewal waits.
func untilRenewing(plan string) func(*harness) {
	return func(r *harness) {
		r.advanceTo(r.subscribe(plan, cardPays).Period.End + (10 * time.Minute).Milliseconds())
	}
}

// whileIdle lets time pass while no node runs, so that all that follows is due at once.
func (r *harness) whileIdle(d time.Duration) {
	r.Helper()
	r.idle.Store(true)
	r.advance(d)
	r.idle.Store(false)
}

// editPrice raises the price of a plan, and lets the one before be archived.
func (r *harness) editPrice(plan string, cents int64) {
	r.Helper()
	r.patchPlan(plan, billing.PlanPatch{AmountCents: &cents})
	r.advance(27 * time.Hour)
}

// untilBilled has ada on pro, while the draft of her downgrade to basic waits.
func untilBilled(r *harness) {
	s := r.subscribe("pro", cardPays)
	r.changed("basic")
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
}

// afterAnHour is when a draft has been charged, or is void.
func afterAnHour(r *harness, _ cashier.Page) { r.advance(2 * time.Hour) }

func payPage(r *harness, page cashier.Page) { r.pay(page.URL, cardPays) }

var operations = []operation{
	{
		name: "telling of a plan", do: settled,
		arrange: func(r *harness) { r.draft("max", 9900) },
	},
	{
		name: "a checkout", do: checkout, then: payPage,
		arrange: func(*harness) {},
	},
	{
		name: "a checkout that closes the one before", do: checkout, then: payPage,
		arrange: func(r *harness) { r.checkout("pro") },
	},
	{
		name: "a top-up", do: topUp, then: payPage,
		arrange: func(*harness) {},
	},
	{
		name: "an upgrade", do: changeTo("pro"),
		arrange: func(r *harness) { r.subscribe("basic", cardPays) },
	},
	{
		name: "an upgrade that releases a downgrade", do: changeTo("max"),
		arrange: func(r *harness) {
			r.plan("max", 9900, grants("tokens", 1000*million))
			r.subscribe("pro", cardPays)
			r.changed("basic")
		},
	},
	{
		name: "an upgrade that voids another", do: changeTo("max"),
		arrange: func(r *harness) {
			r.plan("max", 9900, grants("tokens", 1000*million))
			r.subscribe("basic", cardAsksAlways)
			r.changed("pro")
		},
	},
	{
		name: "an upgrade without a card", do: changeTo("pro"), then: payTheNewest,
		arrange: func(r *harness) {
			r.plan("free", 0)
			r.subscribe("free", noCard)
		},
	},
	{
		name: "a downgrade", do: changeTo("basic"),
		arrange: func(r *harness) { r.subscribe("pro", cardPays) },
		then:    func(r *harness, _ cashier.Page) { r.advance(month) },
	},
	{
		name: "staying", do: changeTo("pro"),
		arrange: func(r *harness) {
			r.subscribe("pro", cardPays)
			r.changed("basic")
		},
	},
	{
		name: "a cancellation that releases a downgrade", do: cancelled,
		arrange: func(r *harness) {
			r.subscribe("pro", cardPays)
			r.changed("basic")
		},
	},
	{
		name: "an upgrade that replaces a renewal", do: changeTo("pro"),
		arrange: untilRenewing("basic"),
		then:    func(r *harness, _ cashier.Page) { r.advance(2 * time.Hour) },
	},
	{
		name: "a cancellation that voids a renewal", do: cancelled,
		arrange: untilRenewing("basic"),
		then:    func(r *harness, _ cashier.Page) { r.advance(2 * time.Hour) },
	},
	{
		name: "an upgrade by bank debit", do: changeTo("pro"),
		arrange: func(r *harness) {
			r.subscribe("basic", bankSucceeds)
			r.advance(4 * days)
		},
		then: func(r *harness, _ cashier.Page) {
			r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
			r.advance(4 * days)
		},
	},
	{
		name: "what the debit of an upgrade brings", do: settled,
		arrange: func(r *harness) {
			r.subscribe("basic", bankSucceeds)
			r.advance(4 * days)
			r.changed("pro")
			r.pay(r.wantPending("pro", true).PaymentURL, bankSucceeds)
			r.settle()
			r.whileIdle(4 * days)
		},
	},
	{
		name: "archiving the price before an edit", do: settled,
		arrange: func(r *harness) {
			raised := int64(1500)
			r.patchPlan("basic", billing.PlanPatch{AmountCents: &raised})
			r.settle()
			r.whileIdle(27 * time.Hour)
		},
	},
	{
		name: "a downgrade from an archived price", do: changeTo("free"),
		arrange: func(r *harness) {
			r.plan("free", 0)
			r.subscribe("basic", cardPays)
			r.editPrice("basic", 1500)
		},
		then: func(r *harness, _ cashier.Page) { r.advance(27 * time.Hour) },
	},
	{
		name: "staying while a downgrade is billed", do: changeTo("pro"),
		arrange: untilBilled, then: afterAnHour,
	},
	{
		name: "staying at an archived price while a downgrade is billed", do: changeTo("pro"),
		arrange: func(r *harness) {
			s := r.subscribe("pro", cardPays)
			r.changed("basic")
			r.editPrice("pro", 3900)
			r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
		},
		then: func(r *harness, _ cashier.Page) { r.advance(27 * time.Hour) },
	},
	{
		// The debit of the renewal was under way when the upgrade was paid, and has failed.
		name: "voiding a replaced renewal for a second time", do: settled,
		arrange: func(r *harness) {
			r.advanceTo(r.subscribe("basic", cardAsksAlways).Period.End + (10 * time.Minute).Milliseconds())
			page := r.changed("pro").Pending.PaymentURL
			r.advance(2 * time.Hour)
			r.pay(r.openRenewal()["hosted_invoice_url"].(string), bankFails)
			r.pay(page, cardAsksAlways)
			r.settle()
			r.whileIdle(4 * days)
		},
	},
	{
		name: "crediting back a balance that paid for a replaced renewal", do: settled,
		arrange: func(r *harness) {
			s := r.subscribe("basic", cardPays)
			r.creditCustomer(3400)
			r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
			r.changed("pro")
			r.whileIdle(2 * time.Hour)
		},
		then: func(r *harness, _ cashier.Page) { r.wantCustomerCredit(3400 - 2900) },
	},
	{
		name: "a free plan of ours that closes a page", do: cancelled,
		arrange: func(r *harness) {
			r.plan("free", 0)
			r.changed("free")
			r.changed("pro") // sold on a page
		},
	},
	{
		name: "what a first payment brings", do: settled,
		arrange: func(r *harness) {
			page := r.checkout("basic")
			r.idle.Store(true)
			r.pay(page.URL, cardPays)
			r.idle.Store(false)
		},
	},
	{
		name: "giving back what was bought twice", do: settled,
		arrange: func(r *harness) {
			page := r.checkout("basic")
			// A second page for the same order, which only the provider can make.
			second := r.provider("/v1/checkout/sessions", r.callsTo("POST /v1/checkout/sessions")[0])
			r.idle.Store(true)
			r.pay(page.URL, cardPays)
			r.pay(second["url"].(string), cardPays)
			r.idle.Store(false)
		},
	},
}

func TestScenario62_ANodeThatDiesAnywhereHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, d := range operations {
		t.Run(d.name, func(t *testing.T) {
			r := shop(t)
			d.arrange(r)
			restore := r.keep()

			lives, key := newCrashingTransport(-1, false), newKey()
			d.until(r, lives, key)
			want := d.afterwards(r, key)
			if len(lives.calls) == 0 {
				t.Fatal("it makes no call")
			}
			for _, dies := range lives.boundaries() {
				restore()
				r.clockOffset.Store(0)
				key := newKey()
				restart := d.until(r, dies, key)
				if got := d.afterwards(r, key); got != want {
					t.Errorf("dying at call %d of %v (after it: %v) leaves\n%swant\n%s", dies.at, lives.calls, dies.after, got, want)
				}
				restart()
			}
		})
	}
}
