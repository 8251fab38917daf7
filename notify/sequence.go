package notify

import (
	"slices"

	"purser/ids"
)

// MaxBatch is how many notifications one pass of a sequencer numbers.
const MaxBatch = 500

// Unnumbered is a committed notification without a number.
type Unnumbered struct {
	ID   ids.ID
	Type Type
}

// Subscriber is an endpoint as the sequencer needs it. A paused one is a subscriber
// too: its deliveries wait for it.
type Subscriber struct {
	EndpointID ids.ID
	Types      []Type // empty for all
	LastSeq    int64  // the newest notification for it
}

// Wants reports whether the endpoint is sent notifications of the type.
func (s Subscriber) Wants(t Type) bool { return len(s.Types) == 0 || slices.Contains(s.Types, t) }

// Linked is a notification for one endpoint, with the number of the one before it for
// the same endpoint.
type Linked struct {
	EndpointID     ids.ID
	NotificationID ids.ID
	Seq            int64
	PreviousSeq    int64
}

// Sequence numbers notifications after last, in the order given, and links those that
// each subscriber wants. It updates LastSeq of the subscribers.
func Sequence(last int64, list []Unnumbered, subscribers []Subscriber) (deliveries []Linked, end int64) {
	for _, n := range list {
		last++
		for i := range subscribers {
			s := &subscribers[i]
			if !s.Wants(n.Type) {
				continue
			}
			deliveries = append(deliveries, Linked{EndpointID: s.EndpointID, NotificationID: n.ID, Seq: last, PreviousSeq: s.LastSeq})
			s.LastSeq = last
		}
	}
	return deliveries, last
}
