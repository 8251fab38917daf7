package store_test

import (
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
)

// model is an application as it would be if everything happened one at a time and
// nothing was ever kept but the history. Each use is decided over a state that is
// put together from all of it, so it knows no batch, no counter and no cache.
// The rules themselves are metering's, which has a model of its own.
type model struct {
	now      int64
	features map[string]*metering.Feature
	wallets  map[string]*modelWallet
	events   []modelEvent
}

type modelWallet struct {
	id           ids.ID
	billing      *metering.BillingPeriod
	subscription *metering.Subscription
	deposits     []modelDeposit
}

type modelDeposit struct {
	credit ids.ID
	key    string
	amount metering.Amount
}

type modelEvent struct {
	metering.Event
	identity string
}

func newModel() *model {
	return &model{features: make(map[string]*metering.Feature), wallets: make(map[string]*modelWallet)}
}

// wallet is the identity's, made when it is missing.
func (m *model) wallet(identity string) *modelWallet {
	if m.wallets[identity] == nil {
		m.wallets[identity] = &modelWallet{id: ids.New()}
	}
	return m.wallets[identity]
}

// track decides a use and adds what it leaves to the history.
func (m *model) track(identity string, use metering.Usage) metering.Decision {
	d := m.check(identity, use)
	if d.New {
		d.Event.WalletID = m.wallet(identity).id
		m.events = append(m.events, modelEvent{d.Event, identity})
	}
	return d
}

// trackGroup tracks uses one after the other and forgets all of them when one is
// refused, or when only some of them were sent before.
func (m *model) trackGroup(identity string, group []store.Usage, modelUse func(store.Usage) metering.Usage) (decisions []metering.Decision, refused int) {
	var known []int
	for i, use := range group {
		if slices.ContainsFunc(m.events, func(e modelEvent) bool { return e.EventID == use.EventID }) {
			known = append(known, i)
		}
	}
	decisions = make([]metering.Decision, len(group))
	if len(known) > 0 && len(known) < len(group) {
		decisions[known[0]] = metering.Decision{Verdict: metering.Refused, Code: fault.GroupConflict}
		return decisions, known[0]
	}
	before := len(m.events)
	for i, use := range group {
		decisions[i] = m.track(identity, modelUse(use))
		if decisions[i].Err() != nil {
			m.events = m.events[:before]
			return decisions, i
		}
	}
	return decisions, -1
}

func (m *model) check(identity string, use metering.Usage) metering.Decision {
	state := m.state(identity)
	return metering.Decide(&state, use)
}

func (m *model) state(identity string) metering.State {
	state := metering.State{
		Now: m.now, Events: make(map[string]*metering.Event),
		Billed: m.billed(identity), Used: m.used(identity),
	}
	for i := range m.events {
		state.Events[m.events[i].EventID] = &m.events[i].Event
	}
	if w := m.wallets[identity]; w != nil {
		state.Subscription = w.subscription
		state.Wallet = metering.Wallet{ID: w.id, BillingPeriod: w.billing, Charged: m.charged(identity)}
		for _, credit := range w.credits() {
			state.Wallet.Balances = append(state.Wallet.Balances, metering.Balance{CreditID: credit, Amount: m.balance(identity, credit)})
		}
	}
	return state
}

// named reports whether a subscription has terms for the feature.
func (m *model) named(feature ids.ID) bool {
	for _, w := range m.wallets {
		if w.subscription == nil {
			continue
		}
		if _, limited := w.subscription.Terms.Limit(feature); limited || slices.ContainsFunc(w.subscription.Terms.Multipliers,
			func(x metering.Multiplier) bool { return x.FeatureID == feature }) {
			return true
		}
	}
	return false
}

func (m *model) charged(identity string) bool {
	return slices.ContainsFunc(m.events, func(e modelEvent) bool { return e.identity == identity && e.DeduplicatedFrom.IsZero() })
}

// balance is what came in less what was charged. There is no debt here.
func (m *model) balance(identity string, credit ids.ID) (left metering.Amount) {
	for _, d := range m.wallets[identity].deposits {
		if d.credit == credit {
			left += d.amount
		}
	}
	for _, e := range m.events {
		if e.identity == identity && e.CreditID == credit {
			left -= e.Charge.Amount
		}
	}
	return left
}

func (m *model) used(identity string) map[metering.CounterKey]int64 {
	used := make(map[metering.CounterKey]int64)
	for _, e := range m.events {
		if e.identity == identity && e.Allowance.Limited() && e.DeduplicatedFrom.IsZero() {
			used[metering.CounterKey{FeatureID: e.FeatureID, Period: e.Allowance.Period}] += e.Quantity
		}
	}
	return used
}

func (m *model) billed(identity string) map[metering.BilledKey]ids.ID {
	billed := make(map[metering.BilledKey]ids.ID)
	for _, e := range m.events {
		if e.identity == identity && !e.Period.IsZero() && e.DeduplicatedFrom.IsZero() {
			billed[metering.BilledKey{FeatureID: e.FeatureID, EntityID: e.EntityID, Period: e.Period}] = e.TransactionID
		}
	}
	return billed
}

func (w *modelWallet) credits() (list []ids.ID) {
	for _, d := range w.deposits {
		if !slices.Contains(list, d.credit) {
			list = append(list, d.credit)
		}
	}
	return list
}
