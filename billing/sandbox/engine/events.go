package engine

import (
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// APIVersion is the one version in which this package shows objects.
const APIVersion = "2024-06-20"

const (
	// How long an event can be listed, as at Stripe.
	eventLife = 30 * day
	// maxEvents bounds what a busy month may leave behind; the oldest go first.
	maxEvents = 2_000
)

// Event says that an object was made or changed, and shows it as it was then.
type Event struct {
	Head
	Type     string
	Object   []byte // JSON, kept as bytes: it is never read again, only shown
	Previous []byte // the attributes that changed, as they were before
	Request  RequestRef
	Lost     bool // some endpoint never took it
}

// emit records that the object is now as it is.
func (w *Account) emit(m Clock, kind string, o Object) {
	w.record(m, kind, w.Render(o), nil)
}

// emitChange records that the object changed from what it was.
func (w *Account) emitChange(m Clock, kind string, was Doc, o Object) {
	now, previous := w.Render(o), Doc{}
	for name, value := range now {
		if !reflect.DeepEqual(was[name], value) {
			previous[name] = was[name]
		}
	}
	w.record(m, kind, now, previous)
}

func (w *Account) record(m Clock, kind string, object, previous Doc) {
	event := &Event{Head: w.numbered(m, m.token("evt_", idLength)), Type: kind, Object: object.text(), Request: m.Request}
	if previous != nil {
		event.Previous = previous.text()
	}
	w.Events.Put(event)
	w.announce(m, event)
}

// Doc is an object as the API shows it.
type Doc map[string]any

func (d Doc) text() jsontext.Value {
	text, err := json.Marshal(d, json.Deterministic(true))
	if err != nil {
		// Every value in a Doc was put there by this package.
		panic("sandbox: a document that is not JSON: " + err.Error())
	}
	return text
}
