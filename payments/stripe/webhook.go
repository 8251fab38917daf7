package stripe

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v79/webhook"
)

// tolerance is the maximum difference between a signature's timestamp and the clock,
// in both directions: the SDK alone accepts any future timestamp.
const tolerance = 300 * time.Second

// ErrSignature is returned for a webhook that was not signed with the secret, or whose
// timestamp is outside the tolerance.
var ErrSignature = errors.New("stripe: the webhook is not signed by the account, or not now")

// Event is the part of an event that is used. Of its object only the id and kind: its
// content may be outdated or of another API version.
type Event struct {
	ID         string
	Type       string
	APIVersion string
	Live       bool
	CreatedAt  int64 // in milliseconds; zero for unknown
	Object     Object
}

// Object identifies an object of the account.
type Object struct {
	ID   string `json:"id"`
	Kind string `json:"object"`
}

// Verify decodes a webhook that was signed with one of the secrets. There are several
// while a secret is being rotated.
func Verify(body []byte, header string, secrets []string, now time.Time) (Event, error) {
	if !signedBy(body, header, secrets) || !signedAt(header, now) {
		return Event{}, ErrSignature
	}
	return readEvent(body)
}

func signedBy(body []byte, header string, secrets []string) bool {
	for _, secret := range secrets {
		if secret != "" && webhook.ValidatePayloadIgnoringTolerance(body, header, secret) == nil {
			return true
		}
	}
	return false
}

// signedAt reports whether the header has exactly one timestamp, within the tolerance.
// Of several the SDK verifies the last, so an old signature could pass with a new time.
func signedAt(header string, now time.Time) bool {
	var times []string
	for part := range strings.SplitSeq(header, ",") {
		if text, isTime := strings.CutPrefix(strings.TrimSpace(part), "t="); isTime {
			times = append(times, text)
		}
	}
	if len(times) != 1 {
		return false
	}
	at, err := strconv.ParseInt(times[0], 10, 64)
	return err == nil && now.Sub(time.Unix(at, 0)).Abs() <= tolerance
}

// readEvent decodes as few fields as possible: API versions differ in the rest.
func readEvent(body []byte) (Event, error) {
	var out struct {
		ID         string `json:"id"`
		Type       string `json:"type"`
		APIVersion string `json:"api_version"`
		Live       bool   `json:"livemode"`
		Created    any    `json:"created"` // a number of seconds, or ignored
		Data       *struct {
			Object json.RawMessage `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return Event{}, err
	}
	created, _ := out.Created.(float64)
	event := Event{ID: out.ID, Type: out.Type, APIVersion: out.APIVersion, Live: out.Live, CreatedAt: milliseconds(int64(created))}
	if out.Data != nil {
		_ = json.Unmarshal(out.Data.Object, &event.Object) // an unknown shape is an object without an id, which is ignored
	}
	return event, nil
}
