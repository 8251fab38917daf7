package web

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"purser/ids"
	"purser/store"
	"purser/tenancy/audit"
	"purser/views/component"
	"purser/views/page"
)

const (
	auditPageSize = 50
	// The most that one file takes: more than people can read, and little enough to
	// be made in memory.
	maxAuditExport = 10_000
)

// auditNouns are what entries are about: the beginnings of their actions.
var auditNouns = []string{
	"account", "alert", "application", "balance", "credit", "deposit", "feature", "invitation", "job", "key", "member", "organization", "plan", "provider", "settings", "subscription", "wallet",
}

// auditKeys is how the page's filter says: every API key. What a query holds is trimmed.
const auditKeys = "keys"

func (v *visit) auditFilter() store.AuditPage {
	p := store.AuditPage{Actor: v.query("actor")}
	if p.Actor == auditKeys {
		p.Actor = audit.Keys
	}
	if noun := v.query("action"); slices.Contains(auditNouns, noun) {
		p.Action = noun + "."
	}
	if number, err := strconv.ParseInt(v.query("before"), 10, 64); err == nil && number > 0 {
		p.Before = number
	}
	return p
}

func (s *Site) auditLog(v *visit) (answer, error) {
	p := v.auditFilter()
	p.Limit = auditPageSize
	entries, more, err := v.organization().AuditLog(v.context, p)
	if err != nil {
		return answer{}, err
	}
	roster, err := v.organization().Roster(v.context)
	if err != nil {
		return answer{}, err
	}
	path, filter := v.orgPath("audit"), url.Values{}
	view := page.AuditLog{
		Frame: v.frame("Audit log", "audit"), Path: path, Action: v.query("action"), Actor: v.query("actor"),
		Actors: []component.Option{{Value: "", Text: "Everyone"}, {Value: auditKeys, Text: "API keys"}}, Actions: []component.Option{{Value: "", Text: "Everything"}},
	}
	for _, member := range roster {
		view.Actors = append(view.Actors, component.Option{Value: member.Email, Text: member.Name})
	}
	for _, noun := range auditNouns {
		view.Actions = append(view.Actions, component.Option{Value: noun, Text: noun})
	}
	for _, name := range []string{"action", "actor"} {
		if value := v.query(name); value != "" {
			filter.Set(name, value)
		}
	}
	view.Export = v.orgPath("audit.csv") + "?" + filter.Encode()
	if p.Before > 0 {
		view.Pages.Newer = path + "?" + filter.Encode()
	}
	for _, e := range entries {
		view.Entries = append(view.Entries, v.auditEntry(e))
	}
	if more {
		filter.Set("before", strconv.FormatInt(entries[len(entries)-1].Number, 10))
		view.Pages.Older = path + "?" + filter.Encode()
	}
	return show(page.AuditLogPage(view)), nil
}

func (v *visit) auditEntry(e audit.Entry) page.AuditEntry {
	entry := page.AuditEntry{Number: e.Number, At: e.At, Actor: e.Name, Address: e.Address, Action: e.Action, Target: e.Target, Application: v.nameOf(e.AppID)}
	before, after := e.Fields()
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for name := range names {
		if before[name] != after[name] {
			entry.Changes = append(entry.Changes, page.AuditChange{Name: name, Before: before[name], After: after[name]})
		}
	}
	slices.SortFunc(entry.Changes, func(a, b page.AuditChange) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return entry
}

func (v *visit) nameOf(app ids.ID) string {
	for _, a := range v.apps {
		if a.ID == app {
			return a.Name
		}
	}
	return ""
}

func (s *Site) auditExport(v *visit) (answer, error) {
	p := v.auditFilter()
	p.Limit = maxAuditExport
	entries, _, err := v.organization().AuditLog(v.context, p)
	if err != nil {
		return answer{}, err
	}
	var rows [][]string
	for _, e := range entries {
		request := ""
		if !e.RequestID.IsZero() {
			request = e.RequestID.Format(ids.Request)
		}
		rows = append(rows, []string{
			strconv.FormatInt(e.Number, 10), time.UnixMilli(e.At).UTC().Format("2006-01-02T15:04:05.000Z"), e.Name, e.Address, request,
			e.Action, e.Target, v.nameOf(e.AppID), e.Before, e.After,
		})
	}
	return csvFile(v.org.Slug+"-audit.csv", []string{"number", "time", "actor", "address", "request", "action", "target", "application", "before", "after"}, rows), nil
}
