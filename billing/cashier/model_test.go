package cashier_test

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"purser/billing"
	"purser/metering"
	"purser/store"
)

const (
	// modelHistories is how many histories the ordinary suite plays, and modelWorkers
	// how many of them at the same time.
	modelHistories = 80
	modelWorkers   = 2
	// modelSeed makes the ordinary suite play the same histories each time.
	modelSeed = "1"
	// modelSteps is the length of a history.
	modelSteps = 9
	// brimEvery is how often a history is about wallets at their limits.
	brimEvery = 4
)

var (
	histories = flag.Int("model.histories", modelHistories, "how many histories of a shop the cashier's model plays")
	limitsToo = flag.Bool("model.limits", true, "whether some of them are about wallets at their limits")
)

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
				atLimits := rapid.Custom(func(rt *rapid.T) int { return pick(rt, brimEvery) }).Draw(rt, "wallet") == brimEvery-1 && playFullWallets && *limitsToo
				first := rapid.Custom(drawFirst).Draw(rt, "first")
				steps := []modelStep{first}
				for len(steps) < modelSteps {
					steps = append(steps, rapid.Custom(func(rt *rapid.T) modelStep { return drawStep(rt, atLimits) }).Draw(rt, "then"))
				}
				template := plain
				if atLimits {
					template = brim
				}
				tally.add(playHistory(rt, t.Context(), template, atLimits, false, steps...))
			})
		})
	}
}

// playHistory takes the steps in an application of their own, and judges them.
func playHistory(tb rapid.TB, ctx context.Context, template *modelTemplate, brim, scripted bool, steps ...modelStep) *modelHistory {
	tb.Helper()
	h := &modelHistory{modelShop: template.copy(tb, ctx), gaveBack: map[string]bool{}, scripted: scripted}
	for who := range 2 {
		c := &modelCustomer{name: modelWho(who), moved: map[string]*big.Int{}, brim: brim}
		if brim {
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
	s, err := store.Open(t.Context(), address, store.Options{})
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
	return plain, brim
}
