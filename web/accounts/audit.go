package accounts

import (
	"net/url"
	"slices"
	"strconv"

	"purser/ids"
	"purser/store/people"
	"purser/tenancy/audit"
	"purser/views/component"
	orgpage "purser/views/page/org"
	"purser/web/site"
)

const (
	auditPageSize = 50
	// The most entries of one export: little enough to be built in memory.
	maxAuditExport = 10_000
)

// auditNouns are the prefixes of actions that the page can filter by.
var auditNouns = []string{
	"account", "alert", "application", "balance", "credit", "deposit", "feature", "invitation", "job", "key", "member", "organization", "plan", "provider", "settings", "subscription", "wallet",
}

// auditKeys is the filter value for all API keys.
const auditKeys = "keys"

func auditFilter(req *site.Request) people.AuditPage {
	p := people.AuditPage{Actor: req.Query("actor")}
	if p.Actor == auditKeys {
		p.Actor = audit.Keys
	}
	if noun := req.Query("action"); slices.Contains(auditNouns, noun) {
		p.Action = noun + "."
	}
	if number, err := strconv.ParseInt(req.Query("before"), 10, 64); err == nil && number > 0 {
		p.Before = number
	}
	return p
}

func (s *Pages) auditLog(req *site.Request) (site.Response, error) {
	p := auditFilter(req)
	p.Limit = auditPageSize
	entries, more, err := req.Organization().AuditLog(req.Context, p)
	if err != nil {
		return site.Response{}, err
	}
	roster, err := req.Organization().Roster(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	path, filter := req.OrgPath("audit"), url.Values{}
	view := orgpage.AuditLog{
		Frame: req.Frame("Audit log", "audit"), Path: path, Action: req.Query("action"), Actor: req.Query("actor"),
		Actors: []component.Option{{Value: "", Text: "Everyone"}, {Value: auditKeys, Text: "API keys"}}, Actions: []component.Option{{Value: "", Text: "Everything"}},
	}
	for _, member := range roster {
		view.Actors = append(view.Actors, component.Option{Value: member.Email, Text: member.Name})
	}
	for _, noun := range auditNouns {
		view.Actions = append(view.Actions, component.Option{Value: noun, Text: noun})
	}
	for _, name := range []string{"action", "actor"} {
		if value := req.Query(name); value != "" {
			filter.Set(name, value)
		}
	}
	view.Export = req.OrgPath("audit.csv") + "?" + filter.Encode()
	if p.Before > 0 {
		view.Pages.Newer = path + "?" + filter.Encode()
	}
	for _, e := range entries {
		view.Entries = append(view.Entries, auditEntry(req, e))
	}
	if more {
		filter.Set("before", strconv.FormatInt(entries[len(entries)-1].Number, 10))
		view.Pages.Older = path + "?" + filter.Encode()
	}
	return site.Show(orgpage.AuditLogPage(view)), nil
}

func auditEntry(req *site.Request, e audit.Entry) orgpage.AuditEntry {
	entry := orgpage.AuditEntry{Number: e.Number, At: e.At, Actor: e.Name, Address: e.Address, Action: e.Action, Target: e.Target, Application: applicationName(req, e.AppID)}
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
			entry.Changes = append(entry.Changes, orgpage.FieldChange{Name: name, Before: before[name], After: after[name]})
		}
	}
	slices.SortFunc(entry.Changes, func(a, b orgpage.FieldChange) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return entry
}

func applicationName(req *site.Request, app ids.ID) string {
	for _, a := range req.Apps {
		if a.ID == app {
			return a.Name
		}
	}
	return ""
}

func (s *Pages) auditExport(req *site.Request) (site.Response, error) {
	p := auditFilter(req)
	p.Limit = maxAuditExport
	entries, _, err := req.Organization().AuditLog(req.Context, p)
	if err != nil {
		return site.Response{}, err
	}
	var rows [][]string
	for _, e := range entries {
		request := ""
		if !e.RequestID.IsZero() {
			request = e.RequestID.Format(ids.Request)
		}
		rows = append(rows, []string{
			strconv.FormatInt(e.Number, 10), site.Timestamp(e.At), e.Name, e.Address, request,
			e.Action, e.Target, applicationName(req, e.AppID), e.Before, e.After,
		})
	}
	return site.CSVFile(req.Org.Slug+"-audit.csv", []string{"number", "time", "actor", "address", "request", "action", "target", "application", "before", "after"}, rows), nil
}
