package store

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/tenancy"
)

// appBatch is the part of a batch that belongs to one application: the uses, what
// is known for deciding them, and what they change.
type appBatch struct {
	scope tenancy.Scope
	uses  []*pending

	epoch int64
	ahead int64 // how far the application's clock is ahead of the real one
	// databaseTime is the database's clock when the epoch was read; zero when it was not.
	databaseTime int64
	features     map[string]*pricedFeature
	keys         map[ids.ID]*keys.APIKey
	wallets      map[string]*walletState
	byID         map[ids.ID]*walletState
	events       map[string]*metering.Event

	records   []record
	newlyUsed map[*metering.Feature]bool
	// absent are identities without a wallet for which a use would be accepted.
	absent []string
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

// byApplication parts uses by application, in the order of application ids, in
// which every batch locks.
func byApplication(uses []*pending) []*appBatch {
	var batches []*appBatch
	place := make(map[ids.ID]*appBatch)
	for _, u := range uses {
		b := place[u.Scope.AppID]
		if b == nil {
			b = newAppBatch(u.Scope)
			place[u.Scope.AppID] = b
			batches = append(batches, b)
		}
		b.uses = append(b.uses, u)
	}
	slices.SortFunc(batches, func(a, b *appBatch) int { return slices.Compare(a.scope.AppID[:], b.scope.AppID[:]) })
	return batches
}

// at is the moment by the application's clock.
func (b *appBatch) at(now int64) int64 { return now + b.ahead }

// identities lists whose wallets the uses touch, sorted, each once.
func (b *appBatch) identities() []string {
	list := make([]string, len(b.uses))
	for i, u := range b.uses {
		list[i] = u.Identity
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// uniqueUses gives each value of a field once.
func (b *appBatch) uniqueUses(field func(*pending) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make(map[string]bool, len(b.uses))
		for _, u := range b.uses {
			if value := field(u); !seen[value] {
				seen[value] = true
				if !yield(value) {
					return
				}
			}
		}
	}
}

// decide answers every use in turn, each against what the ones before it left.
func (b *appBatch) decide(now int64) {
	for _, u := range b.uses {
		if u.settled {
			continue
		}
		w := b.wallets[u.Identity]
		if w == nil {
			// Without a wallet there is no balance and no plan: only what costs nothing
			// is accepted, and then the wallet has to be made first.
			empty := metering.State{Now: b.at(now), Events: b.events}
			u.decision = metering.Decide(&empty, u.Usage.Usage)
			if u.decision.New {
				b.absent = append(b.absent, u.Identity)
			}
			continue
		}
		w.state.Now, w.state.Events = b.at(now), b.events
		u.decision = metering.Decide(&w.state, u.Usage.Usage)
		b.take(w, u)
	}
}

// take brings the batch to where it stands after a decision.
func (b *appBatch) take(w *walletState, u *pending) {
	d := &u.decision
	if !d.New {
		return
	}
	w.state.Apply(*d)
	b.events = w.state.Events // Apply makes the map when there is none
	w.seq++
	w.touched = true
	if d.Verdict == metering.Accepted && d.Event.Charge.Amount > 0 {
		w.setCharged(d.After)
	}
	if key := (metering.BilledKey{FeatureID: d.Event.FeatureID, EntityID: d.Event.EntityID, Period: d.Event.Period}); !key.Period.IsZero() {
		delete(w.unbilled, key)
	}
	if d.LocksDeduplication {
		if b.newlyUsed == nil {
			b.newlyUsed = make(map[*metering.Feature]bool)
		}
		b.newlyUsed[u.Feature] = true
	}
	b.records = append(b.records, record{
		Event:       d.Event,
		keyID:       u.KeyID,
		priceNumber: b.features[u.FeatureKey].priceNumber,
		seq:         w.seq,
	})
}

// setCharged notes a balance to be written; the last one of a credit counts.
func (w *walletState) setCharged(balance metering.Balance) {
	for i := range w.charged {
		if w.charged[i].CreditID == balance.CreditID {
			w.charged[i] = balance
			return
		}
	}
	w.charged = append(w.charged, balance)
}

// touchedInOrder lists the wallets to be written, in the order of the locks.
func (b *appBatch) touchedInOrder() []*walletState {
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

// committed moves the wallets to the version that the transaction has written.
func (b *appBatch) committed() {
	for _, w := range b.wallets {
		if w.touched {
			w.version++
			w.touched, w.charged = false, w.charged[:0]
		}
	}
	for feature := range b.newlyUsed {
		feature.DeduplicationLocked = true
	}
}

// refuse settles a use before it comes to a decision.
func (u *pending) refuse(err error) { u.settled, u.err = true, err }

func storedPermissions(names string) tenancy.Permissions {
	return tenancy.StoredPermissions(strings.Fields(names))
}

var errOverloaded = fault.New(fault.Overloaded)
