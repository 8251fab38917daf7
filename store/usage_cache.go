package store

import (
	"iter"
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
	// rowsPerWallet is how many rows a cached wallet may have on average: itself, its keyed
	// rows and every rowsTogether of its balances and terms, of up to half a kilobyte. Beyond
	// it the oldest wallets are evicted.
	rowsPerWallet = 5
	rowsTogether  = 4
	// maxCachedItems bounds the features of a cached catalog, and the keys.
	maxCachedItems = 5_000
	// maxCachedApps is the number of cached catalogs.
	maxCachedApps = 1_000
	// maxKeyedRows is the limit of keyed rows per wallet. A wallet beyond it is
	// evicted, not trimmed: one that deduplicates by entity could grow without bound.
	maxKeyedRows = 512

	// contentionPeriod is how long a wallet is processed under locks after another node
	// changed it.
	contentionPeriod = 3 * time.Second
	// duplicatePeriod is how long event ids of an application are looked up first after
	// it sent a duplicate.
	duplicatePeriod = 100 * time.Millisecond
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

// keyedRows counts the alert marks, too.
func (w *walletState) keyedRows() int {
	return len(w.state.Used) + len(w.state.Billed) + len(w.unbilled) + len(w.marks)
}

// rows is what the wallet counts for in the cache.
func (w *walletState) rows() int {
	parts := len(w.state.Wallet.Balances)
	if s := w.state.Subscription; s != nil {
		parts += len(s.Terms.Limits) + len(s.Terms.Multipliers)
	}
	return 1 + w.keyedRows() + parts/rowsTogether
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
	rows    int // of the cached wallets
	maxRows int
	// maxItems bounds the features of each catalog, and the keys.
	maxItems int

	// Expiry times: wallets that another node changes too, and applications that send
	// duplicate event ids.
	contended      *simplelru.LRU[walletKey, time.Time]
	duplicateHeavy *simplelru.LRU[ids.ID, time.Time]
	// Of a failed batch, until the retry has read them: the versions that it expected, and
	// the applications of which one has repeated an event id.
	expectedVersions map[walletKey]int64
	suspectedRepeats map[ids.ID]bool
	history          int64 // of the database that the batches before were written to
}

func newUsageCache(wallets int) *usageCache {
	m := &usageCache{
		apps:             newLRU[ids.ID, *cachedApp](maxCachedApps, nil),
		maxRows:          rowsPerWallet * wallets,
		maxItems:         maxCachedItems,
		contended:        newLRU[walletKey, time.Time](wallets, nil),
		duplicateHeavy:   newLRU[ids.ID, time.Time](maxCachedApps, nil),
		expectedVersions: make(map[walletKey]int64),
		suspectedRepeats: make(map[ids.ID]bool),
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

// partition separates requests that can be decided from the cache from the rest.
func (m *usageCache) partition(requests []*request, now int64) (known, rest []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range requests {
		if m.lookupWallet(r, now) != nil && !isActive(m.duplicateHeavy, r.Scope.AppID) {
			known = append(known, r)
		} else {
			rest = append(rest, r)
		}
	}
	return known, rest
}

// misses are the requests that a read could make decidable from the cache. Contended
// wallets and events that may be packed are left to the pessimistic path.
func (m *usageCache) misses(requests []*request) (list []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range requests {
		app, known := m.apps.Peek(r.Scope.AppID)
		if !isActive(m.duplicateHeavy, r.Scope.AppID) && !isActive(m.contended, walletKey{r.Scope.AppID, r.Identity}) && !(known && mayRepeatPacked(r, app.packedBefore)) {
			list = append(list, r)
		}
	}
	return list
}

// lookupWallet returns the cached wallet of a request and fills in its feature. It
// returns nil when the wallet, feature or key is not cached, or a keyed row is missing.
func (m *usageCache) lookupWallet(r *request, now int64) *walletState {
	app, known := m.apps.Get(r.Scope.AppID)
	if !known || app.keys[r.KeyID] == nil || app.features[r.FeatureKey] == nil || mayRepeatPacked(r, app.packedBefore) {
		return nil
	}
	w, known := m.wallets.Get(walletKey{r.Scope.AppID, r.Identity})
	if !known {
		return nil
	}
	r.Feature = &app.features[r.FeatureKey].Feature
	w.state.Now = now + app.clockOffset
	if !w.canDecide(r.Usage.Usage) {
		return nil
	}
	return w
}

// lookupCatalog fills in the features and keys that the requests name. It returns false
// when one is not cached. The transaction checks that they are current.
func (m *usageCache) lookupCatalog(b *appBatch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	app, known := m.apps.Get(b.scope.AppID)
	if !known {
		return false
	}
	for _, r := range b.requests {
		feature, key := app.features[r.FeatureKey], app.keys[r.KeyID]
		if feature == nil || key == nil {
			return false
		}
		if b.features[r.FeatureKey] == nil {
			copied := *feature // the batch may mark it as used, and the cache is shared
			b.features[r.FeatureKey] = &copied
		}
		b.keys[r.KeyID] = key
	}
	b.epoch, b.clockOffset, b.rules, b.packedBefore = app.epoch, app.clockOffset, app.rules, app.packedBefore
	return true
}

// decideCached fills batches with cached state and has them decided under the mutex. From
// then until putCommitted or invalidate the batch owns the wallets that it touches. A
// database with another history may lack wallets that are cached.
func (m *usageCache) decideCached(history int64, batches []*appBatch, decide func(*appBatch)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.history != history {
		m.apps.Purge()
		m.wallets.Purge()
	}
	m.history = history
	for _, b := range batches {
		app, known := m.apps.Get(b.scope.AppID)
		if !known {
			continue
		}
		b.epoch, b.clockOffset, b.features, b.keys, b.rules, b.packedBefore = app.epoch, app.clockOffset, app.features, app.keys, app.rules, app.packedBefore
		for _, r := range b.requests {
			if w, known := m.wallets.Get(walletKey{b.scope.AppID, r.Identity}); known {
				b.wallets[r.Identity] = w
			}
		}
		decide(b)
	}
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
		if m.suspectedRepeats[b.scope.AppID] && (r.decision.Verdict == metering.Duplicate || r.decision.Code == fault.GroupConflict) {
			delete(m.suspectedRepeats, b.scope.AppID)
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
	if len(app.features)+len(b.features) > m.maxItems || len(app.keys)+len(b.keys) > m.maxItems {
		app.features, app.keys = make(map[string]*pricedFeature), make(map[ids.ID]*keys.APIKey) // batches may still use the others
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
	key := walletKey{app, identity}
	if version, suspected := m.expectedVersions[key]; suspected {
		delete(m.expectedVersions, key)
		if version != w.loaded {
			m.contended.Add(key, time.Now().Add(contentionPeriod))
		}
	}
	if w.keyedRows() > maxKeyedRows || isActive(m.contended, key) {
		m.wallets.Remove(key)
		return
	}
	w.state.Events = nil // it belongs to the batch
	if w.counted == 0 {
		m.wallets.Remove(key) // an earlier read, with rows of its own
	}
	m.wallets.Add(key, w)
	m.count(w)
}

// count counts the rows of a cached wallet and evicts the oldest wallets beyond the limit.
func (m *usageCache) count(w *walletState) {
	rows := w.rows()
	m.rows, w.counted = m.rows+rows-w.counted, rows
	for m.rows > m.maxRows {
		m.wallets.RemoveOldest()
	}
}

// putCommitted stores the state that an optimistic batch has committed.
func (m *usageCache) putCommitted(batches []*appBatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range batches {
		b.markCommitted()
		for identity, w := range b.wallets {
			m.putWallet(b.scope.AppID, identity, w)
		}
	}
}

// invalidate evicts the state of a failed batch. The pessimistic retry shows which wallets
// had changed and which applications repeat event ids, so that the next batch does not fail
// again.
func (m *usageCache) invalidate(batches []*appBatch, repeated bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.expectedVersions)
	clear(m.suspectedRepeats)
	for _, b := range batches {
		m.suspectedRepeats[b.scope.AppID] = repeated
		m.apps.Remove(b.scope.AppID)
		for identity, w := range b.wallets {
			key := walletKey{b.scope.AppID, identity}
			m.expectedVersions[key] = w.version
			m.wallets.Remove(key)
		}
	}
}

// evict evicts wallets that another lane changed, or this node outside the engine. A
// batch that is using one fails its version check.
func (m *usageCache) evict(app ids.ID, identities iter.Seq[string]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wallets.Len() == 0 {
		return // as in the lanes of batches of most servers
	}
	for identity := range identities {
		m.wallets.Remove(walletKey{app, identity})
	}
}

// purge evicts everything.
func (m *usageCache) purge() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.Purge()
	m.wallets.Purge()
}
