package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"
)

// Identities are all of one width, so that a request is written once and only
// its digits change.
const (
	identityPrefix = "wallet-"
	identityDigits = 7
	featureKey     = "calls"
)

func identityOf(wallet int) string {
	return fmt.Sprintf("%s%0*d", identityPrefix, identityDigits, wallet)
}

const eventIDLength = 36

// request is a whole HTTP request in which the identity, and the event id if it
// has one, are filled in each time.
type request struct {
	text     []byte
	identity int // where its digits begin
	eventID  int // where it begins, 0 for none
	expects  expectation
}

func newTrack(host, secret string) *request {
	body := fmt.Sprintf(`{"id":"%0*d","identity":"%s%0*d","feature":"%s"}`, eventIDLength, 0, identityPrefix, identityDigits, 0, featureKey)
	r := newRequest(host, secret, "/v1/events", body)
	r.eventID = len(r.text) - len(body) + len(`{"id":"`)
	r.identity = r.eventID + eventIDLength + len(`","identity":"`) + len(identityPrefix)
	r.expects = expectation{status: 201, contains: []byte(`"accepted"`)}
	return r
}

func newCheck(host, secret string) *request {
	body := fmt.Sprintf(`{"identity":"%s%0*d","feature":"%s"}`, identityPrefix, identityDigits, 0, featureKey)
	r := newRequest(host, secret, "/v1/check", body)
	r.identity = len(r.text) - len(body) + len(`{"identity":"`) + len(identityPrefix)
	r.expects = expectation{status: 200, contains: []byte(`"allowed":true`)}
	return r
}

func newRequest(host, secret, path, body string) *request {
	return &request{text: fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, host, secret, len(body), body)}
}

// fill makes the request one of this wallet, with an event id of this moment.
func (r *request) fill(wallet int, now time.Time, random *rand.PCG) []byte {
	for i := r.identity + identityDigits - 1; i >= r.identity; i-- {
		r.text[i] = byte('0' + wallet%10)
		wallet /= 10
	}
	if r.eventID > 0 {
		writeEventID(r.text[r.eventID:r.eventID+eventIDLength], now, random)
	}
	return r.text
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
