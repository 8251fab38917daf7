package engine

import "fmt"

type Schedule struct {
	Head
	Customer     string
	Subscription string // empty after release
	Released     string // the released subscription
	Status       string
	Phases       []Phase
	EndBehavior  string
	Metadata     map[string]string
	ReleasedAt   Time
	CanceledAt   Time
}

// Phase is a phase of a schedule: a period of time with its items.
type Phase struct {
	Start, End Time
	Items      []PhaseItem
	Proration  string
	Anchors    bool // billing_cycle_anchor: phase_start
}

type PhaseItem struct {
	Price    string
	Quantity int64
}

const released = "released"

// CreateSchedule creates a schedule from a subscription. Its one phase has the current
// items and period.
func (a *Account) CreateSchedule(env Env, subscription string) (*Schedule, error) {
	s, err := find(a.Subscriptions, "subscription", "from_subscription", subscription)
	if err != nil {
		return nil, err
	}
	switch {
	case s.ended():
		return nil, invalid("from_subscription", "You cannot create a subscription schedule from a subscription that is %s.", s.Status)
	case s.Schedule != "":
		return nil, invalid("from_subscription", "You cannot migrate a subscription that is already attached to a schedule: %s", s.Schedule)
	case s.CancelAt != 0 || s.CancelAtPeriodEnd:
		return nil, invalid("from_subscription", "You cannot migrate a subscription that is set to cancel.")
	}
	head := a.newHead(env, "sub_sched_")
	phase := Phase{Start: s.PeriodStart, End: s.PeriodEnd, Proration: "create_prorations"}
	for _, item := range s.Items {
		phase.Items = append(phase.Items, PhaseItem{Price: item.Price, Quantity: item.Quantity})
	}
	schedule := &Schedule{Head: head, Customer: s.Customer, Subscription: s.ID, Status: active, Phases: []Phase{phase}, EndBehavior: "release"}
	a.Schedules.Put(schedule)
	s.Schedule = schedule.ID
	a.emit(env, "subscription_schedule.created", schedule)
	return schedule, nil
}

// ScheduleChange holds the parameters of UpdateSchedule. Phases replace all existing
// ones.
type ScheduleChange struct {
	Phases      []NewPhase
	EndBehavior string
	Metadata    map[string]string
}

// NewPhase is a phase parameter, before its dates are computed.
type NewPhase struct {
	Start, End *Time
	Iterations *int64
	Items      []ItemChange
	Proration  string
	Anchors    bool
}

const (
	maxPhases     = 10
	maxIterations = 120
)

// UpdateSchedule sets the future phases. The current one must be sent unchanged.
func (a *Account) UpdateSchedule(env Env, id string, p ScheduleChange) (*Schedule, error) {
	schedule, err := Get(a.Schedules, "subscription schedule", id)
	if err != nil {
		return nil, err
	}
	if schedule.Status != active {
		return nil, invalid("", "You cannot update a subscription schedule that is currently in the `%s` status. It must be in `not_started` or `active` status.", schedule.Status)
	}
	was := a.Render(schedule)
	if p.Phases != nil {
		if schedule.Phases, err = a.planPhases(env, schedule, p.Phases); err != nil {
			return nil, err
		}
	}
	if p.EndBehavior != "" {
		schedule.EndBehavior = p.EndBehavior
	}
	if err := mergeMetadata(&schedule.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	a.emitChange(env, "subscription_schedule.updated", was, schedule)
	return schedule, nil
}

// planPhases computes the dates of phases. A phase starts where the previous one ends,
// and ends with a period of its own prices: the sandbox changes phases at renewals only.
func (a *Account) planPhases(env Env, schedule *Schedule, want []NewPhase) ([]Phase, error) {
	if len(want) > maxPhases {
		return nil, invalid("phases", "A schedule can have at most %d phases.", maxPhases)
	}
	s := a.Subscriptions.Get(schedule.Subscription)
	current := schedule.phaseAt(env.Now)
	var phases []Phase
	for n, p := range want {
		param := fmt.Sprintf("phases[%d]", n)
		items, err := a.phaseItems(env, param, p.Items)
		if err != nil {
			return nil, err
		}
		phase := Phase{Items: items, Proration: p.Proration, Anchors: p.Anchors}
		if n == 0 {
			if p.Start == nil || *p.Start != current.Start {
				return nil, invalid(param+"[start_date]", "The start date of the current phase cannot be changed: it is %d.", current.Start)
			}
			phase.Start, phase.End = current.Start, current.End
			if p.End != nil && *p.End == s.PeriodEnd {
				phase.End = s.PeriodEnd
			}
		} else {
			phase.Start = phases[n-1].End
			if p.Start != nil && *p.Start != phase.Start {
				return nil, invalid(param+"[start_date]", "A phase must start when the one before it ends: at %d.", phase.Start)
			}
			phase.End = a.phaseEnd(s, phase, p.Iterations)
		}
		if p.End != nil && *p.End != phase.End {
			return nil, invalid(param+"[end_date]", "The sandbox ends a phase with a billing period: here at %d.", phase.End)
		}
		phases = append(phases, phase)
	}
	if len(phases) == 0 {
		return nil, missingParam("phases")
	}
	return phases, nil
}

func (a *Account) phaseItems(env Env, param string, want []ItemChange) ([]PhaseItem, error) {
	if len(want) == 0 {
		return nil, missingParam(param + "[items]")
	}
	items, err := a.changeItems(env, nil, want)
	if err != nil {
		return nil, err
	}
	var planned []PhaseItem
	for _, item := range items {
		planned = append(planned, PhaseItem{Price: item.Price, Quantity: item.Quantity})
	}
	return planned, nil
}

// phaseEnd is the end of a later phase: after the given iterations of its interval.
func (a *Account) phaseEnd(s *Subscription, phase Phase, iterations *int64) Time {
	n := int64(1)
	set(&n, iterations)
	interval := a.Prices.Get(phase.Items[0].Price).Interval
	anchor := s.Anchor
	if phase.Anchors || interval != a.interval(s.Items) {
		anchor = phase.Start
	}
	end := phase.Start
	for range min(max(n, 1), maxIterations) {
		end = interval.following(anchor, end)
	}
	return end
}

// ReleaseSchedule releases the subscription, which continues unchanged.
func (a *Account) ReleaseSchedule(env Env, id string) (*Schedule, error) {
	schedule, err := Get(a.Schedules, "subscription schedule", id)
	if err != nil {
		return nil, err
	}
	if schedule.Status != active {
		return nil, invalid("", "You cannot release a subscription schedule that is currently in the `%s` status. It must be in `not_started` or `active` status.", schedule.Status)
	}
	s := a.Subscriptions.Get(schedule.Subscription)
	was := a.Render(s)
	a.release(env, s, schedule)
	a.emitChange(env, subscriptionUpdated, was, s)
	return schedule, nil
}

func (a *Account) release(env Env, s *Subscription, schedule *Schedule) {
	schedule.Status, schedule.ReleasedAt = released, env.Now
	schedule.Released, schedule.Subscription = s.ID, ""
	s.Schedule = ""
	a.emit(env, "subscription_schedule.released", schedule)
}

// phaseAt is the phase that contains t, or the last one.
func (c *Schedule) phaseAt(t Time) Phase {
	for _, phase := range c.Phases {
		if t < phase.End {
			return phase
		}
	}
	return c.Phases[len(c.Phases)-1]
}

// enterNextPhase moves the subscription to the phase that starts as its period ends.
// It reports whether the subscription continues.
func (a *Account) enterNextPhase(env Env, s *Subscription) bool {
	schedule := a.Schedules.Get(s.Schedule)
	if schedule == nil {
		return true
	}
	if last := schedule.Phases[len(schedule.Phases)-1]; last.End <= env.Now {
		if schedule.EndBehavior == "cancel" {
			return false
		}
		a.release(env, s, schedule)
		return true
	}
	phase := schedule.phaseAt(env.Now)
	if phase.Start != s.PeriodEnd {
		return true
	}
	if s.Pending != nil {
		a.dropPending(env, s)
	}
	items := make([]Item, 0, len(phase.Items))
	for _, item := range phase.Items {
		items = append(items, Item{ID: env.token("si_", idLength), Price: item.Price, Quantity: item.Quantity, Created: env.Now})
	}
	if phase.Anchors || a.interval(items) != a.interval(s.Items) {
		s.Anchor = phase.Start
	}
	s.Items = items
	a.emit(env, "subscription_schedule.updated", schedule)
	return true
}
