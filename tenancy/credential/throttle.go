package credential

import (
	"crypto/sha256"
	"time"
)

// So many attempts are free. From then on each has to wait twice as long as the
// one before, up to a quarter of an hour: nobody is ever locked out by others.
const (
	freeAttempts = 5
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
)

// ForgottenAfter is when earlier attempts no longer count.
const ForgottenAfter = 24 * time.Hour

// Attempts is how often somebody has tried in a row without success.
type Attempts struct {
	Count  int
	LastAt int64
}

// Wait is how long the next attempt has to wait from now on.
func (a Attempts) Wait(now int64) time.Duration {
	since := time.Duration(now-a.LastAt) * time.Millisecond
	if a.Count < freeAttempts || since >= ForgottenAfter {
		return 0
	}
	delay := longestDelay
	if doublings := a.Count - freeAttempts; doublings < 10 { // 2^10 seconds pass the longest
		delay = firstDelay << doublings
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

// PasswordSubject is whom attempts at the password of an address are counted for,
// whether there is an account or not.
func PasswordSubject(email string) Hash { return sha256.Sum256([]byte("password " + email)) }

// CodeSubject is whom attempts at the codes of a user are counted for.
func CodeSubject(user string) Hash { return sha256.Sum256([]byte("code " + user)) }
