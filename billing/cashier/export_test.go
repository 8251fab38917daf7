package cashier

import (
	"slices"
	"time"
)

// EventTypes is what is listened to.
func EventTypes() []string { return slices.Clone(eventTypes) }

// SetLimits has the cashier give up on a conversation, and end a portion of a
// list, where a test can wait for it.
func (c *Cashier) SetLimits(talk time.Duration, portion int) {
	c.limits = limits{talk: talk, portion: portion}
}
