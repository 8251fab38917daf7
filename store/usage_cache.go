package store

import (
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"purser/ids"
	"purser/keys"
	"purser/metering"
)

const (
	// How many wallets a lane remembers: about a kilobyte each.
	rememberedWallets = 100_000
	// How many applications a lane remembers the catalog of.
	rememberedApps = 1_000
	// A wallet that knows more keyed facts than this is forgotten, not trimmed: one
	// that deduplicates by entity could grow without end.
	maxKeyedFacts = 512
)

// pricedFeature is a feature with the number that its price has in events.
type pricedFeature struct {
	metering.Feature
	priceNumber int64
}

// walletState is what a lane knows of a wallet, as of its version. As long as the
// stored version is the same, nothing of it has changed.
type walletState struct {
	state   metering.State
	loaded  int64 // the version as it was read
	version int64 // and as it is now
	seq     int64

	// unbilled are the periods that are known not to be billed. State.Billed holds
	// those that are; what is in neither has to be looked up.
	unbilled map[metering.BilledKey]struct{}

	// What the batch under way has done to it.
	touched bool
	charged []metering.Balance // by credit, as they will be
}

func (w *walletState) knowsCounter(key metering.CounterKey) bool {
	_, known := w.state.Used[key]
	return known
}

func (w *walletState) learnCounter(key metering.CounterKey, used int64) {
	if w.state.Used == nil {
		w.state.Used = make(map[metering.CounterKey]int64)
	}
	w.state.Used[key] = used
}

func (w *walletState) knowsBilled(key metering.BilledKey) bool {
	if _, billed := w.state.Billed[key]; billed {
		return true
	}
	_, unbilled := w.unbilled[key]
	return unbilled
}

func (w *walletState) learnUnbilled(key metering.BilledKey) {
	if w.unbilled == nil {
		w.unbilled = make(map[metering.BilledKey]struct{})
	}
	w.unbilled[key] = struct{}{}
}

func (w *walletState) learnBilled(key metering.BilledKey, transaction ids.ID) {
	if w.state.Billed == nil {
		w.state.Billed = make(map[metering.BilledKey]ids.ID)
	}
	w.state.Billed[key] = transaction
	delete(w.unbilled, key)
}

// knows reports whether a use can be decided without another look.
func (w *walletState) knows(use metering.Usage) bool {
	needed := w.state.Keys(use)
	return (needed.Counter.Period.IsZero() || w.knowsCounter(needed.Counter)) &&
		(needed.Billed.Period.IsZero() || w.knowsBilled(needed.Billed))
}

func (w *walletState) overgrown() bool {
	return len(w.state.Used)+len(w.state.Billed)+len(w.unbilled) > maxKeyedFacts
}

// appMemory is what a lane knows of an application's catalog, keys and clock, as of
// an epoch.
type appMemory struct {
	epoch    int64
	ahead    int64 // how far its clock is ahead of the real one
	features map[string]*pricedFeature
	keys     map[ids.ID]*keys.APIKey
}

type walletAddress struct {
	app      ids.ID
	identity string
}

// memory is what a node remembers between batches. Nothing rests on it alone: each
// batch that uses it has its versions compared inside the transaction, and what
// would be refused is looked up first. The lane of uses changes it; that of checks
// takes copies.
type memory struct {
	mu sync.Mutex

	apps    *simplelru.LRU[ids.ID, *appMemory]
	wallets *simplelru.LRU[walletAddress, *walletState]

	// Until when not to rely on it: wallets that another node changes too, and
	// applications that repeat event ids.
	contended *simplelru.LRU[walletAddress, time.Time]
	repeating *simplelru.LRU[ids.ID, time.Time]
	// The versions by which a batch just failed, until its wallets are read again.
	suspects map[walletAddress]int64
}

func newMemory() *memory {
	return &memory{
		apps:      newLRU[ids.ID, *appMemory](rememberedApps),
		wallets:   newLRU[walletAddress, *walletState](rememberedWallets),
		contended: newLRU[walletAddress, time.Time](rememberedWallets),
		repeating: newLRU[ids.ID, time.Time](rememberedApps),
		suspects:  make(map[walletAddress]int64),
	}
}

// newLRU makes a cache that is safe under memory's mutex.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	cache, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return cache
}

// isFresh reports whether the time noted for a key is still to come.
func isFresh[K comparable](notes *simplelru.LRU[K, time.Time], key K) bool {
	until, noted := notes.Peek(key)
	return noted && time.Now().Before(until)
}

// keep remembers what a batch has read, and what it has left behind if it wrote.
func (m *memory) keep(b *appBatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for identity, w := range b.wallets {
		m.keepWallet(b.scope.AppID, identity, w)
	}
	app, known := m.apps.Get(b.scope.AppID)
	if known && app.epoch > b.epoch {
		return // the other lane has seen a later one
	}
	if !known || app.epoch < b.epoch {
		app = &appMemory{epoch: b.epoch, ahead: b.ahead, features: make(map[string]*pricedFeature), keys: make(map[ids.ID]*keys.APIKey)}
		m.apps.Add(b.scope.AppID, app)
	}
	maps.Copy(app.features, b.features)
	maps.Copy(app.keys, b.keys)
}

// learn remembers what was read without locks. Of a wallet that is known already
// the later version counts; of the same version, both know something.
func (m *memory) learn(b *appBatch) {
	m.mu.Lock()
	for identity, w := range b.wallets {
		known, found := m.wallets.Peek(walletAddress{b.scope.AppID, identity})
		if !found || (!known.touched && known.version < w.version) {
			continue
		}
		if !known.touched && known.version == w.version {
			known.merge(w)
		}
		delete(b.wallets, identity)
	}
	m.mu.Unlock()
	m.keep(b)
}

// merge takes over the keyed facts of another look at the same version.
func (w *walletState) merge(other *walletState) {
	for key, used := range other.state.Used {
		w.learnCounter(key, used)
	}
	for key := range other.unbilled {
		w.learnUnbilled(key)
	}
	for key, transaction := range other.state.Billed {
		w.learnBilled(key, transaction)
	}
}

func (m *memory) keepWallet(app ids.ID, identity string, w *walletState) {
	address := walletAddress{app, identity}
	if version, suspected := m.suspects[address]; suspected {
		delete(m.suspects, address)
		if version != w.loaded {
			m.contended.Add(address, time.Now().Add(contention))
		}
	}
	if w.overgrown() || isFresh(m.contended, address) {
		m.wallets.Remove(address)
		return
	}
	w.state.Events = nil // the batch's, not the wallet's
	m.wallets.Add(address, w)
}
