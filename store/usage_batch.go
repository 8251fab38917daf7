package store

import (
	"cmp"
	"iter"
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/tenancy"
)

// appBatch is the part of a batch that belongs to one application: its requests, the
// state they are decided against, and the rows they change.
type appBatch struct {
	scope    tenancy.Scope
	requests []*request

	epoch       int64
	clockOffset int64 // of the application's clock against the real one, in milliseconds
	// packedBefore bounds the times of event ids that may be packed; zero for none.
	packedBefore int64
	// databaseTime is the database's clock when the epoch was read; zero when the epoch
	// was not read.
	databaseTime int64
	features     map[string]*pricedFeature
	keys         map[ids.ID]*keys.APIKey
	wallets      map[string]*walletState
	byID         map[ids.ID]*walletState // those that were read
	events       map[string]*metering.Event
	rules        []metering.AlertRule
	locked       bool // the wallets are locked

	records   []record
	newlyUsed map[*metering.Feature]bool
	alerts    []raisedAlert
	step      int64 // of the versions that the batch writes
	// missingWallets are identities without a wallet whose request would be accepted.
	missingWallets []string
	ensured        []string // those that this attempt creates
}

func newAppBatch(scope tenancy.Scope) *appBatch {
	return &appBatch{
		scope:    scope,
		features: make(map[string]*pricedFeature),
		keys:     make(map[ids.ID]*keys.APIKey),
		wallets:  make(map[string]*walletState),
		byID:     make(map[ids.ID]*walletState),
		events:   make(map[string]*metering.Event),
	}
}

// groupByApp groups requests by application, ordered by application id: the lock order
// of every batch.
func groupByApp(requests []*request) []*appBatch {
	var batches []*appBatch
	byApp := make(map[ids.ID]*appBatch)
	for _, r := range requests {
		b := byApp[r.Scope.AppID]
		if b == nil {
			b = newAppBatch(r.Scope)
			byApp[r.Scope.AppID] = b
			batches = append(batches, b)
		}
		b.requests = append(b.requests, r)
	}
	slices.SortFunc(batches, func(a, b *appBatch) int { return slices.Compare(a.scope.AppID[:], b.scope.AppID[:]) })
	return batches
}

// appTime converts the real time to the application's clock.
func (b *appBatch) appTime(now int64) int64 { return now + b.clockOffset }

// uniqueValues yields each distinct value of a field once.
func uniqueValues[T comparable](requests []*request, field func(*request) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		seen := make(map[T]bool, len(requests))
		for _, r := range requests {
			if value := field(r); !seen[value] {
				seen[value] = true
				if !yield(value) {
					return
				}
			}
		}
	}
}

// decide decides the requests in order, each against the state left by the previous
// ones.
func (b *appBatch) decide(now int64) {
	for i := 0; i < len(b.requests); {
		unit := unitAt(b.requests, i)
		i += len(unit)
		r := unit[0]
		if r.group != nil {
			b.decideGroup(unit, now)
			continue
		}
		if r.resolved {
			continue
		}
		w := b.wallets[r.Identity]
		if w == nil {
			// Without a wallet there is no balance and no plan: only a request that
			// costs nothing is accepted, and its wallet has to be created first.
			empty := metering.State{Now: b.appTime(now), Events: b.events}
			r.decision = metering.Decide(&empty, r.Usage.Usage)
			if r.decision.New {
				empty.Apply(r.decision) // a later request may repeat its event id
				b.events, b.missingWallets = empty.Events, append(b.missingWallets, r.Identity)
			}
			continue
		}
		w.state.Now, w.state.Events = b.appTime(now), b.events
		r.decision = metering.Decide(&w.state, r.Usage.Usage)
		b.apply(w, r)
		b.raise(w, &r.decision)
	}
}

// apply adds a decision to the batch's state.
func (b *appBatch) apply(w *walletState, r *request) {
	d := &r.decision
	if !d.New {
		return
	}
	w.state.Apply(*d)
	b.events = w.state.Events // Apply makes the map when there is none
	w.seq++
	w.touched = true
	if d.Verdict == metering.Accepted && d.Event.Charge.Amount > 0 {
		w.setBalance(d.After)
	}
	if key := (metering.BilledKey{FeatureID: d.Event.FeatureID, EntityID: d.Event.EntityID, Period: d.Event.Period}); !key.Period.IsZero() {
		delete(w.unbilled, key)
	}
	if d.LocksDeduplication {
		if b.newlyUsed == nil {
			b.newlyUsed = make(map[*metering.Feature]bool)
		}
		b.newlyUsed[r.Feature] = true
	}
	b.records = append(b.records, record{
		Event:       d.Event,
		wallet:      w,
		keyID:       r.KeyID,
		priceNumber: b.features[r.FeatureKey].priceNumber,
		seq:         w.seq,
	})
}

// setBalance records a balance to be written. The last one per credit wins.
func (w *walletState) setBalance(balance metering.Balance) {
	for i := range w.newBalances {
		if w.newBalances[i].CreditID == balance.CreditID {
			w.newBalances[i] = balance
			return
		}
	}
	w.newBalances = append(w.newBalances, balance)
}

// touchedWallets lists the wallets to be written, in lock order.
func (b *appBatch) touchedWallets() []*walletState {
	var list []*walletState
	for _, w := range b.wallets {
		if w.touched {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b *walletState) int {
		return cmp.Compare(a.state.Wallet.Identity, b.state.Wallet.Identity)
	})
	return list
}

// markCommitted advances the touched wallets to the version that the transaction wrote.
func (b *appBatch) markCommitted() {
	for _, w := range b.wallets {
		if w.touched {
			w.version += b.step
			w.touched, w.newBalances = false, w.newBalances[:0]
		}
	}
	for feature := range b.newlyUsed {
		feature.DeduplicationLocked = true
	}
}

// fail resolves a request with an error, before a decision.
func (r *request) fail(err error) { r.resolved, r.err = true, err }

var errOverloaded = fault.New(fault.Overloaded)
