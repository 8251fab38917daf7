package cashier

import (
	"time"
)

// WebhookReceipt describes a received event.
type WebhookReceipt struct {
	Outcome string // "queued" or "ignored"
	// Lag is how long ago the provider created the event; negative for unknown: for an
	// application whose sandbox clock was moved.
	Lag time.Duration
}

// lagSince is the time since a moment on the application's clock; negative for unknown.
func (c *Cashier) lagSince(offset, moment int64) time.Duration {
	if moment <= 0 || offset != 0 {
		return -1
	}
	return time.Duration(max(0, c.realNow()-moment)) * time.Millisecond
}
