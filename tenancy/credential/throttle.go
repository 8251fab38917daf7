package credential

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"
)

// The first attempts are free. From then on each has to wait twice as long as the one
// before, up to a quarter of an hour.
const (
	freeAttempts = 5
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
)

// An address at which many networks guess has stricter rules for each network: a first
// attempt and a mistyped one, then waits that begin where the usual ones end.
const (
	guardedAttempts    = 2
	longestGuardedWait = ForgottenAfter
)

// ForgottenAfter is when earlier attempts no longer count.
const ForgottenAfter = 24 * time.Hour

// Attempts is the number of consecutive failed attempts.
type Attempts struct {
	Count  int
	LastAt int64
}

// Wait is how long the next attempt has to wait from now on.
func (a Attempts) Wait(now int64) time.Duration {
	return a.wait(now, freeAttempts, firstDelay, longestDelay)
}

// GuardedWait is Wait for an address that has reached AddressLimit. A network that has
// not failed there does not wait: the account's owner may be in it.
func (a Attempts) GuardedWait(now int64) time.Duration {
	return a.wait(now, guardedAttempts, longestDelay, longestGuardedWait)
}

// wait doubles the first delay with each attempt past the free ones, up to the longest.
func (a Attempts) wait(now int64, free int, first, longest time.Duration) time.Duration {
	since := time.Duration(now-a.LastAt) * time.Millisecond
	if a.Count < free || since >= ForgottenAfter {
		return 0
	}
	delay := longest
	if doublings := a.Count - free; doublings < 10 { // past the longest, for either rule
		delay = min(longest, first<<doublings)
	}
	return max(0, delay-max(0, since))
}

// Next counts one more attempt.
func (a Attempts) Next(now int64) Attempts {
	if time.Duration(now-a.LastAt)*time.Millisecond >= ForgottenAfter {
		a.Count = 0
	}
	return Attempts{Count: min(a.Count+1, 1000), LastAt: now}
}

// AddressLimit is how many failed attempts at the password of one address are made under
// the usual rules in a window, from unknown devices in all networks together. Past it
// networks have GuardedWait. Refusing all of them would let strangers lock the owner out.
const AddressLimit = 100

// AddressWindow is the time in which AddressLimit counts.
const AddressWindow = 24 * time.Hour

// A subject is what attempts are counted for. Each is a hash of who is tried and of
// where the attempts come from, so that attempts from elsewhere do not slow an account's
// owner down.

// PasswordSubject counts attempts at the password of an address, whether there is an
// account or not, by where they come from: a network, or a device that the account has
// signed in on. A password that was changed begins at zero.
func PasswordSubject(email string, changedAt int64, from string) Hash {
	return subject("password", email, strconv.FormatInt(changedAt, 10), from)
}

// AddressSubject counts attempts at the password of an address in the current window,
// from all networks together. Attempts of known devices are not counted.
func AddressSubject(email string, changedAt, now int64) Hash {
	return subject("address", email, strconv.FormatInt(changedAt, 10), strconv.FormatInt(now/AddressWindow.Milliseconds(), 10))
}

// CodeSubject counts attempts at the codes of a user. From is a device that the user has
// signed in on; without one, attempts from everywhere count together: they come from
// people who know the password.
func CodeSubject(user, from string) Hash { return subject("code", user, from) }

// RecoverySubject counts attempts at the recovery codes of a user by where they come
// from. They have 128 bits, so a count from everywhere would only lock the owner out.
func RecoverySubject(user, from string) Hash { return subject("recovery", user, from) }

// SessionSubject counts attempts at one step, a password or a code, within a session,
// which others cannot reach: counted for the user, guesses in a stolen session would keep
// the owner from changing the password. Session is what stays when the session gets another
// token.
func SessionSubject(session, step string) Hash { return subject("session", session, step) }

// ResetSubject counts requests for a link that replaces the password of an address, by
// the network that they come from.
func ResetSubject(email, from string) Hash { return subject("reset", email, from) }

// ResetAddressSubject counts them in the current window, from all networks together.
func ResetAddressSubject(email string, now int64) Hash {
	return subject("reset address", email, strconv.FormatInt(now/AddressWindow.Milliseconds(), 10))
}

// subject separates its parts, so that no two lists of parts have the same hash.
func subject(parts ...string) Hash {
	return sha256.Sum256([]byte(strings.Join(parts, "\x00")))
}
