package accounts

import (
	"errors"

	"purser/fault"
	"purser/tenancy"
	"purser/views/component"
	orgpage "purser/views/page/org"
	"purser/web/site"
)

// refusalText is the message of a rule's refusal.
func refusalText(err error) string {
	var refusal *fault.Fault
	errors.As(err, &refusal)
	return refusal.Message
}

func (s *Pages) archivePage(req *site.Request) (site.Response, error) {
	view, err := archiveView(req)
	return site.Show(orgpage.ArchivePage(view)), err
}

// archiveView is the page that archives the application. Its preview follows the rule
// that the store applies.
func archiveView(req *site.Request) (orgpage.Archive, error) {
	view := orgpage.Archive{Settings: req.AppPath("settings"), Noun: "application", Name: req.App.Name, Action: req.AppPath("settings", "archive")}
	i, err := req.Tenant().Impact(req.Context, req.Site.Now())
	if err != nil {
		return view, err
	}
	if err := req.App.CheckArchive(i); err != nil {
		view.Blocked = refusalText(err)
	}
	renewals := "They have to end before a live application can be archived."
	if !req.App.Live {
		renewals = "They keep renewing in the sandbox, without real money."
	}
	view.Facts = []orgpage.ArchiveFact{
		{Name: "API keys", Text: countUpTo(i.Keys, "working key", "working keys") + ". Every request is refused with 401 until you restore the application. Then the same keys work again, except those that you revoke meanwhile."},
		{Name: "Wallets", Text: countUpTo(i.Wallets, "wallet", "wallets") + ". Balances, journals, events and all pages stay readable."},
		{Name: "Paid subscriptions", Text: countUpTo(i.PaidSubscriptions, "subscription", "subscriptions") + ". " + renewals},
		{Name: "Free subscriptions", Text: countUpTo(i.FreeSubscriptions, "subscription", "subscriptions") + ". They stay as they are."},
		{Name: "Open payments", Text: countUpTo(i.OpenPayments, "open checkout, payment or change", "open checkouts, payments and changes") + "."},
		{Name: "Background jobs", Text: "They finish: webhooks that are due are delivered, and balances are still verified."},
	}
	view.Frame = req.Frame("Archive application", "settings")
	return view, nil
}

// countUpTo counts in words, up to where the store counts.
func countUpTo(n int64, one, many string) string {
	if n > tenancy.ImpactLimit {
		return "More than " + component.Counted(tenancy.ImpactLimit, one, many)
	}
	return component.Counted(n, one, many)
}

// archive archives the application after its name was typed.
func (s *Pages) archive(req *site.Request) (site.Response, error) {
	return archiveForm(req, req.App.Name, func() error { return req.Tenant().Archive(req.Context, req.App, req.Site.Now()) },
		req.OrgPath(), func() (orgpage.Archive, error) { return archiveView(req) })
}

// archiveForm checks the name that was typed and archives.
func archiveForm(req *site.Request, name string, archive func() error, next string, again func() (orgpage.Archive, error)) (site.Response, error) {
	f := req.Form
	if !f.Confirms("confirm", name) {
		f.Fail("confirm", "The name doesn't match. Enter it exactly as shown.")
	} else {
		f.Check("", archive())
	}
	if f.OK() {
		return req.Done(next, name+" is archived. Find it under Archived.")
	}
	view, err := again()
	view.Problems = f.Problems
	return site.Invalid(orgpage.ArchivePage(view)), err
}

func (s *Pages) restore(req *site.Request) (site.Response, error) {
	if err := req.Tenant().Restore(req.Context); err != nil {
		return site.Response{}, err
	}
	s.restored(req.App.ID)
	return req.Done(req.AppPath(), "Application restored. Its API keys work again.")
}

func (s *Pages) archiveOrganizationPage(req *site.Request) (site.Response, error) {
	return site.Show(orgpage.ArchivePage(archiveOrganizationView(req))), nil
}

func archiveOrganizationView(req *site.Request) orgpage.Archive {
	var active int64
	for _, app := range req.Apps {
		if !app.IsArchived() {
			active++
		}
	}
	view := orgpage.Archive{
		Frame: req.Frame("Archive organization", "organization"), Settings: req.OrgPath("settings"), Noun: "organization", Name: req.Org.Name,
		Action: req.OrgPath("settings", "archive"), Facts: []orgpage.ArchiveFact{
			{Name: "Applications", Text: component.Counted(active, "active application", "active applications") + ". All applications have to be archived first."},
			{Name: "Members", Text: "They can still sign in and read everything. New members can't be invited; members can leave and be removed."},
			{Name: "Lists", Text: "The organization is hidden behind the filter Archived."},
		},
	}
	if err := req.Org.CheckArchive(active); err != nil {
		view.Blocked = refusalText(err)
	}
	return view
}

func (s *Pages) archiveOrganization(req *site.Request) (site.Response, error) {
	return archiveForm(req, req.Org.Name, func() error { return req.Organization().Archive(req.Context, req.Site.Now()) },
		"/o", func() (orgpage.Archive, error) { return archiveOrganizationView(req), nil })
}

func (s *Pages) restoreOrganization(req *site.Request) (site.Response, error) {
	if err := req.Organization().Restore(req.Context); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.OrgPath(), "Organization restored. Its applications stay archived until you restore them.")
}
