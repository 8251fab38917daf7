package cashier_test

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/billing"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

const (
	// modelHistories is how many histories the ordinary suite plays, and modelWorkers
	// how many of them at the same time.
	modelHistories = 2000
	modelWorkers   = 2
	// modelConns is how many database connections they share.
	modelConns = 4
	// modelSeed makes the ordinary suite play the same histories each time.
	modelSeed = "1"
	// webhookEvery is how often each webhook is received by itself: the webhook's route
	// is half of the cost of a history, and has tests of its own.
	webhookEvery = 16
	// sweepEvery is how often periodic jobs run in a history as they do in a server.
	// Elsewhere they run when webhooks were lost.
	sweepEvery = 16
)

var (
	histories = flag.Int("model.histories", modelHistories, "how many histories of a shop the cashier's model plays")
	theme     = flag.String("model.theme", "", "the only theme of histories that is played")
)

// modelStarts is when histories start: around the ends of long and short months, on a
// leap day, and at the second of midnight.
var modelStarts = []time.Time{
	time.Date(2028, time.January, 31, 22, 15, 30, 0, time.UTC),
	time.Date(2028, time.February, 29, 23, 59, 58, 0, time.UTC),
	time.Date(2028, time.March, 31, 0, 0, 0, 0, time.UTC),
	time.Date(2028, time.May, 15, 12, 0, 0, 999_000_000, time.UTC),
	time.Date(2028, time.December, 31, 23, 30, 0, 0, time.UTC),
	time.Date(2029, time.January, 30, 10, 0, 0, 0, time.UTC),
}

// TestBooksMatchWhatTheProviderTook plays histories of a shop against a model that
// knows the rules of the interface, and compares the books with the provider's own
// record. The ordinary suite plays the same histories each time; `-model.histories=5000`
// draws others, and `-rapid.seed` repeats some.
func TestBooksMatchWhatTheProviderTook(t *testing.T) {
	t.Parallel()
	plain, brim := modelTemplates(t)
	if err := flag.Set("rapid.checks", fmt.Sprint(max(1, *histories/modelWorkers))); err != nil {
		t.Fatal(err)
	}
	if *histories == modelHistories && flag.Lookup("rapid.seed").Value.String() == "0" {
		if err := flag.Set("rapid.seed", modelSeed); err != nil {
			t.Fatal(err)
		}
	}
	tally := &modelTally{counts: map[string]int{}}
	t.Cleanup(func() { t.Log(tally) })
	for worker := range modelWorkers {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				for range worker { // with one seed, the workers would play the same histories
					rapid.Uint64().Draw(rt, "worker")
				}
				drawn := rapid.Custom(drawTheme).Draw(rt, "theme")
				play := modelPlay{
					template: plain, brim: drawn.brim, rounds: drawn.nth%sweepEvery == 1, merged: drawn.nth%webhookEvery != 2,
					start: modelStarts[drawn.nth/sweepEvery%len(modelStarts)],
				}
				if drawn.brim {
					play.template = brim
				}
				steps := []modelStep{rapid.Custom(drawn.firstStep).Draw(rt, "first")}
				for len(steps) < drawn.steps {
					steps = append(steps, rapid.Custom(drawn.step).Draw(rt, "then"))
				}
				tally.add(play.history(rt, t.Context(), steps...))
			})
		})
	}
}

// modelPlay is how a history is played.
type modelPlay struct {
	template *modelTemplate
	brim     bool      // its wallets are at their limits
	rounds   bool      // periodic jobs run
	merged   bool      // webhooks are not received one by one
	start    time.Time // zero for the first of modelStarts
}

// history takes the steps in an application of their own, and judges them.
func (p modelPlay) history(tb rapid.TB, ctx context.Context, steps ...modelStep) *modelHistory {
	tb.Helper()
	h := &modelHistory{modelShop: p.template.copy(tb, ctx), gaveBack: map[string]bool{}}
	h.merged = p.merged
	if !p.start.IsZero() {
		h.real.Store(p.start.UnixMilli())
	}
	if p.rounds {
		h.check(h.cashier.EnqueuePeriodicJobs(ctx, h.scope, true))
	}
	for who := range 2 {
		c := &modelCustomer{name: modelWho(who), moved: map[string]*big.Int{}, brim: p.brim}
		if p.brim {
			for _, b := range h.wallet(c.name).Balances {
				c.move(b.CreditKey, b.Amount, 1)
			}
		}
		h.customers = append(h.customers, c)
	}
	for _, s := range steps {
		h.take(s)
	}
	h.finish()
	return h
}

// modelTally counts what happened in histories, so that a log shows what they
// have been about.
type modelTally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *modelTally) add(h *modelHistory) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := h.provider()
	t.counts["histories"]++
	t.counts["deaths"] += h.deaths
	t.counts["refunds"] += len(w.Refunds)
	t.counts["disputes"] += len(w.Disputes)
	for _, invoice := range w.Invoices {
		if invoice.Status == providerPaid {
			t.counts[strings.TrimPrefix(invoice.Reason, "subscription_")]++
		}
		if invoice.Reason == providerUpdate && invoice.PaidAt > invoice.Created {
			t.counts["update paid later"]++
		}
	}
	for _, s := range w.Subscriptions {
		t.counts[s.Status]++
		if s.EndReason != "" {
			t.counts[s.EndReason]++
		}
	}
	for _, c := range h.customers {
		for _, page := range c.pages {
			if session := w.Sessions[page.session]; page.plan == nil && session != nil && session.Payment == providerPaid {
				t.counts["top-up"]++
			}
		}
		for _, promise := range c.promises {
			if promise.turns != 0 && promise.turns < h.now() {
				t.counts["downgrade"]++
			}
		}
	}
}

func (t *modelTally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprint(t.counts)
}

// modelTemplates are the applications that histories begin with: one with empty
// wallets, and one whose customers' wallets are at their limits.
func modelTemplates(t *testing.T) (plain, brim *modelTemplate) {
	t.Helper()
	address := modelURL(t)
	// Each connection plans each statement by itself, so few connections save planning.
	s, err := store.Open(t.Context(), address, store.Options{MaxConns: modelConns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	catalog := func(m *modelShop) {
		m.credit("tokens")
		m.credit("images")
		m.feature("report", "tokens")
		m.newPlan("free", 0, grants("tokens", 3))
		m.newPlan("lite", 500)
		m.newPlan("basic", 1000, grants("tokens", 10*million))
		m.newPlan("pro", 2900, grants("tokens", 100*million), grants("images", 5*million))
		m.newPlan("annual", 29000, yearly, grants("images", 1000*million), func(d *billing.PlanDraft) {
			d.Multipliers = []metering.Multiplier{{FeatureKey: "report", BasisPoints: 5000}}
		})
	}
	plain = newModelTemplate(t, s, address, catalog)
	brim = newModelTemplate(t, s, address, func(m *modelShop) {
		catalog(m)
		for n := range 99 {
			key := fmt.Sprintf("c%02d", n)
			m.credit(key)
			m.check(m.deposit("ada", key, 1))
			m.check(m.deposit("bob", key, 1))
		}
		m.check(m.deposit("bob", "tokens", modelMostAmount-2*million))
	})
	// Without statistics Postgres scans tables that hold the rows of all histories.
	storetest.Exec(t, address, "ANALYZE")
	return plain, brim
}
