package tenancy

import (
	"iter"
	"math/bits"
	"strings"

	"purser/fault"
)

// Permissions is a set. Its bits stay inside the process: whatever is kept or
// sent goes by name. Equal sets are ==.
type Permissions struct{ bits uint64 }

func PermissionsOf(list ...Permission) Permissions {
	var s Permissions
	for _, p := range list {
		s = s.With(p)
	}
	return s
}

// AllPermissions is what an owner has.
func AllPermissions() Permissions { return upTo(lastPermission) }

// APIPermissions is the most that a key can have.
func APIPermissions() Permissions { return upTo(lastAPIPermission) }

// ReadPermissions is every API permission that changes nothing.
func ReadPermissions() Permissions {
	return PermissionsOf(CreditsRead, FeaturesRead, WalletsRead, DepositsRead, PlansRead, SubscriptionsRead, JournalRead, NotificationsRead)
}

func upTo(last Permission) Permissions {
	return Permissions{1<<(last+1) - 2} // without bit 0, which is no permission
}

// ParsePermissions reads a set that someone chose. One name that is not known
// refuses the whole.
func ParsePermissions(names []string) (Permissions, error) {
	var s Permissions
	for _, name := range names {
		p, err := ParsePermission(name)
		if err != nil {
			return Permissions{}, err
		}
		s = s.With(p)
	}
	return s, nil
}

// StoredPermissions reads a set that was kept. Names that are not known are
// left out: during a deploy, yesterday's binary meets today's permissions, and
// has no operation that they would open.
func StoredPermissions(names []string) Permissions {
	var s Permissions
	for _, name := range names {
		s = s.With(byName[name])
	}
	return s
}

func (s Permissions) Has(p Permission) bool { return s.bits&bit(p) != 0 }

func (s Permissions) With(p Permission) Permissions { return Permissions{s.bits | bit(p)} }

// Union is what either set has.
func (s Permissions) Union(t Permissions) Permissions { return Permissions{s.bits | t.bits} }

// Minus is what s has and t lacks.
func (s Permissions) Minus(t Permissions) Permissions { return Permissions{s.bits &^ t.bits} }

// Within reports whether t has all that s has.
func (s Permissions) Within(t Permissions) bool { return s.Minus(t).IsEmpty() }

func (s Permissions) IsEmpty() bool { return s.bits == 0 }

// A number that names no permission has no bit, so that it is never held.
func bit(p Permission) uint64 {
	if p == 0 || p > lastPermission {
		return 0
	}
	return 1 << p
}

// Each goes through the set in the order in which permissions are declared: the
// API's first, as it documents them, then the dashboard's.
func (s Permissions) Each() iter.Seq[Permission] {
	return func(yield func(Permission) bool) {
		for left := s.bits; left != 0; left &= left - 1 {
			if !yield(Permission(bits.TrailingZeros64(left))) {
				return
			}
		}
	}
}

// Names lists the set in the order of Each. It is never nil.
func (s Permissions) Names() []string {
	names := make([]string, 0, bits.OnesCount64(s.bits))
	for p := range s.Each() {
		names = append(names, p.String())
	}
	return names
}

// String lists the names, for people.
func (s Permissions) String() string { return strings.Join(s.Names(), ", ") }

// Require refuses when the set lacks what an operation needs.
func (s Permissions) Require(p Permission) error {
	if !s.Has(p) {
		return fault.Newf(fault.PermissionDenied,
			"This requires the permission %s. Use a key that has it, or ask an owner or admin for access.", p)
	}
	return nil
}

// RequireAll refuses when the set lacks one of those that an operation needs.
func (s Permissions) RequireAll(needed Permissions) error {
	for p := range needed.Minus(s).Each() {
		return s.Require(p)
	}
	return nil
}

// CheckGrant refuses when the holder of s would give away more than s.
func (s Permissions) CheckGrant(given Permissions) error {
	if lacking := given.Minus(s); !lacking.IsEmpty() {
		return fault.Newf(fault.PermissionNotHeld,
			"You can only grant permissions you have. You don't have: %s.", lacking)
	}
	return nil
}
