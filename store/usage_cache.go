package store

import (
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
)

const (
	// maxCachedWallets bounds the cache: about a kilobyte per wallet, without its keyed rows.
	maxCachedWallets = 100_000
	// rowsPerWallet is how many rows a cached wallet may have on average: itself and its keyed
	// rows, of up to half a kilobyte. Beyond it the oldest wallets are evicted.
	rowsPerWallet = 5
	// maxCachedApps is the number of cached catalogs.
	maxCachedApps = 1_000
	// maxKeyedRows is the limit of keyed rows per wallet. A wallet beyond it is
	// evicted, not trimmed: one that deduplicates by entity could grow without bound.
	maxKeyedRows = 512
)

// pricedFeature is a feature with the number that its price has in events.
type pricedFeature struct {
	metering.Feature
	priceNumber int64
}

// walletState is the cached state of a wallet at its version. While the stored version
// is the same, none of it has changed.
type walletState struct {
	state   metering.State
	loaded  int64 // the version as it was read
	version int64 // the current version
	seq     int64

	// unbilled are periods known not to be billed. State.Billed holds the billed ones;
	// a period in neither has to be read.
	unbilled map[metering.BilledKey]struct{}

	// marks are the alerts that were announced; nil when they were not read.
	marks metering.AlertMarks
	after *ids.ID // ids of further alerts sort after it; set with marks

	counted int // how much of usageCache.rows is its own; zero unless it is cached

	// Changes by the running batch.
	touched     bool
	newBalances []metering.Balance // one per credit
}

func (w *walletState) hasCounter(key metering.CounterKey) bool {
	_, known := w.state.Used[key]
	return known
}

func (w *walletState) setCounter(key metering.CounterKey, used int64) {
	if w.state.Used == nil {
		w.state.Used = make(map[metering.CounterKey]int64)
	}
	w.state.Used[key] = used
}

func (w *walletState) hasBilled(key metering.BilledKey) bool {
	if _, billed := w.state.Billed[key]; billed {
		return true
	}
	_, unbilled := w.unbilled[key]
	return unbilled
}

func (w *walletState) setUnbilled(key metering.BilledKey) {
	if w.unbilled == nil {
		w.unbilled = make(map[metering.BilledKey]struct{})
	}
	w.unbilled[key] = struct{}{}
}

func (w *walletState) setBilled(key metering.BilledKey, transaction ids.ID) {
	if w.state.Billed == nil {
		w.state.Billed = make(map[metering.BilledKey]ids.ID)
	}
	w.state.Billed[key] = transaction
	delete(w.unbilled, key)
}

// canDecide reports whether all keyed rows that the usage needs are present.
func (w *walletState) canDecide(usage metering.Usage) bool {
	needed := w.state.Keys(usage)
	return (needed.Counter.Period.IsZero() || w.hasCounter(needed.Counter)) &&
		(needed.Billed.Period.IsZero() || w.hasBilled(needed.Billed))
}

func (w *walletState) keyedRows() int {
	return len(w.state.Used) + len(w.state.Billed) + len(w.unbilled)
}

// cachedApp is the catalog, keys and clock of an application at an epoch.
type cachedApp struct {
	epoch       int64
	clockOffset int64 // against the real clock, in milliseconds
	features    map[string]*pricedFeature
	keys        map[ids.ID]*keys.APIKey
	rules       []metering.AlertRule
	// packedBefore bounds the times of event ids that may be packed; zero for none.
	packedBefore int64
}

type walletKey struct {
	app      ids.ID
	identity string
}

// usageCache keeps wallets and catalogs between batches. It is never trusted alone:
// every transaction compares its versions, and a denial is read from the database
// first. Batches of tracks change it; checks work on copies.
type usageCache struct {
	mu sync.Mutex

	apps    *simplelru.LRU[ids.ID, *cachedApp]
	wallets *simplelru.LRU[walletKey, *walletState]
	rows    int // the cached wallets and their keyed rows
	maxRows int

	// Expiry times: wallets that another node changes too, and applications that send
	// duplicate event ids.
	contended      *simplelru.LRU[walletKey, time.Time]
	duplicateHeavy *simplelru.LRU[ids.ID, time.Time]
	// Of a failed batch, until the retry has read them: the versions that it expected, and
	// the applications of which one has repeated an event id.
	conflicting map[walletKey]int64
	repeating   map[ids.ID]bool
	server      int64 // that the batches before were written to
}

func newUsageCache(wallets int) *usageCache {
	m := &usageCache{
		apps:           newLRU[ids.ID, *cachedApp](maxCachedApps, nil),
		maxRows:        rowsPerWallet * wallets,
		contended:      newLRU[walletKey, time.Time](wallets, nil),
		duplicateHeavy: newLRU[ids.ID, time.Time](maxCachedApps, nil),
		conflicting:    make(map[walletKey]int64),
		repeating:      make(map[ids.ID]bool),
	}
	m.wallets = newLRU(wallets, func(_ walletKey, w *walletState) { m.rows, w.counted = m.rows-w.counted, 0 })
	return m
}

// newLRU makes an LRU that is safe under the cache's mutex.
func newLRU[K comparable, V any](size int, evicted func(K, V)) *simplelru.LRU[K, V] {
	cache, err := simplelru.NewLRU[K, V](size, evicted)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return cache
}

// isActive reports whether the expiry time of a key is in the future.
func isActive[K comparable](notes *simplelru.LRU[K, time.Time], key K) bool {
	until, noted := notes.Peek(key)
	return noted && time.Now().Before(until)
}

// put caches what a batch has read, and what it has committed if it wrote.
func (m *usageCache) put(b *appBatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for identity, w := range b.wallets {
		m.putWallet(b.scope.AppID, identity, w)
	}
	for _, r := range b.requests {
		if b.locked && b.wallets[r.Identity] == nil { // its wallet has another identity by now
			m.wallets.Remove(walletKey{b.scope.AppID, r.Identity})
		}
		if m.repeating[b.scope.AppID] && (r.decision.Verdict == metering.Duplicate || r.decision.Code == fault.GroupConflict) {
			delete(m.repeating, b.scope.AppID)
			m.duplicateHeavy.Add(b.scope.AppID, time.Now().Add(duplicatePeriod))
		}
	}
	app, known := m.apps.Get(b.scope.AppID)
	if known && app.epoch > b.epoch {
		return // the other batcher has read a later one
	}
	if !known || app.epoch < b.epoch {
		app = &cachedApp{epoch: b.epoch, clockOffset: b.clockOffset, features: make(map[string]*pricedFeature), keys: make(map[ids.ID]*keys.APIKey), rules: b.rules, packedBefore: b.packedBefore}
		m.apps.Add(b.scope.AppID, app)
	}
	maps.Copy(app.features, b.features)
	maps.Copy(app.keys, b.keys)
}

// merge caches what was read without locks. The later version of a wallet wins; for the
// same version the keyed rows are merged while they fit, else those just read win.
func (m *usageCache) merge(b *appBatch) {
	m.mu.Lock()
	for identity, w := range b.wallets {
		known, found := m.wallets.Peek(walletKey{b.scope.AppID, identity})
		if !found || (!known.touched && known.version < w.version) {
			continue
		}
		if !known.touched && known.version == w.version {
			if known.keyedRows()+w.keyedRows() > maxKeyedRows {
				continue
			}
			known.mergeKeyedRows(w)
			m.count(known)
		}
		delete(b.wallets, identity)
	}
	m.mu.Unlock()
	m.put(b)
}

// mergeKeyedRows adds the keyed rows of another read of the same version.
func (w *walletState) mergeKeyedRows(other *walletState) {
	for key, used := range other.state.Used {
		w.setCounter(key, used)
	}
	for key := range other.unbilled {
		w.setUnbilled(key)
	}
	for key, transaction := range other.state.Billed {
		w.setBilled(key, transaction)
	}
}

func (m *usageCache) putWallet(app ids.ID, identity string, w *walletState) {
	address := walletKey{app, identity}
	if version, suspected := m.conflicting[address]; suspected {
		delete(m.conflicting, address)
		if version != w.loaded {
			m.contended.Add(address, time.Now().Add(contentionPeriod))
		}
	}
	if w.keyedRows() > maxKeyedRows || isActive(m.contended, address) {
		m.wallets.Remove(address)
		return
	}
	w.state.Events = nil // it belongs to the batch
	if w.counted == 0 {
		m.wallets.Remove(address) // an earlier read, with rows of its own
	}
	m.wallets.Add(address, w)
	m.count(w)
}

// count counts the rows of a cached wallet and evicts the oldest wallets beyond the limit.
func (m *usageCache) count(w *walletState) {
	rows := 1 + w.keyedRows()
	m.rows, w.counted = m.rows+rows-w.counted, rows
	for m.rows > m.maxRows {
		m.wallets.RemoveOldest()
	}
}
