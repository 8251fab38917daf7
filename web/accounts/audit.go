package accounts

import (
	"maps"
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
	// The most entries of one export, and the text of before and after at which no more are
	// read: little enough to be built in memory. Those of a plan have up to 64 KB each. Older
	// ones follow with before.
	maxAuditExport = 10_000
	maxAuditText   = 16 << 20
	// auditPortion is how many entries are read at once.
	auditPortion = 250
	// The most reads of one export that find fewer: a filter that matches few entries must
	// not search without end.
	maxAuditReads = 10
)

// auditNouns are the prefixes of actions that the page can filter by.
var auditNouns = []string{
	"account", "alert", "alert-rule", "application", "balance", "catalog", "checkout", "credit", "deposit", "event", "events", "feature", "invitation", "job", "key", "member", "notification",
	"organization", "payment", "plan", "provider", "subscription", "topup", "wallet", "webhook",
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
	} else if noun != "" {
		p.Action = "." // as no action begins
	}
	if number, err := strconv.ParseInt(req.Query("before"), 10, 64); err == nil && number > 0 {
		p.Before = number
	}
	return p
}

func (s *Pages) auditLog(req *site.Request) (site.Response, error) {
	p := auditFilter(req)
	p.Limit = auditPageSize
	entries, next, err := req.Organization().AuditLog(req.Context, p)
	if err != nil {
		return site.Response{}, err
	}
	roster, err := req.Organization().Roster(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	list := req.Listing(req.OrgPath("audit"), "action", "actor")
	view := orgpage.AuditLog{
		Frame: req.Frame("Audit log", "audit"), Path: list.Path, Action: req.Query("action"), Actor: req.Query("actor"), Export: list.File(),
		Actors: []component.Option{{Value: "", Text: "Everyone"}, {Value: auditKeys, Text: "API keys"}}, Actions: []component.Option{{Value: "", Text: "Everything"}},
	}
	for _, member := range roster {
		view.Actors = append(view.Actors, component.Option{Value: member.Email, Text: member.Name})
	}
	for _, noun := range auditNouns {
		view.Actions = append(view.Actions, component.Option{Value: noun, Text: noun})
	}
	for _, e := range entries {
		view.Entries = append(view.Entries, auditEntry(req, e))
	}
	view.Unfinished = next != 0 && len(entries) < p.Limit
	view.Pages = list.Pages("before", p.Before > 0, site.OlderSeq(next))
	return site.Show(orgpage.AuditLogPage(view)), nil
}

func auditEntry(req *site.Request, e audit.Entry) orgpage.AuditEntry {
	entry := orgpage.AuditEntry{Number: e.Number, At: e.At, Actor: e.Name, Address: e.Address, Action: e.Action, Target: e.Target, Application: applicationName(req, e.AppID)}
	before, after := e.Fields()
	named := audit.Fields{}
	maps.Copy(named, before)
	maps.Copy(named, after)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if before[name] != after[name] {
			entry.Changes = append(entry.Changes, orgpage.FieldChange{Name: name, Before: before[name], After: after[name]})
		}
	}
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
	name := req.Org.Slug + "-audit"
	if p.Before > 0 {
		name += "-before-" + strconv.FormatInt(p.Before, 10)
	}
	var entries []audit.Entry
	for searched, text := 0, 0; searched < maxAuditReads && len(entries) < maxAuditExport && text < maxAuditText; {
		p.Limit = min(auditPortion, maxAuditExport-len(entries))
		found, next, err := req.Organization().AuditLog(req.Context, p)
		if err != nil {
			return site.Response{}, err
		}
		if len(found) < p.Limit {
			searched++
		}
		for i, e := range found {
			text += len(e.Before) + len(e.After)
			entries = append(entries, e)
			if text >= maxAuditText && i < len(found)-1 {
				next = e.Number
				break
			}
		}
		if p.Before = next; next == 0 {
			break
		}
	}
	name += site.Part("newest", len(entries), p.Before != 0)
	if p.Before != 0 && len(entries) < maxAuditExport {
		name += "-searched-to-" + strconv.FormatInt(p.Before, 10)
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
	return site.CSVFile(name+".csv", []string{"number", "time", "actor", "address", "request", "action", "target", "application", "before", "after"}, rows), nil
}
