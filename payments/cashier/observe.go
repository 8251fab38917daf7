package cashier

import (
	"context"
	"time"

	"purser/tenancy"
)

// WebhookReceipt describes a received event.
type WebhookReceipt struct {
	Outcome string // "queued" or "ignored"
	// Lag is how long ago the provider created the event; negative for unknown: for an
	// application whose sandbox clock was moved.
	Lag time.Duration
}

// lagSince is the time since a moment on the application's clock; negative for unknown.
func (c *Cashier) lagSince(ctx context.Context, scope tenancy.Scope, moment int64) time.Duration {
	now, err := c.Now(ctx, scope)
	// The offset is exact to the time between two readings of one clock.
	if offset := now - c.realNow(); err != nil || moment <= 0 || offset > 1000 || offset < -1000 {
		return -1
	}
	return time.Duration(max(0, now-moment)) * time.Millisecond
}
