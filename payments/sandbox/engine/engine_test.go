package engine

import (
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"purser/payments/sandbox/persist"
)

// newTestAccount is an empty account on the given day, with a fixed random seed.
func newTestAccount(t testing.TB, day string) (*Account, Env) {
	t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	return reopen(t, nil), Env{Now: Time(at.Unix()), Random: rand.New(rand.NewPCG(1, 2))}
}

func reopen(t testing.TB, document []byte) *Account {
	t.Helper()
	a, err := Open(document, BaseURLs{Site: "http://sandbox.test/apps/1", Account: "acct_1"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func snapshotOf(t testing.TB, a *Account) []byte {
	t.Helper()
	document, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func must[T any](t testing.TB) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

func monthlyPrice(t testing.TB, a *Account, env Env, amount int64) *Price {
	t.Helper()
	name := "Plan"
	product := must[*Product](t)(a.CreateProduct(env, "", ProductFields{Name: &name}))
	return must[*Price](t)(a.CreatePrice(env, NewPrice{Product: product.ID, Currency: "usd", Amount: &amount, Interval: Interval{"month", 1}}))
}

func subscribe(t testing.TB, a *Account, env Env, price *Price, card Card) *Subscription {
	t.Helper()
	customer := must[*Customer](t)(a.CreateCustomer(env, CustomerFields{}))
	session := must[*Session](t)(a.CreateSession(env, NewSession{
		Mode: modeSubscription, Customer: customer.ID, Success: "http://shop.test/", Lines: []NewSessionLine{{Price: price.ID}},
	}))
	step := must[Step](t)(a.PaySession(env, session.ID, card))
	if token, asked := strings.CutPrefix(step.URL, a.urls.Site+"/authenticate/"); asked {
		must[Step](t)(a.AnswerChallenge(env, token, true))
	}
	return a.Subscriptions.Get(session.Subscription)
}

// busyAccount is an account with open objects of every kind.
func busyAccount(t testing.TB) (*Account, Env) {
	t.Helper()
	a, env := newTestAccount(t, "2026-01-31")
	must[*Endpoint](t)(a.CreateEndpoint(env, NewEndpoint{URL: "http://receiver.test/", Types: []string{"*"}}))
	small, big := monthlyPrice(t, a, env, 2900), monthlyPrice(t, a, env, 9900)
	var last *Subscription
	for _, card := range []Card{"pays", "asks_once", "asks_always", "disputed", "refund_fails", "bank_succeeds", "bank_fails"} {
		last = subscribe(t, a, env, small, card)
	}
	waits := subscribe(t, a, env, small, "asks_always")
	must[*Subscription](t)(a.UpdateSubscription(env, waits.ID, SubscriptionChange{
		Items: []ItemChange{{ID: waits.Items[0].ID, Price: big.ID}}, Behavior: "pending_if_incomplete", Proration: "none", Anchor: "now",
	}))
	turns := subscribe(t, a, env, big, "pays")
	schedule := must[*Schedule](t)(a.CreateSchedule(env, turns.ID))
	start := turns.PeriodStart
	must[*Schedule](t)(a.UpdateSchedule(env, schedule.ID, ScheduleChange{Phases: []NewPhase{
		{Start: &start, Items: []ItemChange{{Price: big.ID}}, Proration: "none"}, {Items: []ItemChange{{Price: small.ID}}, Proration: "none"},
	}}))
	refunded := subscribe(t, a, env, small, "refund_fails")
	must[*Refund](t)(a.CreateRefund(env, NewRefund{Charge: a.Invoices.Get(refunded.LatestInvoice).Charge}))
	must[*Portal](t)(a.CreatePortal(env, Portal{Customer: last.Customer}))
	must[*Session](t)(a.CreateSession(env, NewSession{
		Mode: modeSubscription, Customer: last.Customer, Success: "http://shop.test/", Lines: []NewSessionLine{{Price: small.ID}},
	}))
	a.StoreAnswer(env, Answer{Key: "k", Status: 200, Body: []byte("{}")})
	return a, env
}

func TestDocument(t *testing.T) {
	t.Parallel()

	t.Run("holds all of an account", func(t *testing.T) {
		a, _ := busyAccount(t)
		if back := reopen(t, snapshotOf(t, a)); string(snapshotOf(t, back)) != string(snapshotOf(t, a)) {
			t.Error("an account that was stored and loaded again differs")
		}
	})

	t.Run("holds no card number", func(t *testing.T) {
		a, _ := busyAccount(t)
		document := string(snapshotOf(t, a))
		for _, card := range TestCards() {
			if strings.Contains(document, card.Number) {
				t.Errorf("%s is in it", card.Number)
			}
		}
	})

	t.Run("of a newer program is refused", func(t *testing.T) {
		if _, err := Open([]byte(`{"Version": 2}`), BaseURLs{}); err == nil {
			t.Error("it was read")
		}
	})
}

// legacyDocument is an account as the program before stored it: one document, with timers and
// deliveries in order and without numbers.
func legacyDocument(t testing.TB) []byte {
	t.Helper()
	file, err := os.Open("testdata/account-v1.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// storedAs is a session over stored rows, without any way to read more.
func storedAs(t testing.TB, c persist.Change) persist.Session {
	t.Helper()
	return persist.Session{Head: c.Head, Source: everything(c.Rows)}
}

// everything is a source that only gives all.
type everything []persist.Row

func (e everything) Everything() ([]persist.Row, error)             { return e, nil }
func (e everything) Load([]string) ([]persist.Row, error)           { return nil, nil }
func (e everything) Page(persist.Page) ([]persist.Row, error)       { return nil, nil }
func (e everything) FirstDue(string, []string) (int64, bool, error) { return 0, false, nil }
func (e everything) Lookup(string, persist.Index, []string) ([]persist.Row, error) {
	return nil, nil
}
func (e everything) Earliest(string, int64, int64, int) ([]persist.Row, error) { return nil, nil }
func (e everything) Ready(string, int64, int) ([]persist.Row, error)           { return nil, nil }

func TestADocumentOfTheProgramBeforeBecomesRowsWithoutLoss(t *testing.T) {
	t.Parallel()
	document := legacyDocument(t)
	urls := BaseURLs{Site: "http://sandbox.test/apps/1", Account: "acct_1"}
	a := must[*Account](t)(OpenStored(persist.Session{Legacy: document}, persist.Want{}, urls))
	change := must[persist.Change](t)(a.Change(Env{Now: 1769817600}))
	if !change.Replace || change.Head == nil || len(change.Rows) < 159 {
		t.Fatalf("it leaves %d rows, replacing: %v", len(change.Rows), change.Replace)
	}
	back := must[*Account](t)(OpenStored(storedAs(t, change), persist.Want{}, urls))
	exported := must[[]byte](t)(back.Export())

	var was, is map[string]any
	if err := errors.Join(json.Unmarshal(document, &was), json.Unmarshal(exported, &is)); err != nil {
		t.Fatal(err)
	}
	// Only what orders timers and deliveries was added.
	for _, list := range []string{"Timers", "Queue"} {
		for _, entry := range is[list].([]any) {
			delete(entry.(map[string]any), "Nth")
		}
	}
	delete(was, "Made")
	delete(is, "Made")
	for name := range was {
		if !reflect.DeepEqual(was[name], is[name]) {
			t.Errorf("%s are others", name)
		}
	}
	if len(was) != len(is) {
		t.Errorf("%d collections have become %d", len(was), len(is))
	}
	// And time goes on as it would have.
	later := func(document []byte) string {
		a := reopen(t, document)
		a.Fire(Env{Now: 1769817600 + 40*day, Random: rand.New(rand.NewPCG(3, 4))})
		return string(snapshotOf(t, a))
	}
	if later(document) != later(exported) {
		t.Error("forty days later it is another account")
	}
}

// TestTimePasses is what lets a clock be advanced: however the months are cut
// into pieces, and however often the account is stored between them, the same
// things happen at the same instants.
func TestTimePasses(t *testing.T) {
	t.Parallel()
	whole, env := busyAccount(t)
	begun := snapshotOf(t, whole)
	luck := func() *rand.Rand { return rand.New(rand.NewPCG(3, 4)) }
	end := env.Now + 130*day
	whole.Fire(Env{Now: end, Random: luck()})
	want := string(snapshotOf(t, whole))

	for seed := range uint64(4) {
		cut := rand.New(rand.NewPCG(seed, seed))
		a, random := reopen(t, begun), luck()
		for now := env.Now; now < end; {
			now = min(end, now+Time(1+cut.Int64N(int64(30*day))))
			a.Fire(Env{Now: now, Random: random})
			if cut.IntN(2) == 0 {
				a = reopen(t, snapshotOf(t, a))
			}
		}
		if got := string(snapshotOf(t, a)); got != want {
			t.Errorf("cut with seed %d it is another account: %d bytes, not %d", seed, len(got), len(want))
		}
	}
}

// TestBooksBalance holds, after a year, what must be true of money.
func TestBooksBalance(t *testing.T) {
	t.Parallel()
	a, env := busyAccount(t)
	a.Fire(Env{Now: env.Now + 366*day, Random: env.Random})
	charged := map[string]int64{}
	for _, charge := range a.Charges.Loaded() {
		charged[charge.Intent] += charge.Amount
		if charge.Refunded < 0 || charge.Refunded > charge.Amount {
			t.Errorf("%s of %d has %d refunded", charge.ID, charge.Amount, charge.Refunded)
		}
	}
	for _, invoice := range a.Invoices.Loaded() {
		if paid := invoice.Status == settled; paid != (charged[invoice.Intent] == invoice.AmountDue) {
			t.Errorf("%s is %s, and %d of %d were charged", invoice.ID, invoice.Status, charged[invoice.Intent], invoice.AmountDue)
		}
	}
	for _, s := range a.Subscriptions.Loaded() {
		if !s.ended() && s.PeriodEnd <= env.Now+366*day {
			t.Errorf("%s is %s and its period is over", s.ID, s.Status)
		}
	}
}

func TestBoundary(t *testing.T) {
	t.Parallel()
	date := func(text string) Time {
		at, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return Time(at.Unix())
	}
	for _, c := range []struct {
		interval     Interval
		anchor, want string
		n            int
	}{
		{Interval{"month", 1}, "2026-01-31 10:00:00", "2026-02-28 10:00:00", 1},
		{Interval{"month", 1}, "2026-01-31 10:00:00", "2026-03-31 10:00:00", 2},
		{Interval{"month", 1}, "2028-01-31 10:00:00", "2028-02-29 10:00:00", 1},
		{Interval{"month", 3}, "2026-11-30 10:00:00", "2027-02-28 10:00:00", 1},
		{Interval{"year", 1}, "2028-02-29 10:00:00", "2029-02-28 10:00:00", 1},
		{Interval{"year", 1}, "2028-02-29 10:00:00", "2032-02-29 10:00:00", 4},
		{Interval{"week", 2}, "2026-03-20 10:00:00", "2026-04-03 10:00:00", 1},
		{Interval{"day", 1}, "2026-03-28 10:00:00", "2026-03-29 10:00:00", 1},
	} {
		if got := c.interval.boundary(date(c.anchor), c.n); got != date(c.want) {
			t.Errorf("%v, %d after %s is %s", c.interval, c.n, c.anchor, time.Unix(int64(got), 0).UTC())
		}
	}

	t.Run("that follows is the first one after", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			unit := rapid.SampledFrom([]string{"day", "week", "month", "year"}).Draw(rt, "unit")
			i := Interval{unit, rapid.IntRange(1, maxIntervalCount[unit]).Draw(rt, "count")}
			anchor := Time(rapid.Int64Range(0, 4e9).Draw(rt, "anchor"))
			at := anchor + Time(rapid.Int64Range(0, 4e8).Draw(rt, "later"))
			next := i.following(anchor, at)
			n := 1
			for i.boundary(anchor, n) <= at {
				n++
			}
			if next != i.boundary(anchor, n) {
				rt.Fatalf("%v from %d after %d gives %d, want %d", i, anchor, at, next, i.boundary(anchor, n))
			}
		})
	})
}

func TestSmallInvoice(t *testing.T) {
	t.Parallel()
	t.Run("is carried until it can be charged", func(t *testing.T) {
		a, env := newTestAccount(t, "2026-03-01")
		s := subscribe(t, a, env, monthlyPrice(t, a, env, 30), "pays")
		if first := a.Invoices.Get(s.LatestInvoice); first.Status != settled || first.AmountPaid != 0 || a.Customers.Get(s.Customer).Balance != 30 {
			t.Errorf("first %+v", first)
		}
		a.Fire(Env{Now: s.PeriodEnd + hour, Random: env.Random})
		if second := a.Invoices.Get(s.LatestInvoice); second.AmountPaid != 60 || second.StartingBalance != 30 || a.Customers.Get(s.Customer).Balance != 0 {
			t.Errorf("second %+v", second)
		}
	})
}

func TestCustomerBalance(t *testing.T) {
	t.Parallel()
	credited := func(t *testing.T, credit int64) (*Account, Env, *Subscription) {
		t.Helper()
		a, env := newTestAccount(t, "2026-03-01")
		s := subscribe(t, a, env, monthlyPrice(t, a, env, 1000), "pays")
		amount := -credit
		must[*BalanceTransaction](t)(a.CreateBalanceTransaction(env, NewBalanceTransaction{Customer: s.Customer, Amount: &amount, Currency: "usd"}))
		return a, Env{Now: s.PeriodEnd, Random: env.Random}, s
	}
	// types are those of the customer's transactions, which add up to the balance.
	types := func(t *testing.T, a *Account, customer string) (all []string) {
		t.Helper()
		sum := int64(0)
		for _, transaction := range a.BalanceTransactions.Loaded() {
			if sum += transaction.Amount; transaction.EndingBalance != sum {
				t.Errorf("%+v ends at another sum than %d", transaction, sum)
			}
			all = append(all, transaction.Type)
		}
		if balance := a.Customers.Get(customer).Balance; balance != sum {
			t.Errorf("the balance is %d, want %d", balance, sum)
		}
		return all
	}
	t.Run("pays a renewal", func(t *testing.T) {
		a, env, s := credited(t, 5000)
		a.Fire(env.at(env.Now + hour))
		if renewal := a.Invoices.Get(s.LatestInvoice); renewal.Status != settled || renewal.AmountPaid != 0 || renewal.EndingBalance != -4000 {
			t.Errorf("the renewal is %+v", renewal)
		}
		if got, want := types(t, a, s.Customer), []string{adjustment, appliedToInvoice}; !slices.Equal(got, want) {
			t.Errorf("the transactions are %v, want %v", got, want)
		}
	})
	t.Run("is given back by a voided invoice", func(t *testing.T) {
		a, env, s := credited(t, 300)
		a.Fire(env)
		no := false
		must[*Invoice](t)(a.FinalizeInvoice(env, s.LatestInvoice, &no))
		must[*Invoice](t)(a.VoidInvoice(env, s.LatestInvoice))
		if got, want := types(t, a, s.Customer), []string{adjustment, appliedToInvoice, unappliedFromInvoice}; !slices.Equal(got, want) {
			t.Errorf("the transactions are %v, want %v", got, want)
		}
		if balance := a.Customers.Get(s.Customer).Balance; balance != -300 {
			t.Errorf("the balance is %d", balance)
		}
	})
	t.Run("is kept in one currency", func(t *testing.T) {
		a, env, s := credited(t, 300)
		amount := int64(-1)
		if _, err := a.CreateBalanceTransaction(env, NewBalanceTransaction{Customer: s.Customer, Amount: &amount, Currency: "eur"}); err == nil {
			t.Error("another currency is accepted")
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()

	t.Run("a delivery is given up after its last try", func(t *testing.T) {
		a, env := newTestAccount(t, "2026-03-01")
		must[*Endpoint](t)(a.CreateEndpoint(env, NewEndpoint{URL: "http://receiver.test/", Types: []string{"*"}}))
		must[*Customer](t)(a.CreateCustomer(env, CustomerFields{}))
		tries := 0
		for now := int64(0); a.Waiting() > 0; now += 3_600_000 {
			for _, out := range a.Claim(now, 1) {
				tries++
				a.MarkFailed(out.Delivery, now)
			}
		}
		if tries != maxTries {
			t.Errorf("tried %d times", tries)
		}
		for _, event := range a.Events.Loaded() {
			if a.IsDelivered(event) {
				t.Error("the lost event counts as delivered")
			}
		}
	})

	t.Run("a claimed delivery is not claimed again for a while", func(t *testing.T) {
		a, env := newTestAccount(t, "2026-03-01")
		must[*Endpoint](t)(a.CreateEndpoint(env, NewEndpoint{URL: "http://receiver.test/", Types: []string{"*"}}))
		must[*Customer](t)(a.CreateCustomer(env, CustomerFields{}))
		if len(a.Claim(0, 10)) != 1 || len(a.Claim(leaseTime-1, 10)) != 0 || len(a.Claim(leaseTime, 10)) != 1 {
			t.Error("the lease does not hold")
		}
	})
}
