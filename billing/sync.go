package billing

import (
	"strconv"
	"time"

	"purser/ids"
)

// Sync is the state of a plan's synchronization with the provider.
type Sync struct {
	Status    SyncStatus
	Error     string // the last error from the provider
	ProductID string // the provider's; empty until it has one
	PriceID   string // of the current price; empty until the provider has it

	// Version counts the changes that the provider needs, PriceNumber those that need
	// a new price. A sync job that began under older numbers does not complete newer
	// ones.
	Version     int64
	PriceNumber int64
}

// SyncStatus says whether the provider has the plan's current version.
type SyncStatus string

// The states of synchronization.
const (
	SyncPending SyncStatus = "pending"
	SyncDone    SyncStatus = "synced"
	SyncFailed  SyncStatus = "error"
)

// PriceArchiveDelay is how long the previous price stays active at the provider: a
// checkout session can be open for a day and still sell it.
const PriceArchiveDelay = int64(25 * time.Hour / time.Millisecond)

// after is the state once the plan was changed. The provider does not need limits and
// grants. Its prices are immutable, so a new price is created.
func (s Sync) after(was, updated Plan) Sync {
	newPrice := was.Price != updated.Price
	if !newPrice && was.Name == updated.Name && was.Active == updated.Active {
		return s
	}
	s.Status, s.Error = SyncPending, ""
	s.Version++
	if newPrice {
		s.PriceNumber++
		s.PriceID = ""
	}
	return s
}

// Synced is the plan once the provider has the version that the job began with.
func (p Plan) Synced(began Sync, productID, priceID string) Plan {
	p.Sync.ProductID = productID
	if p.Sync.PriceNumber == began.PriceNumber {
		p.Sync.PriceID = priceID
	}
	if p.Sync.Version == began.Version {
		p.Sync.Status, p.Sync.Error = SyncDone, ""
	}
	return p
}

// SyncRefused is the plan once the provider refused that version or could not be
// reached.
func (p Plan) SyncRefused(began Sync, reason string) Plan {
	if p.Sync.Version != began.Version {
		return p
	}
	p.Sync.Status, p.Sync.Error = SyncFailed, reason
	return p
}

// ProductReference is the id of the plan's product at the provider. We choose it, so
// that a crash after the call creates no second product.
func (p Plan) ProductReference() string { return "psr_" + p.ID.Format(ids.Plan) }

// PriceReference is the lookup key of the current price, for the same reason.
func (p Plan) PriceReference() string {
	return "psr:" + p.ID.Format(ids.Plan) + ":p" + strconv.FormatInt(p.Sync.PriceNumber, 10)
}
