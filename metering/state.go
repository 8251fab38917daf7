package metering

import "purser/ids"

// State is a snapshot of what decides the usage of one wallet. It holds what Keys names
// for that usage; more is ignored, and what is missing counts as nonexistent.
type State struct {
	Now          int64
	Wallet       Wallet        // zero for an identity without one; only the balances in question are needed
	Subscription *Subscription // nil for none

	// Events are the records that already carry an event id. Event ids are unique
	// in the application, so the wallets of one batch share this map.
	Events map[string]*Event
	// Billed are the transactions that were charged for a period of deduplication.
	Billed map[BilledKey]ids.ID
	// Used counts what was used of a limit.
	Used map[CounterKey]int64
}

// BilledKey is what is charged once, within one wallet.
type BilledKey struct {
	FeatureID ids.ID
	EntityID  string
	Period    Period
}

// CounterKey is what is counted against a limit, within one wallet. The whole
// period is in it: a month and a billing period that start together are two.
type CounterKey struct {
	FeatureID ids.ID
	Period    Period
}

// Keys says what has to be loaded for usage, besides the event with its id and the
// balance of the feature's credit.
type Keys struct {
	Billed  BilledKey  // without a period when the feature does not deduplicate
	Counter CounterKey // without a period when nothing limits the feature

	// PeriodMissing is true when the feature deduplicates by a billing period and
	// there is none. Billed has no period then.
	PeriodMissing bool
}

// Keys depends on the time, the wallet's billing period and the subscription only, not
// on anything that is keyed.
func (s *State) Keys(usage Usage) Keys {
	keys, _, _ := s.keys(&usage)
	return keys
}

func (s *State) keys(usage *Usage) (keys Keys, limit Limit, limited bool) {
	at := usage.occurredAt(s.Now)
	if usage.Feature.Deduplication != DeduplicateNone {
		period, known := s.deduplicationPeriod(usage.Feature.Deduplication, at)
		keys.Billed = BilledKey{usage.Feature.ID, usage.EntityID, period}
		keys.PeriodMissing = !known
	}
	if s.Subscription != nil && s.Subscription.Status.InUse() {
		if limit, limited = s.Subscription.Terms.Limit(usage.Feature.ID); limited {
			keys.Counter = CounterKey{usage.Feature.ID, s.limitPeriod(limit.Period, at)}
		}
	}
	return keys, limit, limited
}

// deduplicationPeriod falls back to the subscription's period, also while the
// subscription is on hold: usage is then paid from the balance, and entities billed
// before the hold stay billed.
func (s *State) deduplicationPeriod(d Deduplication, at int64) (Period, bool) {
	switch {
	case d == DeduplicateDay:
		return DayOf(at), true
	case d == DeduplicateWeek:
		return WeekOf(at), true
	case d == DeduplicateMonth:
		return MonthOf(at), true
	case s.Wallet.BillingPeriod != nil:
		return s.Wallet.BillingPeriod.Containing(at), true
	case s.Subscription != nil && s.Subscription.Status.InUse():
		return s.Subscription.Period, true
	default:
		return Period{}, false
	}
}

func (s *State) limitPeriod(p LimitPeriod, at int64) Period {
	if p == LimitBilling {
		return s.Subscription.Period
	}
	return MonthOf(at)
}

// Apply updates the state with the decision, so that the next usage of a batch is
// decided against it. Balances change in place.
func (s *State) Apply(d Decision) {
	if !d.New {
		return
	}
	event := d.Event
	if event.EventID != "" {
		put(&s.Events, event.EventID, &event)
	}
	if d.Verdict != Accepted {
		return
	}
	s.Wallet.Charged = true
	s.Wallet.setBalance(d.After)
	if event.Allowance.Limited() {
		put(&s.Used, CounterKey{event.FeatureID, event.Allowance.Period}, event.UsedAfter())
	}
	if !event.Period.IsZero() {
		put(&s.Billed, BilledKey{event.FeatureID, event.EntityID, event.Period}, event.TransactionID)
	}
}

func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}
