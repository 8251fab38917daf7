package engine

import (
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// APIVersion is the one version in which this package shows objects.
const APIVersion = "2024-06-20"

const (
	// eventLife is how long an event can be listed, as at Stripe.
	eventLife = 30 * day
	// maxEvents is how many events are kept; the oldest are pruned first.
	maxEvents = 2_000
)

// Event announces that an object was created or changed, with its state at that time.
type Event struct {
	Head
	Type     string
	Object   []byte // JSON, stored as bytes: it is shown but never decoded
	Previous []byte // previous_attributes
	Request  RequestRef
	Lost     bool // an endpoint gave up on it
}

// emit records an event with the current state of the object.
func (a *Account) emit(env Env, kind string, o Object) {
	a.recordEvent(env, kind, a.Render(o), nil)
}

// emitChange records an event with the current state and the previous attributes.
func (a *Account) emitChange(env Env, kind string, was Doc, o Object) {
	now, previous := a.Render(o), Doc{}
	for name, value := range now {
		if !reflect.DeepEqual(was[name], value) {
			previous[name] = was[name]
		}
	}
	a.recordEvent(env, kind, now, previous)
}

func (a *Account) recordEvent(env Env, kind string, object, previous Doc) {
	event := &Event{Head: a.numbered(env, env.token("evt_", idLength)), Type: kind, Object: object.text(), Request: env.Request}
	if previous != nil {
		event.Previous = previous.text()
	}
	a.Events.Put(event)
	a.enqueueEvent(env, event)
}

// Doc is an object as the API shows it.
type Doc map[string]any

func (d Doc) text() jsontext.Value {
	text, err := json.Marshal(d, json.Deterministic(true))
	if err != nil {
		// Cannot happen: this package sets every value of a Doc.
		panic("sandbox: encode document: " + err.Error())
	}
	return text
}
