package engine

import "fmt"

// Schedule plans what a subscription turns into.
type Schedule struct {
	Head
	Customer     string
	Subscription string // empty once it is released
	Released     string // the subscription that it let go
	Status       string
	Phases       []Phase
	EndBehavior  string
	Metadata     map[string]string
	ReleasedAt   Time
	CanceledAt   Time
}

// Phase is a stretch of time with its items.
type Phase struct {
	Start, End Time
	Items      []PhaseItem
	Proration  string
	Anchors    bool // periods count from its start
}

// PhaseItem is one position of a phase.
type PhaseItem struct {
	Price    string
	Quantity int64
}

const released = "released"

// CreateSchedule puts a subscription under a schedule with one phase: what it is
// now, for the period that it has.
func (w *Account) CreateSchedule(m Clock, subscription string) (*Schedule, error) {
	s, err := find(w.Subscriptions, "subscription", "from_subscription", subscription)
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
	head := w.newHead(m, "sub_sched_")
	phase := Phase{Start: s.PeriodStart, End: s.PeriodEnd, Proration: "create_prorations"}
	for _, item := range s.Items {
		phase.Items = append(phase.Items, PhaseItem{Price: item.Price, Quantity: item.Quantity})
	}
	schedule := &Schedule{Head: head, Customer: s.Customer, Subscription: s.ID, Status: active, Phases: []Phase{phase}, EndBehavior: "release"}
	w.Schedules.Put(schedule)
	s.Schedule = schedule.ID
	w.emit(m, "subscription_schedule.created", schedule)
	return schedule, nil
}

// ScheduleChange is what a caller wants of a schedule. Phases replace all those
// that are there.
type ScheduleChange struct {
	Phases      []NewPhase
	EndBehavior string
	Metadata    map[string]string
}

// NewPhase is a phase before its dates are worked out.
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

// UpdateSchedule sets the phases to come. The running one must be sent along as
// it is.
func (w *Account) UpdateSchedule(m Clock, id string, p ScheduleChange) (*Schedule, error) {
	schedule, err := Get(w.Schedules, "subscription schedule", id)
	if err != nil {
		return nil, err
	}
	if schedule.Status != active {
		return nil, invalid("", "You cannot update a subscription schedule that is currently in the `%s` status. It must be in `not_started` or `active` status.", schedule.Status)
	}
	was := w.Render(schedule)
	if p.Phases != nil {
		if schedule.Phases, err = w.planPhases(m, schedule, p.Phases); err != nil {
			return nil, err
		}
	}
	if p.EndBehavior != "" {
		schedule.EndBehavior = p.EndBehavior
	}
	if err := merge(&schedule.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	w.emitChange(m, "subscription_schedule.updated", was, schedule)
	return schedule, nil
}

// planPhases works out the dates. A phase begins where the one before it ends,
// and it ends where a period of its own prices does: this sandbox turns a
// subscription at renewals only.
func (w *Account) planPhases(m Clock, schedule *Schedule, want []NewPhase) ([]Phase, error) {
	if len(want) > maxPhases {
		return nil, invalid("phases", "A schedule can have at most %d phases.", maxPhases)
	}
	s := w.Subscriptions.Get(schedule.Subscription)
	current := schedule.phaseAt(m.Now)
	var phases []Phase
	for n, p := range want {
		param := fmt.Sprintf("phases[%d]", n)
		items, err := w.phaseItems(m, param, p.Items)
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
			phase.End = w.phaseEnd(s, phase, p.Iterations)
		}
		if p.End != nil && *p.End != phase.End {
			return nil, invalid(param+"[end_date]", "The sandbox ends a phase with a billing period: here at %d.", phase.End)
		}
		phases = append(phases, phase)
	}
	if len(phases) == 0 {
		return nil, absent("phases")
	}
	return phases, nil
}

func (w *Account) phaseItems(m Clock, param string, want []ItemChange) ([]PhaseItem, error) {
	if len(want) == 0 {
		return nil, absent(param + "[items]")
	}
	items, err := w.changeItems(m, nil, want)
	if err != nil {
		return nil, err
	}
	var planned []PhaseItem
	for _, item := range items {
		planned = append(planned, PhaseItem{Price: item.Price, Quantity: item.Quantity})
	}
	return planned, nil
}

// phaseEnd is where a later phase ends: after so many periods of its prices.
func (w *Account) phaseEnd(s *Subscription, phase Phase, iterations *int64) Time {
	n := int64(1)
	set(&n, iterations)
	interval := w.Prices.Get(phase.Items[0].Price).Interval
	anchor := s.Anchor
	if phase.Anchors || interval != w.interval(s.Items) {
		anchor = phase.Start
	}
	end := phase.Start
	for range min(max(n, 1), maxIterations) {
		end = interval.following(anchor, end)
	}
	return end
}

// ReleaseSchedule lets the subscription go on as it is.
func (w *Account) ReleaseSchedule(m Clock, id string) (*Schedule, error) {
	schedule, err := Get(w.Schedules, "subscription schedule", id)
	if err != nil {
		return nil, err
	}
	if schedule.Status != active {
		return nil, invalid("", "You cannot release a subscription schedule that is currently in the `%s` status. It must be in `not_started` or `active` status.", schedule.Status)
	}
	s := w.Subscriptions.Get(schedule.Subscription)
	was := w.Render(s)
	w.release(m, s, schedule)
	w.emitChange(m, subscriptionUpdated, was, s)
	return schedule, nil
}

func (w *Account) release(m Clock, s *Subscription, schedule *Schedule) {
	schedule.Status, schedule.ReleasedAt = released, m.Now
	schedule.Released, schedule.Subscription = s.ID, ""
	s.Schedule = ""
	w.emit(m, "subscription_schedule.released", schedule)
}

// phaseAt is the phase in which the instant lies, or the last one.
func (c *Schedule) phaseAt(t Time) Phase {
	for _, phase := range c.Phases {
		if t < phase.End {
			return phase
		}
	}
	return c.Phases[len(c.Phases)-1]
}

// turnSchedule brings the subscription into the phase that begins as its period
// ends. It reports whether the subscription goes on.
func (w *Account) turnSchedule(m Clock, s *Subscription) bool {
	schedule := w.Schedules.Get(s.Schedule)
	if schedule == nil {
		return true
	}
	if last := schedule.Phases[len(schedule.Phases)-1]; last.End <= m.Now {
		if schedule.EndBehavior == "cancel" {
			return false
		}
		w.release(m, s, schedule)
		return true
	}
	phase := schedule.phaseAt(m.Now)
	if phase.Start != s.PeriodEnd {
		return true
	}
	if s.Pending != nil {
		w.dropPending(m, s)
	}
	items := make([]Item, 0, len(phase.Items))
	for _, item := range phase.Items {
		items = append(items, Item{ID: m.token("si_", idLength), Price: item.Price, Quantity: item.Quantity, Created: m.Now})
	}
	if phase.Anchors || w.interval(items) != w.interval(s.Items) {
		s.Anchor = phase.Start
	}
	s.Items = items
	w.emit(m, "subscription_schedule.updated", schedule)
	return true
}
