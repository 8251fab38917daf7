package reports

import (
	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

const (
	// DenialsPerMinute is how many denials of an application one node stores per minute
	// in the long run, and DenialBurst how many at once. All are counted. This bounds the
	// table at 865,000 rows of an application in 30 days.
	DenialsPerMinute = 20
	DenialBurst      = 1_000
	// DenialRepeats is how many denials of the same identity, feature and reason are
	// stored per minute of the application's clock, so that a client that retries leaves
	// room for the others.
	DenialRepeats = 5
	// heldDenials is how many denials of an application a node buffers while the database
	// is down.
	heldDenials = 2 * DenialBurst

	minuteMillis   = 60_000
	denialInterval = minuteMillis / DenialsPerMinute
)

// denialLimits decide which denials are stored. Their size is bounded by the denials that
// they admit.
type denialLimits struct {
	minute  int64
	repeats map[repeatedDenial]int // stored since the minute began
	full    map[ids.ID]int64       // when an application's burst is available again, in milliseconds
}

type repeatedDenial struct {
	app, feature ids.ID
	identity     string
	reason       fault.Code
	minute       int64 // of the application's clock
}

func newDenialLimits() denialLimits {
	return denialLimits{repeats: make(map[repeatedDenial]int), full: make(map[ids.ID]int64)}
}

// admits counts a denial against the limits, by the real time in milliseconds.
func (l *denialLimits) admits(app ids.ID, d *Denial, now int64) bool {
	if minute := now / minuteMillis; minute != l.minute {
		l.minute = minute
		clear(l.repeats)
		for app, at := range l.full {
			if at <= now {
				delete(l.full, app)
			}
		}
	}
	same := repeatedDenial{app, d.Decision.Event.FeatureID, d.Identity, d.Decision.Code, d.At() / minuteMillis}
	if l.repeats[same] >= DenialRepeats {
		return false
	}
	full := max(l.full[app], now) + denialInterval
	if full > now+DenialBurst*denialInterval {
		return false
	}
	l.full[app] = full
	l.repeats[same]++
	return true
}

// RecordDenial keeps a denial for the list of denials, unless there were too many. It is
// written with the next flush.
func (s *Counters) RecordDenial(scope tenancy.Scope, d Denial) {
	now := s.db.Clock.Now()
	d.ID, d.recordedAt = ids.New(), now
	s.mu.Lock()
	defer s.mu.Unlock()
	app := s.forApp(scope)
	if app == nil || !s.denials.admits(scope.AppID, &d, now) {
		s.deniedDropped.Add(1)
		return
	}
	app.denied = append(app.denied, d)
}

// DroppedDenials is how many denials this node did not store.
func (s *Counters) DroppedDenials() int64 { return s.deniedDropped.Load() }
