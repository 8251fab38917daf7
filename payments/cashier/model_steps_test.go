package cashier_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/store"
)

// A history is a list of steps. Every step can be taken at any time: what it needs
// and does not find makes it do nothing, so that a failing history shrinks to the
// steps that matter.
type modelStep struct {
	Do   string
	Who  int    // which customer
	Plan string // of a checkout, a change or an edit
	Card string
	How  int   // which of several ways, or which of several objects
	Wait int64 // milliseconds
	Dies int   // the node dies at this call; 0 for never
	Late bool  // and not before the provider has carried the call out
	Asks bool  // and the caller asks again with the same key

	room []fault.Code // a refusal for want of room, which may come now or with the payment
}

func (s modelStep) String() string {
	text := fmt.Sprintf("%s %s", s.Do, modelWho(s.Who))
	switch s.Do {
	case "buy", "open":
		text += " " + s.Plan + " " + s.Card
	case "change", "edit":
		text += fmt.Sprintf(" %s (%d)", s.Plan, s.How)
	case "pay", "card", "topup":
		text += fmt.Sprintf(" %s (%d)", s.Card, s.How)
	case "wait":
		text = fmt.Sprintf("wait %s (%d)", time.Duration(s.Wait)*time.Millisecond, s.How)
	default:
		text += fmt.Sprintf(" (%d)", s.How)
	}
	if s.Dies > 0 {
		text += fmt.Sprintf(", dies at call %d (after it: %v, asks again: %v)", s.Dies, s.Late, s.Asks)
	}
	return text
}

// GoString is what rapid prints.
func (s modelStep) GoString() string { return "{" + s.String() + "}" }

const (
	modelMinute = int64(time.Minute / time.Millisecond)
	modelHour   = 60 * modelMinute
	modelDay    = 24 * modelHour
)

// The ways to wait, by How: for a time, or to a moment around the end of the
// customer's period.
const (
	waitFor = iota
	waitToEnd
	waitIntoDraft
	waitPastDraft
	waitToExpiry
	waysToWait
)

// pick draws one of n evenly; rapid's own integers prefer small ones, with which
// most histories would be about the first plan and no death. It shrinks to 0.
func pick(t *rapid.T, n int) (drawn int) {
	for bits := 1; bits < 8*n; bits *= 2 {
		drawn *= 2
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn % n
}

func pickOf[T any](t *rapid.T, list ...T) T { return list[pick(t, len(list))] }

// modelTheme is what a history is about. A theme has few kinds of steps, so that what
// belongs together meets in a short history.
type modelTheme struct {
	name  string
	do    []string // the kinds of steps; what is drawn often is there several times
	plans []string // of checkouts, changes and edits
	cards []string
	waits []int // ways to wait; waitFor draws a time too
	first []string
	brim  bool // wallets are at their limits
	alone bool // all steps are one customer's

	nth   int // tells histories of one theme apart
	steps int // how many
}

var (
	anyPlan = []string{"basic", "pro", "lite", "annual", "free", "basic", "pro"}
	anyCard = []string{cardPays, cardPays, cardPays, cardAsksAlways, cardAsksOnce, cardFailsLater, cardDeclined, cardRefundFails, cardDisputed, bankSucceeds, bankFails}
	anyWait = []int{waitFor, waitToEnd, waitIntoDraft, waitPastDraft, waitToExpiry}
	anyStep = []string{
		"buy", "buy", "open", "pay", "pay", "pay", "leave", "change", "change", "change", "change", "change", "change", "change",
		"cancel", "cancel", "undo", "card", "card", "topup", "refund", "dispute", "edit", "deposit", "spend", "hold", "release", "lose", "replay", "repeat",
		"wait", "wait", "wait", "wait", "wait", "wait", "wait",
	}
)

var modelThemes = []modelTheme{
	{name: "anything", do: anyStep, plans: anyPlan, cards: anyCard, waits: anyWait, first: []string{"buy", "buy", "buy", "buy", "open", "topup", "change"}},
	{
		name: "the end of a period", do: []string{"wait", "wait", "wait", "change", "change", "change", "cancel", "undo", "card", "pay"},
		plans: []string{"lite", "basic", "pro", "annual", "free"}, cards: []string{cardPays, cardAsksAlways, cardFailsLater, bankFails},
		waits: []int{waitToEnd, waitIntoDraft, waitIntoDraft, waitPastDraft, waitFor}, first: []string{"buy"},
	},
	{
		name: "the end of a period", do: []string{"wait", "change", "change", "wait", "wait", "undo"}, plans: []string{"basic", "pro", "free"},
		cards: []string{cardPays}, waits: []int{waitIntoDraft, waitToEnd, waitPastDraft}, first: []string{"buy"},
	},
	{
		name: "pages", do: []string{"open", "pay", "pay", "pay", "change", "change", "change", "leave", "buy", "wait"}, plans: []string{"free", "free", "basic", "pro"},
		cards: []string{cardPays, cardPays, cardAsksOnce, cardDeclined, bankSucceeds}, waits: []int{waitFor}, first: []string{"open", "open", "buy", "change"},
	},
	{
		name: "a free plan beside a page", do: []string{"change", "pay", "pay", "wait"}, plans: []string{"free"}, cards: []string{cardPays}, waits: []int{waitFor},
		first: []string{"open"}, alone: true,
	},
	{
		name: "upgrades that wait", do: []string{"change", "change", "change", "pay", "pay", "wait", "cancel", "undo", "card"}, plans: []string{"lite", "basic", "pro", "annual"},
		cards: []string{cardAsksAlways, cardFailsLater, cardPays}, waits: []int{waitFor, waitToExpiry, waitToExpiry, waitIntoDraft}, first: []string{"buy"},
	},
	{
		name: "bank debits", do: []string{"change", "change", "pay", "wait", "wait", "wait", "cancel", "card", "buy"}, plans: []string{"lite", "basic", "pro", "free"},
		cards: []string{bankSucceeds, bankSucceeds, bankFails, cardPays}, waits: []int{waitFor, waitIntoDraft, waitPastDraft}, first: []string{"buy"},
	},
	{
		name: "money that goes back", do: []string{"refund", "refund", "dispute", "topup", "spend", "hold", "release", "replay", "wait", "change"}, plans: []string{"basic", "pro"},
		cards: []string{cardPays, cardPays, cardRefundFails, cardDisputed}, waits: []int{waitFor, waitPastDraft}, first: []string{"topup", "topup", "buy"},
	},
	{
		name: "edited plans", do: []string{"edit", "edit", "change", "change", "wait", "wait", "buy"}, plans: []string{"basic", "basic", "pro", "free"},
		cards: []string{cardPays}, waits: []int{waitFor, waitIntoDraft, waitPastDraft}, first: []string{"buy", "buy", "open"},
	},
	{
		name: "limits", do: []string{"topup", "topup", "deposit", "deposit", "spend", "refund", "dispute", "buy", "change", "wait", "pay", "hold", "release"}, plans: anyPlan,
		cards: []string{cardPays}, waits: []int{waitFor, waitPastDraft}, first: []string{"topup", "buy", "deposit", "change", "open"}, brim: true,
	},
	{
		name: "limits that are reached while a page is open", do: []string{"deposit", "deposit", "pay", "pay", "topup"}, plans: []string{"annual", "basic"},
		cards: []string{cardPays}, first: []string{"open"}, brim: true, alone: true,
	},
}

// modelLengths is how many steps a history has: most are short, and some are long.
var modelLengths = []int{3, 3, 4, 4, 4, 5, 5, 9}

// drawTheme draws what a history is about.
func drawTheme(t *rapid.T) modelTheme {
	themes := modelThemes
	if *theme != "" {
		themes = slices.DeleteFunc(slices.Clone(themes), func(m modelTheme) bool { return m.name != *theme })
	}
	drawn := pickOf(t, themes...)
	drawn.steps, drawn.nth = pickOf(t, modelLengths...), pick(t, 256)
	return drawn
}

func (m modelTheme) GoString() string { return fmt.Sprintf("%s, %d steps, %d", m.name, m.steps, m.nth) }

// firstStep draws a step with which a customer comes to be one.
func (m modelTheme) firstStep(t *rapid.T) modelStep {
	s := modelStep{Do: pickOf(t, m.first...), Plan: "free", Card: cardPays}
	switch s.Do {
	case "buy", "open":
		s.Plan = pickOf(t, m.plans...)
		if s.Plan == "free" && pick(t, 4) > 0 {
			s.Plan = "basic"
		}
		s.Card = pickOf(t, append(m.cards, cardPays, cardPays)...)
	case "topup", "deposit":
		s.How, s.Who = pick(t, 6), pick(t, 2)
	}
	return s
}

// step draws one step.
func (m modelTheme) step(t *rapid.T) modelStep {
	s := modelStep{Do: pickOf(t, m.do...), Who: pickOf(t, 0, 0, 0, 0, 0, 1)}
	switch {
	case m.alone:
		s.Who = 0
	case m.brim:
		s.Who = pick(t, 2)
	}
	switch s.Do {
	case "buy", "open", "change", "edit":
		s.Plan = pickOf(t, m.plans...)
	}
	switch s.Do {
	case "buy", "pay", "card", "topup":
		s.Card = pickOf(t, m.cards...)
	case "wait":
		s.How = pickOf(t, m.waits...)
		s.Wait = pickOf(t, 0, 1000, 10*modelMinute, 30*modelMinute, modelHour, 20*modelHour, 26*modelHour, 4*modelDay, 8*modelDay, 29*modelDay, 31*modelDay, 32*modelDay)
	}
	switch s.Do {
	case "pay", "leave", "edit", "refund", "dispute", "replay", "topup", "deposit", "spend":
		s.How = pick(t, 6)
	case "change":
		s.How = pick(t, 4)
	}
	switch s.Do {
	case "buy", "open", "change", "cancel", "undo", "topup", "release":
		if pick(t, 30) == 29 {
			s.Dies, s.Late, s.Asks = 1+pick(t, 8), pick(t, 2) == 1, pick(t, 2) == 1
		}
	}
	return s
}

// modelHistory is a shop in the middle of its history, with what the model knows
// of it.
type modelHistory struct {
	*modelShop
	customers []*modelCustomer
	taken     []string        // the steps so far
	held      bool            // webhooks wait
	unheard   bool            // webhooks were lost, and no round has been made since
	last      func()          // repeats the last request
	deaths    int             // of nodes
	gaveBack  map[string]bool // charges that the history refunded
}

// modelCustomer is an identity and everything it was told.
type modelCustomer struct {
	name     string
	pages    []modelPage
	asked    []modelRequest
	promises []modelPromise
	free     *modelFree          // a free plan that the provider does not know
	moved    map[string]*big.Int // deposits less spending
	brim     bool                // its wallet is at its limits
}

// modelPage is a hosted page that the customer was sent to.
type modelPage struct {
	url     string
	session string // at the provider
	id      ids.ID
	plan    *billing.Plan // as it was when the page was made; nil for a top-up
	amount  metering.Amount
	credit  string
	at      int64
	// replaces says that what the page sells takes the place of what the customer has.
	replaces bool
}

// modelRequest is an accepted change, or one whose answer was lost.
type modelRequest struct {
	plan billing.Plan // as it was when it was asked for
	at   int64
}

// modelPromise is what an answer said will become of the subscription.
type modelPromise struct {
	about   string // the subscription at the provider; empty when the answer was lost
	from    int64
	unknown bool          // the answer was lost
	ends    int64         // it ends at this time; 0 for no end
	turns   int64         // it changes to plan at this time; 0 for no change
	plan    *billing.Plan // as it was when asked for
	waits   bool          // unless a change is paid for that waits
}

// modelFree is a free subscription.
type modelFree struct {
	plan   billing.Plan
	anchor int64
	ends   int64 // 0 for no end
}

// over reports whether there is none, or none any more.
func (f *modelFree) over(at int64) bool { return f == nil || f.ends != 0 && at >= f.ends }

// ending keeps when it ends.
func (f *modelFree) ending(answer billing.Subscription) {
	f.ends = 0
	if answer.CancelAtPeriodEnd {
		f.ends = answer.Period.End
	}
}

func modelWho(who int) string { return []string{"ada", "bob"}[who] }

func (h *modelHistory) customer(s modelStep) *modelCustomer { return h.customers[s.Who] }

func (h *modelHistory) fail(format string, values ...any) {
	h.Helper()
	h.Fatalf("%s\nafter\n  %s\nlogged:\n%s", fmt.Sprintf(format, values...), strings.Join(h.taken, "\n  "), h.log)
}

// take takes one step.
func (h *modelHistory) take(s modelStep) {
	h.Helper()
	if s.Do == "rest" {
		return
	}
	h.real.Add(7) // requests that follow each other still share a second
	h.taken = append(h.taken, fmt.Sprintf("%s  %s", time.UnixMilli(h.now()).UTC().Format("2006-01-02 15:04:05.000"), s))
	c := h.customer(s)
	switch s.Do {
	case "buy":
		if page := h.checkout(c, s); page != nil {
			h.payPage(page.url, s.Card)
		}
	case "open":
		h.checkout(c, s)
	case "topup":
		if page := h.topUp(c, s); page != nil {
			h.payPage(page.url, s.Card)
		}
	case "pay":
		// A change that waits for its payment is what people pay for most.
		if waiting := h.subscriptionOf(c); waiting != nil && waiting.Pending != nil && s.How%3 != 2 {
			h.payPage(waiting.Pending.PaymentURL, s.Card)
		} else if page := h.pageOf(c, s.How); page != nil {
			h.payPage(page.url, s.Card)
		}
	case "leave":
		if page := h.pageOf(c, s.How/2); page != nil {
			h.submit(page.url, url.Values{"action": {[]string{"cancel", "expire"}[s.How%2]}})
		}
	case "change":
		h.change(c, s)
	case "cancel", "undo":
		h.cancel(c, s)
	case "card":
		if page, err := h.cashier.Portal(h.ctx, h.scope, c.name, "http://shop.test/account"); err == nil {
			h.submit(page, url.Values{"card": {s.Card}})
		}
	case "refund", "dispute":
		h.reverse(c, s)
	case "edit":
		h.edit(s)
	case "deposit":
		h.depositTo(c, s)
	case "spend":
		h.spendFrom(c, s)
	case "hold":
		h.steer("webhooks", `{"hold": true}`)
		h.held = true
	case "lose":
		h.lose.Store(true)
		h.unheard = true
	case "release":
		h.releaseAll(s)
	case "replay":
		h.steer("webhooks", `{"replay": %d, "shuffle": %d}`, 1+10*s.How, s.How)
	case "repeat":
		if h.last != nil {
			h.last()
		}
	case "wait":
		h.wait(c, s)
	}
	if !h.held && !h.unheard {
		h.settle()
		h.judge()
	}
}

// releaseAll lets webhooks through again, and has lost ones found.
func (h *modelHistory) releaseAll(s modelStep) {
	h.Helper()
	h.lose.Store(false)
	h.held = false
	if s.Dies > 0 {
		err := h.dying(s.Dies-1, s.Late, func(node *cashier.Cashier) error { return node.DrainAll(h.ctx, h.app.ID) })
		if err != nil && !errors.Is(err, errDied) {
			h.fail("working off the queue: %v", err)
		}
	}
	h.steer("webhooks", `{"hold": false}`)
	if h.unheard {
		h.check(h.cashier.EnqueuePeriodicJobs(h.ctx, h.scope, false))
		h.unheard = false
	}
	h.settle()
}

// plan reads a plan, as a caller can.
func (h *modelHistory) plan(key string) billing.Plan {
	h.Helper()
	p, err := h.store.App(h.scope).Plan(h.ctx, key)
	h.check(err)
	return p
}

// subscriptionOf reads what the customer has; nil for nothing.
func (h *modelHistory) subscriptionOf(c *modelCustomer) *billing.Subscription {
	h.Helper()
	s, err := h.cashier.Subscription(h.ctx, h.scope, c.name)
	if fault.Is(err, fault.SubscriptionNotFound) {
		return nil
	}
	h.check(err)
	// The page of a change whose answer was lost is read here for the first time.
	if s.Pending != nil && strings.Contains(s.Pending.PaymentURL, "/checkout/") {
		if plan := h.queued(c, s.Pending.Target.PlanKey); plan != nil {
			c.sent(modelPage{url: s.Pending.PaymentURL, plan: plan, at: h.now(), replaces: true})
		}
	}
	return &s
}

// calm says that every event was applied, so that its answer can be
// told in advance.
func (h *modelHistory) calm() bool { return !h.held && !h.unheard }

// ask makes a request, once by a node that dies and again by its successor when
// the step says so. It reports errDied when no answer came.
func (h *modelHistory) ask(s modelStep, request func(*cashier.Cashier, string) error) error {
	h.Helper()
	key := newKey()
	h.last = nil
	if s.Dies > 0 {
		err := h.dying(s.Dies-1, s.Late, func(node *cashier.Cashier) error { return request(node, key) })
		if !errors.Is(err, errDied) {
			return err
		}
		h.deaths++
		h.real.Add(2 * modelMinute)
		if h.calm() {
			h.settle()
		}
		if !s.Asks {
			return errDied
		}
	}
	err := request(h.cashier, key)
	if err == nil {
		h.last = func() {
			if err := request(h.cashier, key); err != nil {
				h.fail("the same request again: %v", err)
			}
		}
	}
	return err
}

// wanted compares an answer with the faults that the rules allow: none of them
// means that the request has to be accepted.
func (h *modelHistory) wanted(what string, err error, s modelStep, faults ...fault.Code) {
	h.Helper()
	var known *fault.Fault
	switch {
	case errors.Is(err, errDied):
	case err != nil && !errors.As(err, &known):
		h.fail("%s: %v", what, err)
	case err != nil && slices.Contains(s.room, known.Code):
	case !h.calm() || s.Dies > 0:
		if err != nil && known.Kind() != fault.Conflict && known.Kind() != fault.NotFound {
			h.fail("%s: %v", what, err)
		}
	case err == nil && len(faults) > 0:
		h.fail("%s is accepted, want one of %v", what, faults)
	case err != nil && !slices.Contains(faults, known.Code):
		h.fail("%s: %v, want one of %v", what, err, faults)
	}
}

func (h *modelHistory) checkout(c *modelCustomer, s modelStep) *modelPage {
	h.Helper()
	plan, has := h.plan(s.Plan), h.subscriptionOf(c)
	var faults []fault.Code
	if has != nil {
		faults = append(faults, fault.SubscriptionExists)
	}
	if !plan.Active {
		faults = append(faults, fault.PlanInactive)
	}
	if plan.Sync.Status != billing.SyncDone {
		faults = append(faults, fault.PlanNotSynced)
	}
	var page cashier.Page
	at := h.now()
	s.room = roomForPlan(h.wallet(c.name), plan)
	err := h.ask(s, func(node *cashier.Cashier, key string) (err error) {
		page, err = node.SubscriptionCheckout(h.ctx, h.scope, billing.CheckoutRequest{
			Identity: c.name, PlanKey: s.Plan, SuccessURL: "http://shop.test/thanks", CancelURL: "http://shop.test/back",
		}, key)
		return err
	})
	h.wanted("a checkout of "+s.Plan, err, s, faults...)
	if err != nil {
		return nil
	}
	return c.sent(modelPage{url: page.URL, id: page.ID, plan: &plan, at: at})
}

// sent notes a page, unless the customer knows it.
func (c *modelCustomer) sent(page modelPage) *modelPage {
	page.session = page.url[strings.LastIndex(page.url, "/")+1:]
	if i := slices.IndexFunc(c.pages, func(p modelPage) bool { return p.session == page.session }); i >= 0 {
		return &c.pages[i]
	}
	c.pages = append(c.pages, page)
	return &c.pages[len(c.pages)-1]
}

// pageOf is one of the customer's pages, the newest first.
func (h *modelHistory) pageOf(c *modelCustomer, nth int) *modelPage {
	if len(c.pages) == 0 {
		return nil
	}
	return &c.pages[len(c.pages)-1-nth%len(c.pages)]
}

// payPage pays at a page. Where nothing is to be paid, the plan is just started.
func (h *modelHistory) payPage(page, card string) bool {
	h.Helper()
	if page == "" {
		return false
	}
	session := h.provider().Sessions[page[strings.LastIndex(page, "/")+1:]]
	if session != nil && session.Free() {
		card = noCard
	}
	return h.pay(page, card)
}

// The sizes of a top-up: the largest fill a balance to its limit.
var modelAmounts = []metering.Amount{30 * million, 7, 999_999_999_999, 5_000_000_000_000_000_000, 9_000_000_000_000_000_000, 9_999_999_999_999_999_999}

// amount is one that an ordinary balance has room for, or any.
func (c *modelCustomer) amount(s modelStep) metering.Amount {
	if c.brim {
		return modelAmounts[s.How]
	}
	return modelAmounts[s.How%3]
}

func (h *modelHistory) topUp(c *modelCustomer, s modelStep) *modelPage {
	h.Helper()
	amount, credit := c.amount(s), []string{"tokens", "images"}[s.How%2]
	var faults []fault.Code
	if has := h.subscriptionOf(c); has != nil && has.Status == metering.StatusActive && !has.Terms.TopupsEnabled {
		faults = append(faults, fault.TopupsDisabled)
	}
	wallet := h.wallet(c.name)
	faults = append(faults, roomFor(wallet, credit, amount)...)
	var page cashier.Page
	at := h.now()
	err := h.ask(s, func(node *cashier.Cashier, key string) (err error) {
		page, err = node.TopUpCheckout(h.ctx, h.scope, billing.TopUpRequest{
			Identity: c.name, CreditKey: credit, Amount: amount, AmountCents: 3000, Currency: "usd",
			SuccessURL: "http://shop.test/thanks", CancelURL: "http://shop.test/back",
		}, key)
		return err
	})
	h.wanted("a top-up", err, s, faults...)
	if err != nil {
		return nil
	}
	return c.sent(modelPage{url: page.URL, id: page.ID, amount: amount, credit: credit, at: at})
}

const (
	modelMostBalances = 100
	modelMostAmount   = metering.Amount(9_999_999_999_999_999_999)
)

// roomFor is why a wallet has no room for an amount of a credit; nothing when it
// has.
func roomFor(w metering.Wallet, credit string, amount metering.Amount) []fault.Code {
	for _, b := range w.Balances {
		if b.CreditKey != credit {
			continue
		}
		held := new(big.Int).SetUint64(uint64(b.Amount))
		held.Sub(held, new(big.Int).SetUint64(uint64(b.Debt)))
		if held.Add(held, new(big.Int).SetUint64(uint64(amount))).Cmp(new(big.Int).SetUint64(uint64(modelMostAmount))) > 0 {
			return []fault.Code{fault.BalanceOverflow}
		}
		return nil
	}
	if len(w.Balances) >= modelMostBalances {
		return []fault.Code{fault.TooManyBalances}
	}
	return nil
}

// roomForPlan is why a wallet has no room for what a plan grants.
func roomForPlan(w metering.Wallet, plan billing.Plan) (codes []fault.Code) {
	fresh := 0
	for _, g := range plan.Grants {
		if !slices.ContainsFunc(w.Balances, func(b metering.Balance) bool { return b.CreditKey == g.CreditKey }) {
			fresh++
		}
		codes = append(codes, roomFor(w, g.CreditKey, g.Amount)...)
	}
	if len(w.Balances)+fresh > modelMostBalances {
		codes = append(codes, fault.TooManyBalances)
	}
	return codes
}

// changeFaults is why a change to the plan is refused, as the interface has it;
// nothing when it is accepted.
func (h *modelHistory) changeFaults(has *billing.Subscription, plan billing.Plan) (faults []fault.Code) {
	if has == nil {
		switch {
		case plan.AmountCents > 0:
			return []fault.Code{fault.SubscriptionNotFound}
		case !plan.Active:
			return []fault.Code{fault.PlanInactive}
		}
		return nil
	}
	if has.Status == metering.StatusPastDue || has.Status == metering.StatusUnpaid || has.Status == metering.StatusIncomplete {
		faults = append(faults, fault.PaymentHold)
	}
	if has.CancelAtPeriodEnd {
		faults = append(faults, fault.CancellationScheduled)
	}
	if underWay(has) {
		faults = append(faults, fault.OperationInProgress)
	}
	if plan.Key == has.Terms.PlanKey {
		if has.Scheduled == nil && has.Pending == nil {
			faults = append(faults, fault.AlreadyOnPlan)
		}
		return faults
	}
	if !plan.Active {
		faults = append(faults, fault.PlanInactive)
	}
	if plan.Sync.Status != billing.SyncDone {
		faults = append(faults, fault.PlanNotSynced)
	}
	return faults
}

// underWay reports whether a debit for a change is under way, which nothing stops.
func underWay(s *billing.Subscription) bool { return s.Pending != nil && s.Pending.PaymentURL == "" }

// debited reports whether a first payment of the customer's is being debited, which would
// replace a free subscription.
func (h *modelHistory) debited(c *modelCustomer) bool {
	w := h.provider()
	return slices.ContainsFunc(c.pages, func(page modelPage) bool {
		session := w.Sessions[page.session]
		if session == nil {
			return false
		}
		bought := w.Subscriptions[session.Subscription]
		return bought != nil && bought.Status == providerWaiting
	})
}

func (h *modelHistory) change(c *modelCustomer, s modelStep) {
	h.Helper()
	plan, has, at := h.plan(s.Plan), h.subscriptionOf(c), h.now()
	faults := h.changeFaults(has, plan)
	if has != nil && has.Local() && !underWay(has) && h.debited(c) {
		faults = append(faults, fault.OperationInProgress)
	}
	s.room = roomForPlan(h.wallet(c.name), plan)
	var answer billing.Subscription
	err := h.ask(s, func(node *cashier.Cashier, key string) (err error) {
		answer, err = node.Change(h.ctx, h.scope, billing.ChangeRequest{Identity: c.name, PlanKey: s.Plan}, key)
		return err
	})
	h.wanted("a change to "+s.Plan, err, s, faults...)
	switch {
	case errors.Is(err, errDied):
		c.asked = append(c.asked, modelRequest{plan, at})
		c.promises = append(c.promises, modelPromise{from: at, unknown: true})
		h.freeMayHaveBegun(c, plan)
		return
	case err != nil:
		return
	}
	// Who stays is sold what they have, and what is billed already stays as it was sold.
	for _, terms := range frozen(has, at) {
		if sold := c.sold(terms); sold != nil && sold.Key == plan.Key {
			plan = *sold
		}
	}
	c.asked = append(c.asked, modelRequest{plan, at})
	h.recordPromise(c, answer, &plan, at)
	h.compareAnswer(answer, has, plan)
	if answer.ProviderID == "" && c.free.over(at) {
		c.free = &modelFree{plan: plan, anchor: answer.Period.Start}
	}
	if answer.Pending != nil && s.How >= 2 { // the customer pays at the page, now or later
		h.advanceTo(h.now() + int64(s.How-2)*30*modelMinute)
		h.payPage(answer.Pending.PaymentURL, cardPays)
	}
}

// freeMayHaveBegun asks what became of a request for a free plan whose answer was
// lost.
func (h *modelHistory) freeMayHaveBegun(c *modelCustomer, plan billing.Plan) {
	h.Helper()
	if sub := h.subscriptionOf(c); sub != nil && sub.ProviderID == "" && c.free.over(h.now()) {
		c.free = &modelFree{plan: plan, anchor: sub.Period.Start}
	}
}

// compareAnswer holds the answer to a change to what the interface says of it.
func (h *modelHistory) compareAnswer(answer billing.Subscription, before *billing.Subscription, plan billing.Plan) {
	h.Helper()
	if before == nil || !h.calm() {
		return
	}
	was := before.Terms
	longer := !(plan.Interval == billing.Month && was.Interval == billing.Year)
	upgrade := longer && plan.AmountCents > was.AmountCents
	switch {
	case plan.Key == was.PlanKey && before.Period.End <= h.now() && before.Scheduled != nil && before.Scheduled.EffectiveAt < before.Period.End+2*modelHour:
		// Another plan is billed already: to stay is to pay now for a new period.
		paid := answer.Terms.PlanKey == plan.Key && answer.Pending == nil && answer.Scheduled == nil && answer.Period.End > h.now()
		waits := answer.Terms.PlanKey == plan.Key && answer.Pending != nil && answer.Pending.Target.PlanKey == plan.Key && answer.Pending.PaymentURL != ""
		if !paid && !waits {
			h.fail("staying on %s while %s is billed answers %s", plan.Key, before.Scheduled.Target.PlanKey, show(answer))
		}
	case plan.Key == was.PlanKey:
		if answer.Terms.PlanKey != plan.Key || answer.Scheduled != nil || answer.Pending != nil {
			h.fail("staying on %s answers %s", plan.Key, show(answer))
		}
	case upgrade:
		paid := answer.Terms.PlanKey == plan.Key && answer.Pending == nil
		waits := answer.Terms.PlanKey == was.PlanKey && answer.Pending != nil && answer.Pending.Target.PlanKey == plan.Key &&
			answer.Pending.ExpiresAt > h.now() && answer.Pending.PaymentURL != ""
		billed := before.Scheduled != nil && before.Period.End <= h.now()
		if !paid && !waits || answer.Scheduled != nil && !(waits && billed) {
			h.fail("an upgrade to %s answers %s", plan.Key, show(answer))
		}
		if paid && answer.Period.End <= h.now() {
			h.fail("an upgrade to %s answers a period that is over: %s", plan.Key, show(answer))
		}
	case before.Scheduled != nil && before.Period.End <= h.now() && before.Scheduled.EffectiveAt < before.Period.End+2*modelHour:
		// Another plan is billed already: the answer says what is charged next, and the
		// downgrade follows at the renewal after that.
		if answer.Terms.PlanKey != was.PlanKey || answer.Scheduled == nil || answer.Scheduled.Target.PlanKey != before.Scheduled.Target.PlanKey || answer.Pending != nil {
			h.fail("a downgrade to %s while %s is billed answers %s", plan.Key, before.Scheduled.Target.PlanKey, show(answer))
		}
	default:
		if answer.Terms.PlanKey != was.PlanKey || answer.Scheduled == nil || answer.Scheduled.Target.PlanKey != plan.Key || answer.Pending != nil {
			h.fail("a downgrade to %s answers %s", plan.Key, show(answer))
		}
	}
}

func show(s billing.Subscription) string {
	text := fmt.Sprintf("{%s %s %s–%s", s.Terms.PlanKey, s.Status, modelTime(s.Period.Start), modelTime(s.Period.End))
	if s.CancelAtPeriodEnd {
		text += " cancels"
	}
	if s.Scheduled != nil {
		text += fmt.Sprintf(" scheduled %s at %s", s.Scheduled.Target.PlanKey, modelTime(s.Scheduled.EffectiveAt))
	}
	if s.Pending != nil {
		text += fmt.Sprintf(" pending %s until %s", s.Pending.Target.PlanKey, modelTime(s.Pending.ExpiresAt))
	}
	return text + "}"
}

func modelTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05") }

// recordPromise keeps what an answer says will happen, and holds it to be ahead.
func (h *modelHistory) recordPromise(c *modelCustomer, answer billing.Subscription, plan *billing.Plan, at int64) {
	h.Helper()
	h.taken = append(h.taken, "    answers "+show(answer))
	promise := modelPromise{about: cmp.Or(answer.ProviderID, "none"), from: at, waits: answer.Pending != nil}
	switch {
	case answer.Status == metering.StatusCanceled:
		promise.ends = answer.EndedAt
	case answer.CancelAtPeriodEnd:
		promise.ends = answer.Period.End
	case answer.Scheduled != nil:
		promise.turns, promise.plan = answer.Scheduled.EffectiveAt, plan
		// A cancellation that is undone, or nothing, leaves the plan that was queued before.
		if plan == nil || plan.Key != answer.Scheduled.Target.PlanKey {
			promise.plan = h.queued(c, answer.Scheduled.Target.PlanKey)
		}
	}
	now := h.now()
	if answer.Status != metering.StatusPastDue && answer.Status != metering.StatusCanceled &&
		(promise.ends != 0 && promise.ends <= now-1000 || promise.turns != 0 && promise.turns <= now-1000) {
		h.fail("at %s the answer promises what is past: %s", modelTime(now), show(answer))
	}
	c.promises = append(c.promises, promise)
	if answer.Scheduled != nil && answer.Period.End <= now && plan != nil && plan.Key != answer.Terms.PlanKey && plan.Key != answer.Scheduled.Target.PlanKey && answer.Pending == nil {
		// The plan that is billed comes first, and this one after its period.
		c.promises = append(c.promises, modelPromise{about: promise.about, from: promise.turns, turns: h.billedUntil(answer), plan: plan})
	}
	if answer.Pending != nil && strings.Contains(answer.Pending.PaymentURL, "/checkout/") && plan != nil {
		c.sent(modelPage{url: answer.Pending.PaymentURL, plan: plan, at: at, replaces: true})
	}
}

// billedUntil is the end of the period that the subscription's draft is for.
func (h *modelHistory) billedUntil(s billing.Subscription) (end int64) {
	for _, invoice := range h.provider().Invoices {
		if invoice.Subscription != s.ProviderID || invoice.Status != "draft" {
			continue
		}
		for _, line := range invoice.Lines {
			end = max(end, line.End*1000)
		}
	}
	return end
}

// frozen are the terms that a subscription keeps whatever is asked for at the moment:
// those it has, and those of a downgrade whose period has begun.
func frozen(s *billing.Subscription, at int64) (terms []billing.Terms) {
	if s == nil {
		return nil
	}
	terms = append(terms, s.Terms)
	if s.Scheduled != nil && s.Period.End <= at {
		terms = append(terms, s.Scheduled.Target)
	}
	return terms
}

// sold is the plan with these terms, as it was when the customer asked for it.
func (c *modelCustomer) sold(terms billing.Terms) *billing.Plan {
	for i := len(c.asked) - 1; i >= 0; i-- {
		if sameTerms(terms, &c.asked[i].plan) {
			return &c.asked[i].plan
		}
	}
	for i := len(c.pages) - 1; i >= 0; i-- {
		if plan := c.pages[i].plan; plan != nil && sameTerms(terms, plan) {
			return plan
		}
	}
	return nil
}

// queued is the plan as it was when it was last asked for.
func (h *modelHistory) queued(c *modelCustomer, key string) *billing.Plan {
	for i := len(c.asked) - 1; i >= 0; i-- {
		if c.asked[i].plan.Key == key {
			return &c.asked[i].plan
		}
	}
	return nil
}

func (h *modelHistory) cancel(c *modelCustomer, s modelStep) {
	h.Helper()
	has, at, atPeriodEnd := h.subscriptionOf(c), h.now(), s.Do == "cancel"
	var faults []fault.Code
	if has == nil {
		faults = append(faults, fault.SubscriptionNotFound)
	} else if has.Status == metering.StatusIncomplete {
		faults = append(faults, fault.PaymentHold)
	}
	var answer billing.Subscription
	err := h.ask(s, func(node *cashier.Cashier, key string) (err error) {
		answer, err = node.Cancel(h.ctx, h.scope, billing.CancelRequest{Identity: c.name, CancelAtPeriodEnd: atPeriodEnd}, key)
		return err
	})
	h.wanted(s.Do, err, s, faults...)
	switch {
	case errors.Is(err, errDied):
		c.promises = append(c.promises, modelPromise{from: at, unknown: true})
		if sub := h.subscriptionOf(c); c.free != nil && sub != nil && sub.ProviderID == "" {
			c.free.ending(*sub)
		}
		return
	case err != nil:
		return
	}
	if h.calm() && answer.Status != metering.StatusCanceled && answer.CancelAtPeriodEnd != atPeriodEnd || answer.Scheduled != nil && !(has != nil && has.Period.End <= at) {
		h.fail("%s answers %s", s.Do, show(answer))
	}
	h.recordPromise(c, answer, nil, at)
	if c.free != nil && answer.ProviderID == "" {
		c.free.ending(answer)
	}
}

// reverse refunds or disputes one of the customer's payments.
func (h *modelHistory) reverse(c *modelCustomer, s modelStep) {
	h.Helper()
	w := h.provider()
	charges := h.charges(w, c)
	if len(charges) == 0 {
		return
	}
	charge := charges[s.How%len(charges)]
	about := charge.Invoice
	if about == "" {
		about = w.Intents[charge.Intent].Session
	}
	if s.Do == "dispute" {
		h.steer("disputes", `{"checkoutId": %q, "outcome": %q}`, about, []string{"open", "won", "lost"}[s.How%3])
		return
	}
	h.gaveBack[charge.ID] = true
	part := []int64{charge.Amount, charge.Amount / 3, 1}[s.How%3]
	h.steer("refunds", `{"checkoutId": %q, "amountCents": %d}`, about, part)
}

// charges are what the provider has taken from the customer, in that order.
func (h *modelHistory) charges(w *modelProvider, c *modelCustomer) (all []*providerCharge) {
	account := map[string]bool{}
	for _, page := range c.pages {
		if session := w.Sessions[page.session]; session != nil {
			account[session.Customer] = true
		}
	}
	for _, charge := range w.Charges {
		if account[charge.Customer] {
			all = append(all, charge)
		}
	}
	slices.SortFunc(all, func(a, b *providerCharge) int { return int(a.Nth - b.Nth) })
	return all
}

// edit changes a plan for those who come later.
func (h *modelHistory) edit(s modelStep) {
	h.Helper()
	was := h.plan(s.Plan)
	var patch billing.PlanPatch
	switch s.How {
	case 0:
		cents := was.AmountCents + 100
		if was.AmountCents == 0 {
			return
		}
		patch.AmountCents = &cents
	case 1:
		patch.Grants = &[]billing.Grant{{CreditKey: "tokens", Amount: metering.Amount(was.Revision+1) * million}}
	case 2:
		active := !was.Active
		patch.Active = &active
	case 3:
		patch.Multipliers = &[]metering.Multiplier{{FeatureKey: "report", BasisPoints: 5000 + was.Revision}}
	case 4:
		patch.Limits = &[]metering.Limit{{FeatureKey: "report", Limit: 10 + was.Revision, Period: metering.LimitBilling, Overage: metering.OverageBlock}}
	case 5:
		topups := !was.TopupsEnabled
		patch.TopupsEnabled = &topups
	}
	_, err := h.store.App(h.scope).UpdatePlan(h.ctx, s.Plan, patch)
	h.check(err)
	h.check(h.cashier.DrainAll(h.ctx, h.app.ID))
}

func (h *modelHistory) depositTo(c *modelCustomer, s modelStep) {
	h.Helper()
	amount, credit := c.amount(s), []string{"tokens", "images"}[s.How%2]
	faults := roomFor(h.wallet(c.name), credit, amount)
	err := h.deposit(c.name, credit, amount)
	switch {
	case len(faults) == 0 && err == nil:
		c.move(credit, amount, 1)
	case len(faults) == 0 || !fault.Is(err, faults[0]):
		h.fail("a deposit of %s %s: %v, want %v", amount, credit, err, faults)
	}
}

// spendFrom uses credits up: all of a balance, or one.
func (h *modelHistory) spendFrom(c *modelCustomer, s modelStep) {
	h.Helper()
	wallet := h.wallet(c.name)
	for _, b := range wallet.Balances {
		if b.CreditKey != []string{"tokens", "images"}[s.How%2] || b.Amount == 0 {
			continue
		}
		amount := b.Amount
		if s.How > 3 {
			amount = 1
		}
		h.check(h.store.App(h.scope).Adjust(h.ctx, store.Adjustment{
			ID: ids.New(), WalletID: wallet.ID, CreditKey: b.CreditKey, Delta: metering.Delta{Amount: amount, Out: true}, Reason: "used", Now: h.now(),
		}))
		c.move(b.CreditKey, amount, -1)
	}
}

func (c *modelCustomer) move(credit string, amount metering.Amount, sign int64) {
	if c.moved[credit] == nil {
		c.moved[credit] = new(big.Int)
	}
	change := new(big.Int).SetUint64(uint64(amount))
	c.moved[credit].Add(c.moved[credit], change.Mul(change, big.NewInt(sign)))
}

// wait lets time pass.
func (h *modelHistory) wait(c *modelCustomer, s modelStep) {
	h.Helper()
	to := h.now() + s.Wait
	if has := h.subscriptionOf(c); has != nil && has.Period.End > h.now() {
		end := has.Period.End
		switch s.How {
		case waitToEnd:
			to = end
		case waitIntoDraft:
			to = end + 10*modelMinute
		case waitPastDraft:
			to = end + modelHour
		case waitToExpiry:
			if has.Pending != nil {
				to = has.Pending.ExpiresAt
			}
		}
	}
	h.advanceTo(to)
}
