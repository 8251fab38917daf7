package cashier_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/payments/sandbox"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/store/verify"
)

// history is a life of a subscription. Between its steps a test may do to the
// webhooks what it likes.
func history(r *harness, between func()) {
	r.Helper()
	r.pay(r.checkout("basic").URL, cardPays)
	between()
	r.drainAll()
	topUp := r.topUp(3000)
	r.pay(topUp.URL, cardPays)
	between()
	r.changed("pro")
	between()
	r.changed("basic")
	between()
	r.advance(month)
	between()
	r.refund(topUp, 1000)
	between()
	r.refund(topUp, 500)
	between()
	r.dispute(topUp, "open")
	between()
	r.dispute(topUp, "won")
	between()
	_, err := r.cancel(true)
	r.check(err)
	between()
	r.advance(month)
	r.release()
}

// drainAll does what is due, and delivers nothing.
func (r *harness) drainAll() {
	r.Helper()
	r.release()
	r.controlSandbox("webhooks", `{"hold": true}`)
}

// release delivers what was held back, and has it applied.
func (r *harness) release() {
	r.Helper()
	r.controlSandbox("webhooks", `{"hold": false}`)
	r.settle()
}

// ledger is all that a history leaves, without ids and times that differ from
// one run to the next.
func (r *harness) ledger() string {
	r.Helper()
	var text strings.Builder
	s, err := r.store.Payments(r.scope).Subscription(r.Context(), "ada")
	fmt.Fprintln(&text, s.Terms.PlanKey, s.Status, s.CancelAtPeriodEnd, err)
	if s.Scheduled != nil {
		fmt.Fprintln(&text, "scheduled", s.Scheduled.Target.PlanKey)
	}
	if s.Pending != nil {
		fmt.Fprintln(&text, "pending", s.Pending.Target.PlanKey)
	}
	amount, debt := r.balance("tokens")
	fmt.Fprintln(&text, amount, debt)
	var given []string
	for _, d := range r.deposits() {
		given = append(given, d.CreditKey+" "+d.Amount.String())
	}
	slices.Sort(given)
	fmt.Fprintln(&text, given)
	return text.String()
}

func TestScenario54_AnyOrderAndNumberOfWebhooksEndsTheSame(t *testing.T) {
	ordered := shop(t)
	history(ordered, ordered.settle)
	want := ordered.ledger()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := shop(t)
			random := rand.New(rand.NewPCG(seed, 54))
			r.controlSandbox("webhooks", `{"hold": true}`)
			history(r, func() {
				switch random.IntN(3) {
				case 0: // nothing arrives yet
				case 1:
					r.controlSandbox("webhooks", fmt.Sprintf(`{"replay": %d, "shuffle": %d}`, 1+random.IntN(30), random.Uint64()))
				case 2:
					r.controlSandbox("webhooks", fmt.Sprintf(`{"replay": 40, "shuffle": %d, "hold": false}`, random.Uint64()))
					r.controlSandbox("webhooks", `{"hold": true}`)
				}
			})
			if got := r.ledger(); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

const (
	// shuffles is how many orders of the same events are tried at full size; fewShuffles
	// otherwise, others each time.
	shuffles    = 200
	fewShuffles = 16
	// tracks share them out, each with an application of its own.
	tracks = 2
	// copies is how often each event arrives.
	copies = 3
)

// TestScenario54_AllEventsInManyOrders plays what happened at the provider again
// and again from the same beginning, with its events in another order each time,
// three of each, some long after and some at once, and what is due done now and
// then. It always ends as when they came one by one.
func TestScenario54_AllEventsInManyOrders(t *testing.T) {
	t.Parallel()
	first, number := storetest.Seed(t), uint64(fewShuffles)
	if fullSize {
		number = shuffles
	}
	for track := range uint64(tracks) {
		t.Run(fmt.Sprint("track ", track), func(t *testing.T) {
			r := shop(t)
			tape := record(r)
			want := tape.play(r, nil)
			began, played := time.Now(), 0
			for n := track; n < number; n += tracks {
				if got := tape.play(r, rand.New(rand.NewPCG(first+n, 54))); got != want {
					t.Errorf("seed %d leaves\n%swant\n%s", first+n, got, want)
				}
				played++
			}
			t.Logf("%d orders of %d webhooks in %s", played, copies*tape.events(), time.Since(began))
		})
	}
}

// tape is what happened at the provider, step by step.
type tape struct {
	restore            func() // to before the first step
	connection, secret string
	steps              []step
}

type step struct {
	provider persist.Change // its state after the step
	events   [][]byte       // of it
}

func (t tape) events() (n int) {
	for _, s := range t.steps {
		n += len(s.events)
	}
	return n
}

// record lets a subscription and a top-up live their lives without our hearing of
// it: bought, renewed, partly refunded, disputed, ended.
func record(r *harness) (t tape) {
	r.Helper()
	page, topUp := r.checkout("basic"), r.topUp(3000)
	t.connection, t.secret = r.webhookSecret()
	t.restore = r.keep()
	r.idle.Store(true)
	r.dropWebhooks.Store(true)
	for _, happens := range []func(){
		func() { r.pay(page.URL, cardPays) },
		func() { r.pay(topUp.URL, cardPays) },
		func() { r.advance(month) },
		func() { r.refund(topUp, 1000) },
		func() { r.refund(topUp, 500) },
		func() { r.dispute(topUp, "open") },
		func() { r.dispute(topUp, "won") },
		func() { r.refund(page, 400) },
		func() { r.endWithPeriod() },
		func() { r.advance(month) },
	} {
		before := len(r.arrived)
		happens()
		r.settle()
		s := step{provider: r.providerState()}
		for _, webhook := range r.arrived[before:] {
			s.events = append(s.events, webhook.body)
		}
		t.steps = append(t.steps, s)
	}
	// Only webhooks tell of it.
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "GET /v1/events", Times: 1 << 30})
	return t
}

// providerState is the whole state of the provider.
func (r *harness) providerState() persist.Change {
	r.Helper()
	return must[persist.Change](r)(sandboxtest.Read(r.Context(), r.accounts, r.app.ID))
}

// play plays the tape from its beginning: in order when there is no luck, and
// else as luck has it. It gives what is left in the end.
func (t tape) play(r *harness, random *rand.Rand) string {
	r.Helper()
	t.restore()
	var waiting [][]byte
	for _, s := range t.steps {
		r.check(sandboxtest.Write(r.Context(), r.accounts, r.app.ID, s.provider))
		if random == nil {
			t.bring(r, s.events)
			r.check(r.cashier.DrainAll(r.Context(), r.app.ID))
			continue
		}
		for range copies {
			waiting = append(waiting, s.events...)
		}
		random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		now := random.IntN(len(waiting) + 1)
		t.bring(r, waiting[:now])
		waiting = waiting[now:]
		if random.IntN(2) == 0 {
			r.check(r.cashier.DrainAll(r.Context(), r.app.ID))
		}
	}
	t.bring(r, waiting)
	r.check(r.cashier.DrainAll(r.Context(), r.app.ID))
	return r.books()
}

func (t tape) bring(r *harness, events [][]byte) {
	r.Helper()
	for _, body := range events {
		r.check(r.cashier.ReceiveWebhook(r.Context(), t.connection, signed(body, r.clock(), t.secret), body))
	}
}

// providerSubscriptions are the ids of all subscriptions at the provider.
func (r *harness) providerSubscriptions() (list []string) {
	r.Helper()
	for _, row := range r.providerState().Rows {
		if id, is := strings.CutPrefix(row.Key, "subscription/"); is {
			list = append(list, id)
		}
	}
	return list
}

// endWithPeriod cancels at the provider, as its portal may.
func (r *harness) endWithPeriod() {
	r.Helper()
	for _, id := range r.providerSubscriptions() {
		r.provider("/v1/subscriptions/"+id, url.Values{"cancel_at_period_end": {"true"}})
	}
}

// books is all that ada's payments have left here, but for ids that we gave and
// when it was applied. A reversal may be applied at once or in parts, so of the
// journal it is what each payment comes to.
func (r *harness) books() string {
	r.Helper()
	var text strings.Builder
	app := r.store.App(r.scope)
	subscriptions, _, err := r.store.Reports(r.scope).FindSubscriptions(r.Context(), reports.SubscriptionQuery{Page: store.Page{Limit: 10}})
	r.check(err)
	for _, s := range subscriptions {
		s.ID, s.CreatedAt = ids.ID{}, 0
		fmt.Fprintf(&text, "%+v\n", s)
	}
	payments := paymentsOf(r.T, storetest.URL(r.T), r.scope, "ada")
	slices.SortFunc(payments, func(a, b billing.Payment) int { return strings.Compare(a.Source.ID, b.Source.ID) })
	for _, p := range payments {
		fmt.Fprintf(&text, "%+v\n", p)
	}
	wallet := must[metering.Wallet](r)(app.Wallet(r.Context(), "ada"))
	fmt.Fprintf(&text, "%+v\n", wallet.Balances)
	journal, _, _, err := r.store.Reports(r.scope).Journal(r.Context(), reports.JournalPage{WalletID: wallet.ID, Limit: 100})
	r.check(err)
	net := map[string]int64{}
	for _, entry := range journal {
		amount := int64(entry.Delta.Amount)
		if entry.Delta.Out {
			amount = -amount
		}
		net[entry.SourceKind+" "+entry.SourceID+" "+entry.CreditKey] += amount
	}
	fmt.Fprintln(&text, net)
	alerts, _, err := r.store.Payments(r.scope).Alerts(r.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	verified, err := r.store.Verification(r.scope).Verify(r.Context(), verify.Options{})
	r.check(err)
	fmt.Fprintln(&text, len(alerts), "alerts", verified.Differences)
	return text.String()
}
