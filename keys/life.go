package keys

import (
	"io"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

// Status is where a key stands in its life.
type Status string

// A retiring key works, and will be revoked at RevokedAt.
const (
	Active   Status = "active"
	Retiring Status = "retiring"
	Expired  Status = "expired"
	Revoked  Status = "revoked"
	Archived Status = "archived" // with its application
)

// Status is the key's at the moment now. A key that has expired and is revoked
// as well is revoked: someone meant it, and the answer never changes again.
func (k APIKey) Status(now int64) Status {
	switch {
	case k.Revoked && k.Archived:
		return Archived
	case k.Revoked, k.RevokedAt != 0 && k.RevokedAt <= now:
		return Revoked
	case k.ExpiresAt != 0 && k.ExpiresAt <= now:
		return Expired
	case k.RevokedAt != 0:
		return Retiring
	default:
		return Active
	}
}

// EndsAt is when the key stops working: at its expiry or the end of a rotation's overlap,
// the earlier of them. It is 0 for neither.
func (k APIKey) EndsAt() int64 {
	if k.ExpiresAt == 0 || k.RevokedAt == 0 {
		return max(k.ExpiresAt, k.RevokedAt)
	}
	return min(k.ExpiresAt, k.RevokedAt)
}

// Usable refuses a key that no longer works at the moment now.
func (k APIKey) Usable(now int64) error {
	switch k.Status(now) {
	case Revoked:
		return fault.New(fault.RevokedAPIKey)
	case Archived:
		return fault.Newf(fault.RevokedAPIKey, "The application of this API key is archived. Its keys work again when it is restored in the dashboard.")
	case Expired:
		return fault.New(fault.ExpiredAPIKey)
	default:
		return nil
	}
}

// ExpiryNotice is how long before its end a key is announced as expiring.
const ExpiryNotice = 7 * 24 * time.Hour

// ExpiresSoon reports whether the key's end is to be announced: it works until then, and
// was created for longer than the notice. One that is replaced can't be rotated again, and
// its end was shown then.
func (k APIKey) ExpiresSoon(now int64) bool {
	notice := ExpiryNotice.Milliseconds()
	return k.Status(now) == Active && k.ReplacedBy.IsZero() && k.ExpiresAt != 0 && k.ExpiresAt-now <= notice && k.ExpiresAt-k.CreatedAt > notice
}

// Revoke stops the key now: a fact, so that a node whose clock is behind does not
// wait for the moment. A key that is revoked keeps the time at which it was; one
// that is to be revoked later is revoked earlier; one that is archived stays revoked when
// its application is restored.
func (k APIKey) Revoke(now int64) APIKey {
	k.Revoked, k.Archived = true, false
	if k.RevokedAt == 0 || k.RevokedAt > now {
		k.RevokedAt = now
	}
	return k
}

// Overlap is how long a key works on beside its replacement.
type Overlap string

// The overlaps, as forms send them.
const (
	NoOverlap    Overlap = "none"
	OneHour      Overlap = "1h"
	OneDay       Overlap = "24h"
	OneWeek      Overlap = "7d"
	UntilRevoked Overlap = "until-revoked"
)

// Overlaps lists them in the order in which they are offered.
func Overlaps() []Overlap { return []Overlap{NoOverlap, OneHour, OneDay, OneWeek, UntilRevoked} }

const hour = 60 * 60 * 1000

// end is when a key replaced now is revoked: 0 for never.
func (o Overlap) end(now int64) (int64, error) {
	switch o {
	case NoOverlap:
		return now, nil
	case OneHour:
		return now + hour, nil
	case OneDay:
		return now + 24*hour, nil
	case OneWeek:
		return now + 7*24*hour, nil
	case UntilRevoked:
		return 0, nil
	default:
		return 0, fault.Newf(fault.InvalidRequest,
			"There is no overlap %.40q. Choose %s, %s, %s, %s or %s.", string(o), NoOverlap, OneHour, OneDay, OneWeek, UntilRevoked)
	}
}

// Rotation is what someone asks for when they replace a key.
type Rotation struct {
	ID      ids.ID // of the replacement
	By      ids.ID
	Overlap Overlap
}

// Rotated is a key and its replacement. The secret is to be shown once.
type Rotated struct {
	Old    APIKey
	New    APIKey
	Secret Secret
}

// Rotate replaces a key by one of the same name, preset and permissions. A key
// that was to expire gets a replacement that lives as long as it would have.
//
// The rotator sees a new secret, so their permissions bound it as a creator's
// would. A key is replaced once: two replacements could not both be the next.
func Rotate(old APIKey, rotation Rotation, rotator tenancy.Permissions, now int64, random io.Reader) (Rotated, error) {
	if old.Status(now) != Active || !old.ReplacedBy.IsZero() {
		return Rotated{}, fault.New(fault.APIKeyNotRotatable)
	}
	end, err := rotation.Overlap.end(now)
	if err != nil {
		return Rotated{}, err
	}
	next := APIKey{
		ID:          rotation.ID,
		Scope:       old.Scope,
		Name:        old.Name,
		Preset:      old.Preset,
		Permissions: old.Permissions,
		Live:        old.Live,
		CreatedBy:   rotation.By,
		CreatedAt:   now,
		Replaces:    old.ID,
	}
	if old.ExpiresAt != 0 {
		next.ExpiresAt = min(now+old.ExpiresAt-old.CreatedAt, lastMoment)
	}
	next, secret, err := next.issue(rotator, random)
	if err != nil {
		return Rotated{}, err
	}
	old.RevokedAt, old.ReplacedBy = end, next.ID
	if rotation.Overlap == NoOverlap {
		old = old.Revoke(now)
	}
	return Rotated{Old: old, New: next, Secret: secret}, nil
}
