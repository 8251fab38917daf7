package notify

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"purser/fault"
	"purser/ids"
)

const (
	// MaxEndpoints is how many endpoints an application has at most.
	MaxEndpoints = 20
	// MaxURL, MaxTypes and MaxDescription bound an endpoint.
	MaxURL         = 2048
	MaxTypes       = 50
	MaxDescription = 500
	// MaxReplay is how many notifications one replay sends again.
	MaxReplay = 10_000
	// MaxOverlap is how long the previous secret signs after a rotation, in seconds, and
	// DefaultOverlap how long when the caller says nothing.
	MaxOverlap     = 604_800
	DefaultOverlap = 86_400
)

// Endpoint is where an application's notifications are sent.
type Endpoint struct {
	ID           ids.ID
	URL          string
	Types        []Type // empty for all
	Description  string
	Status       EndpointStatus
	PauseReason  PauseReason // empty for an enabled one
	Revision     int64
	LastSeq      int64 // the newest notification for it
	FailingSince int64 // by the application's clock; zero after a success
	SucceededAt  int64 // at its present URL; zero for never
	CreatedAt    int64
	// ResetAfter is set while waiting deliveries start over: those of later notifications
	// are to be reset.
	ResetAfter *ids.ID

	// The secrets are sealed. The previous one signs too, until PreviousUntil by the
	// database's clock.
	SealedSecret   []byte
	SealedPrevious []byte
	PreviousUntil  int64
}

// EndpointPatch changes an endpoint. What is nil stays.
type EndpointPatch struct {
	ExpectedRevision *int64
	URL              *string
	Types            *[]Type
	Description      *string
	Status           *EndpointStatus // Enabled or Paused
}

// CheckURL refuses an address that no webhook can be sent to. Which addresses a host
// name leads to is checked with each connection.
func CheckURL(text string, live bool) error {
	invalid := func(why string) error { return fault.Newf(fault.InvalidRequest, "%s", "url: "+why) }
	u, err := url.Parse(text)
	switch {
	case len(text) > MaxURL:
		return invalid("At most 2,048 characters.")
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return invalid("Enter an absolute URL, such as https://example.com/webhooks.")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }): // as WebAddress in the API
		return invalid("No spaces, backslashes, control or non-ASCII characters. Percent-encode them.")
	case !MayUsePort(u):
		return invalid("Use the standard port, or one from 1024 to 65535.")
	case u.User != nil:
		return invalid("No user name or password. Check the signature instead.")
	case u.Scheme == "http" && !live, u.Scheme == "https":
		return nil
	case u.Scheme == "http":
		return invalid("A live application needs https.")
	default:
		return invalid("Use https.")
	}
}

// minPort is the lowest port that belongs to no well-known service.
const minPort = 1024

// MayUsePort reports whether a webhook may be sent to the URL's port: the standard one of
// its scheme, or one of minPort and up. Others would probe services that are no receiver.
func MayUsePort(u *url.URL) bool {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && (port >= minPort || u.Scheme == "https" && port == 443 || u.Scheme == "http" && port == 80)
}

// CheckTypes refuses unknown types, and removes repeated ones.
func CheckTypes(types []Type) ([]Type, error) {
	if len(types) > MaxTypes {
		return nil, fault.Newf(fault.InvalidRequest, "types: At most %d.", MaxTypes)
	}
	list := make([]Type, 0, len(types))
	for _, t := range types {
		if !t.Known() {
			return nil, fault.Newf(fault.InvalidRequest, "types: %q is no type of notification.", string(t))
		}
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list, nil
}

// Apply is the endpoint after the change. When it is enabled or gets another URL, its
// waiting deliveries start over, and the receiver starts with a clean record. A patch that
// changes nothing keeps the revision.
func (e Endpoint) Apply(patch EndpointPatch, live bool) (Endpoint, error) {
	if patch.ExpectedRevision != nil && *patch.ExpectedRevision != e.Revision {
		return e, fault.New(fault.RevisionConflict)
	}
	was := e
	if patch.URL != nil {
		if err := CheckURL(*patch.URL, live); err != nil {
			return e, err
		}
		e.URL = *patch.URL
	}
	if patch.Types != nil {
		types, err := CheckTypes(*patch.Types)
		if err != nil {
			return e, err
		}
		e.Types = types
	}
	if patch.Description != nil {
		e.Description = *patch.Description
	}
	if patch.Status != nil && *patch.Status != e.Status {
		switch *patch.Status {
		case Enabled:
			e.Status, e.PauseReason = Enabled, ""
		case Paused:
			e.Status, e.PauseReason = Paused, PauseRequested
		default:
			return e, fault.Newf(fault.InvalidRequest, "status: Send enabled or paused.")
		}
	}
	if e.URL != was.URL || e.Status == Enabled && was.Status != Enabled {
		e.FailingSince, e.ResetAfter = 0, new(ids.ID)
	}
	if e.URL != was.URL { // else deliveries would fail for good at a URL that accepts nothing
		e.SucceededAt = 0
	}
	if e.URL != was.URL || !slices.Equal(e.Types, was.Types) || e.Description != was.Description || e.Status != was.Status {
		e.Revision++
	}
	return e, nil
}
