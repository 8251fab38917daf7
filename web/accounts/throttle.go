package accounts

import (
	"sync"
	"time"

	"purser/httpd"
	"purser/ids"
	"purser/tenancy/credential"
	"purser/web/site"
)

// attemptsPerMinute limits the sign-in attempts of one network, known devices excepted.
// Each node counts its own; the limits by account and network are shared in Postgres.
const attemptsPerMinute = 20

// alarmThreshold is the number of refused attempts in a minute, from all networks, that
// indicates an attack.
const alarmThreshold = 100

// alarm counts all refused attempts on this node: guesses at many accounts from many
// networks stay below every other limit.
type alarm struct {
	mu      sync.Mutex
	minute  int64
	refused int
}

// recordRefusal counts a refusal, and reports at most once a minute that the threshold
// is reached.
func (a *alarm) recordRefusal(now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if minute := now / time.Minute.Milliseconds(); minute != a.minute {
		a.minute, a.refused = minute, 0
	}
	a.refused++
	return a.refused == alarmThreshold
}

// proof is one attempt to authenticate.
type proof struct {
	step    string // for the log, such as password, code or invitation
	user    ids.ID // the account's user; zero if the email has none
	subject credential.Hash
	address credential.Hash // counts attempts on the email from all networks; zero for none
	// known is an attempt from a known device of the user or within a session. Other
	// clients cannot make it, so it does not count for its network.
	known bool
	// counted is an attempt that was counted for its network before.
	counted bool
}

// knownUser is the user of a known attempt; zero for others.
func (p proof) knownUser() ids.ID {
	if p.known {
		return p.user
	}
	return ids.ID{}
}

// logRefusal logs a failed attempt and its account. The typed email is not logged:
// people type passwords there by mistake.
func (s *Pages) logRefusal(req *site.Request, p proof, reason string) {
	account := "unknown"
	if !p.user.IsZero() {
		account = p.user.Format(ids.User)
	}
	req.Site.Log.Warn("sign-in refused", "request", req.RequestID(), "address", req.Bearer.Address, "user", account, "step", p.step, "reason", reason, "known_device", p.known)
	if s.alarm.recordRefusal(req.Site.Now()) {
		req.Site.Log.Error("many sign-ins refused, passwords may be guessed", "refused", alarmThreshold)
	}
}

// admitAttempt counts an attempt before it is made. The refusal is the same whether the
// account exists or not.
func (s *Pages) admitAttempt(req *site.Request, p proof) error {
	if err := s.attemptFromNetwork(req, p); err != nil {
		return err
	}
	return s.countAttempt(req, p)
}

// attemptFromNetwork counts an attempt for its network, on this node.
func (s *Pages) attemptFromNetwork(req *site.Request, p proof) error {
	if !p.known && !p.counted && s.networks.Take(site.Network(req.Bearer.Address), httpd.Claim{Tokens: 1}).Refuse > 0 {
		s.logRefusal(req, p, "too many attempts from the network")
		return site.TooMany(time.Minute / attemptsPerMinute)
	}
	return nil
}

// hashForLink hashes the password that the form of a link sets. It counts for the network
// like an attempt: an invitation stays open after a refusal, so its form can be sent any
// number of times.
func (s *Pages) hashForLink(req *site.Request, p proof) (encoded string, err error) {
	if err := s.attemptFromNetwork(req, p); err != nil {
		return "", err
	}
	return s.passwords.hash(req.Context, req.Form.Raw("password"), p.knownUser())
}

// countAttempt counts an attempt in Postgres, for all nodes.
func (s *Pages) countAttempt(req *site.Request, p proof) error {
	attempt, err := req.Site.Store.Auth().Attempt(req.Context, p.subject, p.address, req.Site.Now())
	if err != nil {
		return err
	}
	if attempt.Wait > 0 {
		s.logRefusal(req, p, "too many attempts")
		return site.TooMany(attempt.Wait)
	}
	if attempt.ReachedLimit && !p.user.IsZero() {
		req.Site.Log.Error("one account's password is guessed from many networks", "user", p.user.Format(ids.User), "attempts", credential.AddressLimit)
	}
	return nil
}

// clearAttempts deletes the counted attempts after a success.
func clearAttempts(req *site.Request, p proof) error {
	return req.Site.Store.Auth().ForgetAttempts(req.Context, p.subject, p.address)
}
