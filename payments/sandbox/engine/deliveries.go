package engine

import (
	"math/rand/v2"
	"slices"

	"purser/payments/sandbox/persist"
)

// Delivery is the delivery of one event to one endpoint. Its times are real times in
// milliseconds, not the account's: receivers run in real time.
type Delivery struct {
	ID       string
	Event    string
	Endpoint string
	Tries    int
	NotUntil int64
	Outside  bool  // to another program's endpoint
	Nth      int64 // position in the queue
}

// Outgoing is a claimed delivery, ready to send.
type Outgoing struct {
	Delivery string
	Event    string
	Type     string
	URL      string
	Secret   string // as stored
	Body     []byte // the exact bytes to sign and send
	Outside  bool   // for another program
}

// backoff is the delay after each failed attempt, in milliseconds; the last one
// repeats. An endpoint that is down for two days loses the event.
var backoff = []int64{1_000, 5_000, 30_000, 300_000, 3_600_000}

const (
	maxTries = 50
	// maxOutside is the number of attempts for another program's endpoint.
	maxOutside = 5
	// leaseTime is how long a claimed delivery is leased, in milliseconds: more than
	// the timeout of a receiver.
	leaseTime = 30_000
)

// enqueue appends a delivery to the queue.
func (a *Account) enqueue(d *Delivery) {
	if d.Nth == 0 {
		a.Made++
		d.Nth = a.Made
	}
	if a.Queued == 0 || d.NotUntil < a.NextDelivery {
		a.NextDelivery = d.NotUntil
	}
	a.Deliveries.Put(d)
	a.Queued++
	if d.Outside {
		a.QueuedOutside++
	}
}

func (a *Account) dequeue(d *Delivery) {
	a.Deliveries.Delete(d.ID)
	a.Queued--
	if d.Outside {
		a.QueuedOutside--
	}
	a.queueChanged = true
}

// enqueueEvent queues an event for every endpoint subscribed to its type.
func (a *Account) enqueueEvent(env Env, event *Event) {
	for _, endpoint := range a.endpoints() {
		if endpoint.wants(event.Type) {
			a.enqueue(&Delivery{ID: env.token("", idLength), Event: event.ID, Endpoint: endpoint.ID, Outside: endpoint.Outside})
		}
	}
}

// Claim leases due deliveries, in order, for the caller to send. It returns none while
// deliveries are held.
func (a *Account) Claim(realNow int64, limit int) []Outgoing {
	if a.Held || a.Queued == 0 {
		return nil
	}
	if a.source != nil {
		rows, err := a.source.Ready(kindDelivery, realNow, limit)
		panicOnReadError(err)
		a.addRows(rows)
	}
	var claimed []*Delivery
	for _, d := range a.Deliveries.Loaded() {
		if len(claimed) == limit {
			break
		}
		switch {
		case d.NotUntil > realNow:
		case a.Events.Get(d.Event) == nil || a.Endpoints[d.Endpoint] == nil:
			a.dequeue(d) // its event or endpoint was deleted
		default:
			claimed = append(claimed, d)
		}
	}
	a.prefetchSiblings(claimed)
	var batch []Outgoing
	for _, d := range claimed {
		event, endpoint := a.Events.Get(d.Event), a.Endpoints[d.Endpoint]
		d.Tries++
		d.NotUntil = realNow + leaseTime
		a.queueChanged = true
		batch = append(batch, Outgoing{
			Delivery: d.ID, Event: event.ID, Type: event.Type, URL: endpoint.URL,
			Secret: endpoint.Secret, Body: a.Render(event).text(), Outside: d.Outside,
		})
	}
	return batch
}

// prefetchSiblings reads the other deliveries of the claimed events: an event shows
// its pending_webhooks.
func (a *Account) prefetchSiblings(claimed []*Delivery) {
	if len(a.Deliveries.Loaded()) == a.Queued {
		return
	}
	var events []string
	for _, d := range claimed {
		events = append(events, d.Event)
	}
	a.Deliveries.prefetch(persist.ByParent, events...)
}

// MarkDelivered removes a delivery from the queue.
func (a *Account) MarkDelivered(id string) {
	if d := a.Deliveries.Get(id); d != nil {
		a.dequeue(d)
	}
}

// MarkFailed schedules the next attempt of a delivery, or gives up on it.
func (a *Account) MarkFailed(id string, realNow int64) {
	d := a.Deliveries.Get(id)
	if d == nil {
		return
	}
	if d.Tries >= maxTries || d.Outside && d.Tries >= maxOutside {
		if event := a.Events.Get(d.Event); event != nil {
			event.Lost = true
		}
		a.dequeue(d)
		return
	}
	d.NotUntil = realNow + backoff[min(d.Tries, len(backoff))-1]
	a.queueChanged = true
}

// ReleaseClaim returns a claimed delivery that was not attempted. It does not count as
// a try.
func (a *Account) ReleaseClaim(id string, realNow int64) {
	if d := a.Deliveries.Get(id); d != nil {
		d.Tries--
		d.NotUntil = realNow + backoff[0]
		a.queueChanged = true
	}
}

// allDeliveries lists the whole queue in order.
func (a *Account) allDeliveries() []*Delivery {
	if a.source != nil && len(a.Deliveries.Loaded()) < a.Queued {
		rows, err := a.source.Page(persist.Page{Kind: kindDelivery, Oldest: true, Limit: a.Queued})
		panicOnReadError(err)
		a.addRows(rows)
	}
	return a.Deliveries.Loaded()
}

// Retry makes every delivery to the application itself due now.
func (a *Account) Retry() {
	for _, d := range a.allDeliveries() {
		if !d.Outside {
			d.NotUntil = 0
		}
	}
	a.queueChanged = true
}

// Hold pauses or resumes deliveries.
func (a *Account) Hold(hold bool) { a.Held = hold }

// Replay queues the newest n events again, oldest first, like a provider that never
// received the response.
func (a *Account) Replay(env Env, n int) {
	events, _, err := List(a.Events, Page{Limit: n}, Filter[Event]{})
	if err != nil {
		return
	}
	slices.Reverse(events)
	for _, event := range events {
		a.enqueueEvent(env, event)
	}
}

// Shuffle reorders the queue, deterministically for a seed.
func (a *Account) Shuffle(seed uint64) {
	queue := a.allDeliveries()
	order := rand.New(rand.NewPCG(seed, seed))
	order.Shuffle(len(queue), func(i, j int) { queue[i].Nth, queue[j].Nth = queue[j].Nth, queue[i].Nth })
}

// Waiting is the number of queued deliveries.
func (a *Account) Waiting() int { return a.Queued }

// WaitingInside is the number of queued deliveries to the application itself.
func (a *Account) WaitingInside() int { return a.Queued - a.QueuedOutside }

// IsDelivered reports whether every subscribed endpoint has accepted the event.
func (a *Account) IsDelivered(event *Event) bool { return !event.Lost && a.waitingFor(event.ID) == 0 }

func (a *Account) waitingFor(event string) int {
	if len(a.Deliveries.Loaded()) < a.Queued {
		a.Deliveries.prefetch(persist.ByParent, event)
	}
	return len(a.Deliveries.loadedBy(persist.ByParent, event))
}

// computeNextDelivery sets NextDelivery after deliveries were removed or rescheduled.
func (a *Account) computeNextDelivery() {
	loaded, found := a.Deliveries.Loaded(), false
	a.NextDelivery = 0
	consider := func(at int64) {
		if !found || at < a.NextDelivery {
			a.NextDelivery, found = at, true
		}
	}
	for _, d := range loaded {
		consider(d.NotUntil)
	}
	if len(loaded) == a.Queued || a.source == nil {
		return
	}
	var seen []string
	for id := range a.Deliveries.slots {
		seen = append(seen, persist.Key(kindDelivery, id))
	}
	at, waiting, err := a.source.FirstDue(kindDelivery, seen)
	panicOnReadError(err)
	if waiting {
		consider(at)
	}
}

// IsDeliveryDue reports whether a delivery can be claimed at the real time. It is valid
// after Change. Leased deliveries and those in backoff are not due.
func (a *Account) IsDeliveryDue(realNow int64) bool {
	return !a.Held && a.Queued > 0 && a.NextDelivery <= realNow
}

// nextDelivery is the real time at which the next delivery is due.
func (a *Account) nextDelivery() (realTime int64, found bool) {
	if a.Held || a.Queued == 0 {
		return 0, false
	}
	if a.queueChanged {
		a.computeNextDelivery()
	}
	return a.NextDelivery, true
}
