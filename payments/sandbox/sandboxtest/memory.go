package sandboxtest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"purser/ids"
	"purser/payments/sandbox/persist"
)

// Memory is sandbox.Accounts. The zero value is empty and ready.
type Memory struct {
	mu  sync.Mutex
	all map[ids.ID]*account
}

type account struct {
	mu   sync.Mutex
	head []byte
	rows map[string]persist.Row
	kept Kept
}

// Kept is the metadata of an account.
type Kept struct {
	ClockOffset int64
	WakeAt      int64
}

func (m *Memory) account(app ids.ID) *account {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[ids.ID]*account{}
	}
	if m.all[app] == nil {
		m.all[app] = &account{rows: map[string]persist.Row{}}
	}
	return m.all[app]
}

// Update is sandbox.Accounts.Update.
func (m *Memory) Update(_ context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	a := m.account(app)
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, err := change(a.session(want))
	if err != nil {
		return err
	}
	a.apply(stored)
	return nil
}

// View is sandbox.Accounts.View.
func (m *Memory) View(_ context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error {
	a := m.account(app)
	a.mu.Lock()
	defer a.mu.Unlock()
	return read(a.session(want))
}

// Find is sandbox.Accounts.Find.
func (m *Memory) Find(_ context.Context, app ids.ID, kind, name string, byAlias bool) (string, bool, error) {
	a := m.account(app)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !byAlias {
		_, found := a.rows[persist.Key(kind, name)]
		return persist.Key(kind, name), found, nil
	}
	for key, row := range a.rows {
		if row.Kind == kind && row.Alias == name {
			return key, true, nil
		}
	}
	return "", false, nil
}

// Kept returns the metadata of an account.
func (m *Memory) Kept(app ids.ID) Kept {
	a := m.account(app)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept
}

// Due is sandbox.Accounts.Due.
func (m *Memory) Due(_ context.Context, at int64, limit int) ([]ids.ID, error) {
	m.mu.Lock()
	apps := slices.Collect(maps.Keys(m.all))
	m.mu.Unlock()
	apps = slices.DeleteFunc(apps, func(app ids.ID) bool {
		wake := m.Kept(app).WakeAt
		return wake == 0 || wake > at
	})
	return apps[:min(len(apps), limit)], nil
}

func (a *account) session(want persist.Want) persist.Session {
	s := persist.Session{Head: a.head, Source: source{a}}
	s.Rows, _ = s.Source.Load(want.Keys)
	s.Timers, _ = s.Source.Earliest(want.Timers, math.MinInt64, 0, want.Limit)
	return s
}

func (a *account) apply(c persist.Change) {
	if c.Replace {
		clear(a.rows)
	}
	a.head, a.kept = c.Head, Kept{c.ClockOffset, c.WakeAt}
	for _, row := range c.Rows {
		a.rows[row.Key] = row
	}
	for _, key := range c.Deleted {
		delete(a.rows, key)
	}
	for _, p := range c.Prune {
		a.prune(p)
	}
}

func (a *account) prune(p persist.Prune) {
	needed := map[string]bool{}
	for _, row := range a.rows {
		if p.Unless != "" && row.Kind == p.Unless {
			needed[persist.Key(p.Kind, row.Parent)] = true
		}
	}
	for i, row := range a.list(func(r persist.Row) bool { return r.Kind == p.Kind }, newest) {
		if (row.Due < p.Before || i >= p.Keep) && !needed[row.Key] {
			delete(a.rows, row.Key)
		}
	}
}

func newest(a, b persist.Row) int { return cmp.Compare(b.Nth, a.Nth) }
func oldest(a, b persist.Row) int { return cmp.Compare(a.Nth, b.Nth) }
func earliest(a, b persist.Row) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Nth, b.Nth))
}

// list is the rows that match, in order.
func (a *account) list(match func(persist.Row) bool, order func(a, b persist.Row) int) (rows []persist.Row) {
	for _, row := range a.rows {
		if match(row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, order)
	return rows
}

// source is persist.Source over the rows of an account.
type source struct{ *account }

func (s source) Load(keys []string) (rows []persist.Row, err error) {
	seen := map[string]bool{}
	for len(keys) > 0 {
		key := keys[0]
		keys = keys[1:]
		row, found := s.rows[key]
		if !found || seen[key] {
			continue
		}
		seen[key] = true
		rows = append(rows, row)
		keys = slices.Concat(keys, row.Refs)
	}
	return rows, nil
}

func (s source) withRefs(rows []persist.Row) ([]persist.Row, error) {
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = row.Key
	}
	return s.Load(keys)
}

func value(row persist.Row, index persist.Index) string {
	switch index {
	case persist.ByCustomer:
		return row.Customer
	case persist.ByParent:
		return row.Parent
	case persist.ByAlias:
		return row.Alias
	case persist.ByLiveOf:
		return row.LiveOf
	}
	return ""
}

func (s source) Lookup(kind string, index persist.Index, values []string) ([]persist.Row, error) {
	return s.withRefs(s.list(func(r persist.Row) bool { return r.Kind == kind && slices.Contains(values, value(r, index)) }, oldest))
}

func (s source) Page(p persist.Page) ([]persist.Row, error) {
	order := newest
	if p.Oldest {
		order = oldest
	}
	rows := s.list(func(r persist.Row) bool {
		beyond := r.Nth < p.From
		if p.Oldest {
			beyond = r.Nth > p.From
		}
		return r.Kind == p.Kind && beyond && value(r, p.Index) == p.Value
	}, order)
	return s.withRefs(rows[:min(len(rows), p.Limit)])
}

func (s source) Earliest(kind string, afterDue, afterNth int64, limit int) ([]persist.Row, error) {
	after := persist.Row{Due: afterDue, Nth: afterNth}
	rows := s.list(func(r persist.Row) bool { return r.Kind == kind && earliest(r, after) > 0 }, earliest)
	return rows[:min(len(rows), limit)], nil
}

func (s source) Ready(kind string, due int64, limit int) ([]persist.Row, error) {
	rows := s.list(func(r persist.Row) bool { return r.Kind == kind && r.Due <= due }, oldest)
	return s.withRefs(rows[:min(len(rows), limit)])
}

func (s source) FirstDue(kind string, except []string) (due int64, found bool, err error) {
	rows := s.list(func(r persist.Row) bool { return r.Kind == kind && !slices.Contains(except, r.Key) }, earliest)
	if len(rows) == 0 {
		return 0, false, nil
	}
	return rows[0].Due, true, nil
}

func (s source) Everything() ([]persist.Row, error) {
	return s.list(func(persist.Row) bool { return true }, oldest), nil
}
