package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Identities are all of one width, so that a request is written once and only
// its digits change.
const (
	identityPrefix = "wallet-"
	identityDigits = 7
	featureKey     = "calls"
	limitedKey     = "exports" // a feature that the plan of every wallet limits
)

// traffic is how the events of a connection, or of a batch, differ from each other: in
// ten of them, one names an entity and one uses the limited feature. So nearly every
// transaction of many connections has both.
var traffic = [...]variant{{}, {}, {entity: true}, {}, {}, {}, {}, {limited: true}, {}, {}}

// variant is what an event has beyond an id, an identity and a feature.
type variant struct{ entity, limited bool }

func identityOf(wallet int) string {
	return fmt.Sprintf("%s%0*d", identityPrefix, identityDigits, wallet)
}

const eventIDLength = 36

// request is a whole HTTP request in which the identities, and the event ids if it
// has any, are filled in each time.
type request struct {
	text    []byte
	slots   []slot
	expects expectation
}

// slot is where an event of a request is filled in.
type slot struct {
	identity int // where its digits begin
	eventID  int // where it begins, 0 for none
	entity   int // where its digits begin, 0 for none
}

const (
	idField       = `{"id":"`
	identityField = `","identity":"` + identityPrefix
	entityField   = `,"entityId":"order-`
)

// blankEvent is the body of an event, to be filled in at the slot.
func blankEvent(v variant) (body string, at slot) {
	feature := featureKey
	if v.limited {
		feature = limitedKey
	}
	body = fmt.Sprintf(`%s%0*d%s%0*d","feature":"%s"`, idField, eventIDLength, 0, identityField, identityDigits, 0, feature)
	at = slot{eventID: len(idField), identity: len(idField) + eventIDLength + len(identityField)}
	if v.entity {
		at.entity = len(body) + len(entityField)
		body += fmt.Sprintf(`%s%0*d"`, entityField, identityDigits, 0)
	}
	return body + "}", at
}

func newTrack(host, secret string, v variant) *request {
	body, at := blankEvent(v)
	r := newRequest(host, secret, "/v1/events", body)
	r.add(at, len(r.text)-len(body))
	r.expects = expectation{status: 201, contains: []byte(`"accepted"`)}
	return r
}

// newBatch is a batch of this many events.
func newBatch(host, secret string, events int) *request {
	var body strings.Builder
	body.WriteString(`{"events":[`)
	starts, slots := make([]int, events), make([]slot, events)
	for i := range events {
		if i > 0 {
			body.WriteByte(',')
		}
		event, at := blankEvent(traffic[i%len(traffic)])
		starts[i], slots[i] = body.Len(), at
		body.WriteString(event)
	}
	body.WriteString("]}")
	r := newRequest(host, secret, "/v1/events/batch", body.String())
	for i := range events {
		r.add(slots[i], len(r.text)-body.Len()+starts[i])
	}
	r.expects = expectation{status: 200, contains: fmt.Appendf(nil, `"counts":{"accepted":%d,`, events)}
	return r
}

func newCheck(host, secret string) *request {
	body := fmt.Sprintf(`{"identity":"%s%0*d","feature":"%s"}`, identityPrefix, identityDigits, 0, featureKey)
	r := newRequest(host, secret, "/v1/check", body)
	r.slots = []slot{{identity: len(r.text) - len(body) + len(`{"identity":"`) + len(identityPrefix)}}
	r.expects = expectation{status: 200, contains: []byte(`"allowed":true`)}
	return r
}

// add adds an event whose body begins there.
func (r *request) add(s slot, at int) {
	placed := slot{eventID: at + s.eventID, identity: at + s.identity}
	if s.entity > 0 {
		placed.entity = at + s.entity
	}
	r.slots = append(r.slots, placed)
}

func newRequest(host, secret, path, body string) *request {
	return &request{text: fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, host, secret, len(body), body)}
}

// fill picks a wallet for each event, and an event id of this moment. An entity has the
// number of its wallet.
func (r *request) fill(pick func() int, now time.Time, random *rand.PCG) []byte {
	for _, s := range r.slots {
		wallet := pick()
		r.writeDigits(s.identity, wallet)
		if s.eventID > 0 {
			writeEventID(r.text[s.eventID:s.eventID+eventIDLength], now, random)
		}
		if s.entity > 0 {
			r.writeDigits(s.entity, wallet)
		}
	}
	return r.text
}

func (r *request) writeDigits(at, number int) {
	for i := at + identityDigits - 1; i >= at; i-- {
		r.text[i] = byte('0' + number%10)
		number /= 10
	}
}

// writeEventID writes a UUIDv7, as callers are asked to use: ids that begin with
// the time land beside each other in the index.
func writeEventID(text []byte, now time.Time, random *rand.PCG) {
	ms, high, low := uint64(now.UnixMilli()), random.Uint64(), random.Uint64()
	id := [16]byte{
		byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms),
		0x70 | byte(high)&0x0f, byte(high >> 8),
		0x80 | byte(low)&0x3f, byte(low >> 8), byte(low >> 16), byte(low >> 24), byte(low >> 32), byte(low >> 40), byte(low >> 48), byte(low >> 56),
	}
	hex.Encode(text[0:8], id[0:4])
	text[8] = '-'
	hex.Encode(text[9:13], id[4:6])
	text[13] = '-'
	hex.Encode(text[14:18], id[6:8])
	text[18] = '-'
	hex.Encode(text[19:23], id[8:10])
	text[23] = '-'
	hex.Encode(text[24:36], id[10:16])
}
