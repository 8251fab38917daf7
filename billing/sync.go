package billing

import (
	"strconv"
	"time"
	"unicode/utf8"

	"purser/ids"
)

// Sync is where a plan stands with the payment provider.
type Sync struct {
	Status    SyncStatus
	Error     string // what the provider said last, when that is an error
	ProductID string // the provider's; empty until it has one
	PriceID   string // of the current price; empty until the provider has it

	// Version counts the changes that the provider has to hear of, PriceNumber
	// those for which it needs another price. Work that began under other numbers
	// does not settle these.
	Version     int64
	PriceNumber int64
}

// SyncStatus says whether the provider has the plan as it is.
type SyncStatus string

// The states of synchronization.
const (
	SyncPending SyncStatus = "pending"
	SyncDone    SyncStatus = "synced"
	SyncFailed  SyncStatus = "error"
)

// PriceArchiveDelay is how long the price before stays for sale at the provider.
// A hosted checkout can be open for a day, and must still find what it sells.
const PriceArchiveDelay = int64(25 * time.Hour / time.Millisecond)

// maxSyncError is as much of the provider's sentence as is kept, in characters.
const maxSyncError = 500

// after is where synchronization stands once the plan was changed. Limits and
// grants are not told to the provider. A price there never changes, so another
// one is needed.
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

// Synced gives the plan once the provider has what the plan was when the work
// began.
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

// SyncRefused gives the plan once the provider refused what it was when the work
// began, or could not be reached.
func (p Plan) SyncRefused(began Sync, reason string) Plan {
	if p.Sync.Version != began.Version {
		return p
	}
	p.Sync.Status, p.Sync.Error = SyncFailed, truncate(reason, maxSyncError)
	return p
}

// ProductReference is the id that the plan's product gets at the provider. It is
// ours, so that a crash after the call makes no second product.
func (p Plan) ProductReference() string { return "psr_" + p.ID.Format(ids.Plan) }

// PriceReference finds the current price at the provider, for the same reason.
func (p Plan) PriceReference() string {
	return "psr:" + p.ID.Format(ids.Plan) + ":p" + strconv.FormatInt(p.Sync.PriceNumber, 10)
}

func truncate(text string, characters int) string {
	if utf8.RuneCountInString(text) <= characters {
		return text
	}
	return string([]rune(text)[:characters-1]) + "…"
}
