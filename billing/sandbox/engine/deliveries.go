package engine

import (
	"math/rand/v2"
	"slices"
)

// Delivery is one event on its way to one endpoint. Its times are real ones, in
// milliseconds: a receiver that is down for a minute is down for a real minute.
type Delivery struct {
	ID       string
	Event    string
	Endpoint string
	Tries    int
	NotUntil int64
}

// Outgoing is a delivery to be made now.
type Outgoing struct {
	Delivery string
	Event    string
	Type     string
	URL      string
	Secrets  []string // one signature for each
	Body     []byte   // the exact bytes to sign and to send
}

// backoff is how long to wait after each failed try, in milliseconds; the last
// one repeats. An endpoint that is down for two days has lost the event.
var backoff = []int64{1_000, 5_000, 30_000, 300_000, 3_600_000}

const (
	maxTries = 50
	// leaseTime is how long a claimed delivery is nobody else's business, in
	// milliseconds: more than a receiver may take to answer.
	leaseTime = 30_000
)

// Claim takes deliveries that are due, in order, for the caller to make. It
// gives nothing while deliveries are held.
func (w *World) Claim(m Moment, realNow int64, most int) []Outgoing {
	if w.Held {
		return nil
	}
	var batch []Outgoing
	for _, d := range w.Queue {
		if len(batch) == most {
			break
		}
		event, endpoint := w.Events[d.Event], w.Endpoints[d.Endpoint]
		if d.NotUntil > realNow || event == nil || endpoint == nil {
			continue
		}
		d.Tries++
		d.NotUntil = realNow + leaseTime
		batch = append(batch, Outgoing{
			Delivery: d.ID, Event: event.ID, Type: event.Type, URL: endpoint.URL,
			Secrets: endpoint.Secrets(m.Now), Body: w.Render(event).text(),
		})
	}
	return batch
}

// Delivered takes a delivery off the queue.
func (w *World) Delivered(id string) {
	w.Queue = slices.DeleteFunc(w.Queue, func(d *Delivery) bool { return d.ID == id })
}

// Undelivered puts a failed delivery back for a later try, or gives it up.
func (w *World) Undelivered(id string, realNow int64) {
	i := slices.IndexFunc(w.Queue, func(d *Delivery) bool { return d.ID == id })
	if i < 0 {
		return
	}
	d := w.Queue[i]
	if d.Tries >= maxTries {
		if event := w.Events[d.Event]; event != nil {
			event.Lost = true
		}
		w.Queue = slices.Delete(w.Queue, i, i+1)
		return
	}
	d.NotUntil = realNow + backoff[min(d.Tries, len(backoff))-1]
}

// Retry makes every waiting delivery due, whatever it was waiting for.
func (w *World) Retry() {
	for _, d := range w.Queue {
		d.NotUntil = 0
	}
}

// Hold keeps deliveries back, or lets them go.
func (w *World) Hold(hold bool) { w.Held = hold }

// Replay queues the newest n events once more, oldest first, as a provider does
// that never saw the first answer.
func (w *World) Replay(m Moment, n int) {
	events, _, err := List(w.Events, Page{Limit: n}, func(e *Event) bool { return true })
	if err != nil {
		return
	}
	slices.Reverse(events)
	for _, event := range events {
		for _, endpoint := range w.endpoints() {
			if endpoint.wants(event.Type) {
				w.Queue = append(w.Queue, &Delivery{ID: m.token("", idLength), Event: event.ID, Endpoint: endpoint.ID})
			}
		}
	}
}

// Shuffle puts what is waiting into another order, always the same for a seed.
func (w *World) Shuffle(seed uint64) {
	order := rand.New(rand.NewPCG(seed, seed))
	order.Shuffle(len(w.Queue), func(i, j int) { w.Queue[i], w.Queue[j] = w.Queue[j], w.Queue[i] })
}

// Waiting counts the deliveries that are still to be made.
func (w *World) Waiting() int { return len(w.Queue) }

// IsDelivered reports whether every endpoint that wants the event has taken it.
func (w *World) IsDelivered(event *Event) bool { return !event.Lost && w.waitingFor(event.ID) == 0 }

func (w *World) waitingFor(event string) int {
	n := 0
	for _, d := range w.Queue {
		if d.Event == event {
			n++
		}
	}
	return n
}

// nextDelivery is the real time at which the next delivery is due.
func (w *World) nextDelivery() (realTime int64, found bool) {
	if w.Held {
		return 0, false
	}
	for _, d := range w.Queue {
		if !found || d.NotUntil < realTime {
			realTime, found = d.NotUntil, true
		}
	}
	return realTime, found
}
