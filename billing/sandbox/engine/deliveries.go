package engine

import (
	"math/rand/v2"
	"slices"

	"purser/billing/sandbox/persist"
)

// Delivery is one event on its way to one endpoint. Its times are real ones, in
// milliseconds: a receiver that is down for a minute is down for a real minute.
type Delivery struct {
	ID       string
	Event    string
	Endpoint string
	Tries    int
	NotUntil int64
	Outside  bool  // to another program's endpoint
	Nth      int64 // its place in the order of deliveries
}

// Outgoing is a delivery to be made now.
type Outgoing struct {
	Delivery string
	Event    string
	Type     string
	URL      string
	Secrets  []string // one signature for each
	Body     []byte   // the exact bytes to sign and to send
	Outside  bool     // for another program
}

// backoff is how long to wait after each failed try, in milliseconds; the last
// one repeats. An endpoint that is down for two days has lost the event.
var backoff = []int64{1_000, 5_000, 30_000, 300_000, 3_600_000}

const (
	maxTries = 50
	// maxOutside is how often a delivery to another program is tried.
	maxOutside = 5
	// leaseTime is how long a claimed delivery is nobody else's business, in
	// milliseconds: more than a receiver may take to answer.
	leaseTime = 30_000
)

// enqueue adds a delivery behind all others.
func (w *Account) enqueue(d *Delivery) {
	if d.Nth == 0 {
		w.Made++
		d.Nth = w.Made
	}
	if w.Queued == 0 || d.NotUntil < w.NextDelivery {
		w.NextDelivery = d.NotUntil
	}
	w.Deliveries.Put(d)
	w.Queued++
	if d.Outside {
		w.QueuedOutside++
	}
}

func (w *Account) dequeue(d *Delivery) {
	w.Deliveries.Delete(d.ID)
	w.Queued--
	if d.Outside {
		w.QueuedOutside--
	}
	w.touched = true
}

// announce queues an event for every endpoint that wants it.
func (w *Account) announce(m Clock, event *Event) {
	for _, endpoint := range w.endpoints() {
		if endpoint.wants(event.Type) {
			w.enqueue(&Delivery{ID: m.token("", idLength), Event: event.ID, Endpoint: endpoint.ID, Outside: endpoint.Outside})
		}
	}
}

// Claim takes deliveries that are due, in order, for the caller to make. It
// gives nothing while deliveries are held.
func (w *Account) Claim(m Clock, realNow int64, most int) []Outgoing {
	if w.Held || w.Queued == 0 {
		return nil
	}
	if w.source != nil {
		rows, err := w.source.Ready(kindDelivery, realNow, most)
		readable(err)
		w.keep(rows)
	}
	var claimed []*Delivery
	for _, d := range w.Deliveries.Loaded() {
		if len(claimed) == most {
			break
		}
		switch {
		case d.NotUntil > realNow:
		case w.Events.Get(d.Event) == nil || w.Endpoints[d.Endpoint] == nil:
			w.dequeue(d) // its event or its endpoint is deleted
		default:
			claimed = append(claimed, d)
		}
	}
	w.countWaiting(claimed)
	var batch []Outgoing
	for _, d := range claimed {
		event, endpoint := w.Events.Get(d.Event), w.Endpoints[d.Endpoint]
		d.Tries++
		d.NotUntil = realNow + leaseTime
		w.touched = true
		batch = append(batch, Outgoing{
			Delivery: d.ID, Event: event.ID, Type: event.Type, URL: endpoint.URL,
			Secrets: endpoint.Secrets(m.Now), Body: w.Render(event).text(), Outside: d.Outside,
		})
	}
	return batch
}

// countWaiting reads the other deliveries of the same events, which an event counts.
func (w *Account) countWaiting(claimed []*Delivery) {
	if len(w.Deliveries.Loaded()) == w.Queued {
		return
	}
	var events []string
	for _, d := range claimed {
		events = append(events, d.Event)
	}
	w.Deliveries.prefetch(persist.ByParent, events...)
}

// Delivered takes a delivery off the queue.
func (w *Account) Delivered(id string) {
	if d := w.Deliveries.Get(id); d != nil {
		w.dequeue(d)
	}
}

// Undelivered puts a failed delivery back for a later try, or gives it up.
func (w *Account) Undelivered(id string, realNow int64) {
	d := w.Deliveries.Get(id)
	if d == nil {
		return
	}
	if d.Tries >= maxTries || d.Outside && d.Tries >= maxOutside {
		if event := w.Events.Get(d.Event); event != nil {
			event.Lost = true
		}
		w.dequeue(d)
		return
	}
	d.NotUntil = realNow + backoff[min(d.Tries, len(backoff))-1]
	w.touched = true
}

// Unclaim returns a delivery that was claimed and not tried.
func (w *Account) Unclaim(id string, realNow int64) {
	if d := w.Deliveries.Get(id); d != nil {
		d.Tries--
		d.NotUntil = realNow + backoff[0]
		w.touched = true
	}
}

// allDeliveries reads the whole queue, in order.
func (w *Account) allDeliveries() []*Delivery {
	if w.source != nil && len(w.Deliveries.Loaded()) < w.Queued {
		rows, err := w.source.Page(persist.Page{Kind: kindDelivery, Oldest: true, Limit: w.Queued})
		readable(err)
		w.keep(rows)
	}
	return w.Deliveries.Loaded()
}

// Retry makes every delivery to the application itself due, whatever it was waiting
// for.
func (w *Account) Retry() {
	for _, d := range w.allDeliveries() {
		if !d.Outside {
			d.NotUntil = 0
		}
	}
	w.touched = true
}

// Hold keeps deliveries back, or lets them go.
func (w *Account) Hold(hold bool) { w.Held = hold }

// Replay queues the newest n events once more, oldest first, as a provider does
// that never saw the first answer.
func (w *Account) Replay(m Clock, n int) {
	events, _, err := List(w.Events, Page{Limit: n}, Filter[Event]{})
	if err != nil {
		return
	}
	slices.Reverse(events)
	for _, event := range events {
		w.announce(m, event)
	}
}

// Shuffle puts what is waiting into another order, always the same for a seed.
func (w *Account) Shuffle(seed uint64) {
	queue := w.allDeliveries()
	order := rand.New(rand.NewPCG(seed, seed))
	order.Shuffle(len(queue), func(i, j int) { queue[i].Nth, queue[j].Nth = queue[j].Nth, queue[i].Nth })
}

// Waiting counts the deliveries that are still to be made.
func (w *Account) Waiting() int { return w.Queued }

// WaitingInside counts those to the application itself.
func (w *Account) WaitingInside() int { return w.Queued - w.QueuedOutside }

// IsDelivered reports whether every endpoint that wants the event has taken it.
func (w *Account) IsDelivered(event *Event) bool { return !event.Lost && w.waitingFor(event.ID) == 0 }

func (w *Account) waitingFor(event string) int {
	if len(w.Deliveries.Loaded()) < w.Queued {
		w.Deliveries.prefetch(persist.ByParent, event)
	}
	return len(w.Deliveries.loadedBy(persist.ByParent, event))
}

// findNextDelivery works out when the first delivery may be tried, after some were
// removed or postponed.
func (w *Account) findNextDelivery() {
	loaded, found := w.Deliveries.Loaded(), false
	w.NextDelivery = 0
	consider := func(at int64) {
		if !found || at < w.NextDelivery {
			w.NextDelivery, found = at, true
		}
	}
	for _, d := range loaded {
		consider(d.NotUntil)
	}
	if len(loaded) == w.Queued || w.source == nil {
		return
	}
	var seen []string
	for id := range w.Deliveries.slots {
		seen = append(seen, persist.Key(kindDelivery, id))
	}
	at, waiting, err := w.source.FirstDue(kindDelivery, seen)
	readable(err)
	if waiting {
		consider(at)
	}
}

// IsDeliveryDue reports whether a delivery can be claimed at the real time. It is valid
// after Change: deliveries in their lease or backoff are not due.
func (w *Account) IsDeliveryDue(realNow int64) bool {
	return !w.Held && w.Queued > 0 && w.NextDelivery <= realNow
}

// nextDelivery is the real time at which the next delivery is due.
func (w *Account) nextDelivery() (realTime int64, found bool) {
	if w.Held || w.Queued == 0 {
		return 0, false
	}
	if w.touched {
		w.findNextDelivery()
	}
	return w.NextDelivery, true
}
