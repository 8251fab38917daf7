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
	returned     []modelDeposit // by reversals
	received     []modelDeposit // by transfers
	sent         []modelDeposit // by transfers
}

type modelDeposit struct {
	credit ids.ID
	key    string
	amount metering.Amount
}

type modelEvent struct {
	metering.Event
	identity string
	returned []metering.Amount // by reversals
}

// reversed reports whether reversals have returned all of the charge.
func (e modelEvent) reversed() bool {
	left := e.Charge.Amount
	for _, amount := range e.returned {
		left -= amount
	}
	return len(e.returned) > 0 && left == 0
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
		m.events = append(m.events, modelEvent{Event: d.Event, identity: identity})
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

// reverse returns a part of a charge, or all that is left of it, and the code of a
// refusal.
func (m *model) reverse(eventID string, requested *metering.Amount) (metering.Amount, fault.Code) {
	for i := range m.events {
		e := &m.events[i]
		if e.EventID != eventID {
			continue
		}
		left := e.Charge.Amount
		for _, amount := range e.returned {
			left -= amount
		}
		amount := left
		if requested != nil {
			amount = *requested
		}
		switch {
		case !e.DeduplicatedFrom.IsZero():
			return 0, fault.EventNotReversible
		case requested != nil && amount == 0:
			return 0, fault.InvalidRequest
		case amount > left:
			return 0, fault.ReversalTooLarge
		case requested == nil && e.reversed():
			return 0, fault.EventNotReversible
		}
		if _, fits := m.balance(e.identity, e.CreditID).Add(amount); !fits {
			return 0, fault.BalanceOverflow
		}
		e.returned = append(e.returned, amount)
		if w := m.wallets[e.identity]; amount > 0 { // else it brings no credits, and no balance
			w.returned = append(w.returned, modelDeposit{credit: e.CreditID, amount: amount})
		}
		return amount, ""
	}
	return 0, fault.EventNotFound
}

// transfer moves credits between two wallets, or says why not.
func (m *model) transfer(from, to string, credit ids.ID, amount metering.Amount) fault.Code {
	switch {
	case m.wallets[from] == nil || m.wallets[to] == nil:
		return fault.WalletNotFound
	case from == to:
		return fault.TransferToSelf
	case amount == 0:
		return fault.InvalidRequest
	case amount > m.balance(from, credit):
		return fault.InsufficientBalance
	}
	if _, fits := m.balance(to, credit).Add(amount); !fits {
		return fault.BalanceOverflow
	}
	m.wallets[from].sent = append(m.wallets[from].sent, modelDeposit{credit: credit, amount: amount})
	m.wallets[to].received = append(m.wallets[to].received, modelDeposit{credit: credit, amount: amount})
	return ""
}

// balance is what came in less what was charged or sent. There is no debt here.
func (m *model) balance(identity string, credit ids.ID) (left metering.Amount) {
	w := m.wallets[identity]
	for _, d := range slices.Concat(w.deposits, w.returned, w.received) {
		if d.credit == credit {
			left += d.amount
		}
	}
	for _, d := range w.sent {
		if d.credit == credit {
			left -= d.amount
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
			used[metering.CounterKey{FeatureID: e.FeatureID, Period: e.Allowance.Period}] += 0 // its counter stays, at zero
		}
		if e.identity == identity && e.Allowance.Limited() && e.DeduplicatedFrom.IsZero() && !e.reversed() {
			used[metering.CounterKey{FeatureID: e.FeatureID, Period: e.Allowance.Period}] += e.Quantity
		}
	}
	return used
}

func (m *model) billed(identity string) map[metering.BilledKey]ids.ID {
	billed := make(map[metering.BilledKey]ids.ID)
	for _, e := range m.events {
		if e.identity == identity && !e.Period.IsZero() && e.DeduplicatedFrom.IsZero() && !e.reversed() {
			billed[metering.BilledKey{FeatureID: e.FeatureID, EntityID: e.EntityID, Period: e.Period}] = e.TransactionID
		}
	}
	return billed
}

func (w *modelWallet) credits() (list []ids.ID) {
	for _, d := range slices.Concat(w.deposits, w.returned, w.received) {
		if !slices.Contains(list, d.credit) {
			list = append(list, d.credit)
		}
	}
	return list
}
