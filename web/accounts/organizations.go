package accounts

import (
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
	orgpage "purser/views/page/org"
	"purser/web/site"
)

func (s *Pages) organizations(req *site.Request) (site.Response, error) {
	view := orgpage.Organizations{Frame: req.Frame("Organizations", ""), MayCreate: s.newOrganizations, Shown: req.ArchiveFilter("/o")}
	for _, org := range req.Orgs {
		if view.Shown.Keep(org.IsArchived()) {
			view.List = append(view.List, layout.Place{Name: org.Name, Href: site.PathOf([]string{"o", org.Slug})})
		}
	}
	return site.Show(orgpage.OrganizationsPage(view)), nil
}

// mayCreateOrganizations refuses on a server where only the operator creates
// organizations.
func (s *Pages) mayCreateOrganizations(req *site.Request) error {
	if s.newOrganizations {
		return nil
	}
	req.LogRefusal("access refused", req.User.ID, "route", "/o/new", "needs", "PURSER_NEW_ORGANIZATIONS")
	return fault.Newf(fault.PermissionDenied, "Only the operator of this server can create organizations.")
}

func (s *Pages) newOrganizationPage(req *site.Request) (site.Response, error) {
	if err := s.mayCreateOrganizations(req); err != nil {
		return site.Response{}, err
	}
	return site.Show(orgpage.OrganizationNewPage(orgpage.OrganizationNew{Draft: site.WithNewID(ids.Organization), Frame: req.Frame("New organization", "")})), nil
}

func (s *Pages) createOrganization(req *site.Request) (site.Response, error) {
	if err := s.mayCreateOrganizations(req); err != nil {
		return site.Response{}, err
	}
	f := req.Form
	org, err := tenancy.NewOrganization(f.NewID(ids.Organization, req.User.ID, "name"), f.Text("name"), s.Now())
	f.Check("name", err)
	if f.OK() {
		org, err = req.UserStore().CreateOrganization(req.Context, org, req.Actor())
		f.Check("", err)
	}
	if !f.OK() {
		return site.Invalid(orgpage.OrganizationNewPage(orgpage.OrganizationNew{Draft: f.Draft("id", "name"), Frame: req.Frame("New organization", "")})), nil
	}
	return req.Done(site.PathOf([]string{"o", org.Slug}), "Organization created.")
}

func (s *Pages) organizationPage(req *site.Request) (site.Response, error) {
	o := orgpage.Organization{Frame: req.Frame(req.Org.Name, "applications"), SuggestFactor: ownsLiveWithoutFactor(req), Shown: req.ArchiveFilter(req.OrgPath())}
	if req.May(tenancy.AppsWrite) {
		o.NewHref = req.OrgPath("a", "new")
	}
	for _, app := range req.Apps {
		if !o.Shown.Keep(app.IsArchived()) {
			continue
		}
		card := orgpage.ApplicationCard{Application: req.Place(app)}
		card.Href = req.FirstPage(app)
		if req.May(tenancy.WalletsRead) {
			tenant := s.Store.App(app.Scope())
			day, err := s.Store.Reports(app.Scope()).DayStats(req.Context, s.Now())
			if err != nil {
				return site.Response{}, err
			}
			if card.Ahead, err = tenant.ClockOffset(req.Context); err != nil {
				return site.Response{}, err
			}
			card.Uses, card.Denials, card.SyncErrors = component.CountText(uint64(day.Uses)), component.CountText(uint64(day.Denials)), component.CountText(uint64(day.SyncErrors))
		}
		o.Cards = append(o.Cards, card)
	}
	return site.Show(orgpage.OrganizationPage(o)), nil
}

func (s *Pages) newApplicationPage(req *site.Request) (site.Response, error) {
	return site.Show(orgpage.ApplicationNewPage(orgpage.ApplicationNew{
		Draft: site.WithNewID(ids.Application), Frame: req.Frame("New application", "applications"), Action: req.OrgPath("a", "new"),
	})), nil
}

func (s *Pages) createApplication(req *site.Request) (site.Response, error) {
	f := req.Form
	mode := f.Text("mode")
	if mode != "live" && mode != "development" {
		f.Fail("mode", "Select an environment.")
	}
	app, err := tenancy.NewApplication(f.NewID(ids.Application, req.Org.ID, "name", "mode"), req.Org, f.Text("name"), mode == "live", s.Now())
	f.Check("name", err)
	if f.OK() {
		app, err = req.Organization().CreateApplication(req.Context, app)
		f.Check("", err)
	}
	if !f.OK() {
		return site.Invalid(orgpage.ApplicationNewPage(orgpage.ApplicationNew{
			Draft: f.Draft("id", "name", "mode"), Frame: req.Frame("New application", "applications"), Action: req.OrgPath("a", "new"),
		})), nil
	}
	return req.Done(req.OrgPath("a", app.Slug, "quickstart"), "Application created.")
}

func (s *Pages) organizationSettingsPage(req *site.Request) (site.Response, error) {
	return site.Show(orgpage.OrganizationSettingsPage(organizationSettings(req, component.Draft{Values: map[string]string{"name": req.Org.Name}}))), nil
}

// organizationSettings is the form on the stored version of the name.
func organizationSettings(req *site.Request, d component.Draft) orgpage.OrganizationSettings {
	view := orgpage.OrganizationSettings{
		Draft: d, Version: req.Org.Version(), Frame: req.Frame("Settings", "organization"), Action: req.OrgPath("settings"), Slug: req.Org.Slug, ID: req.Org.ID.Format(ids.Organization),
		FactorAction: req.OrgPath("settings", "second-factor"), RequiresFactor: req.Org.RequiresFactor, RequiredHere: req.Site.RequireFactor, HasFactor: req.HasFactor,
	}
	if !req.Org.IsArchived() {
		view.Archive = req.OrgPath("settings", "archive")
	}
	return view
}

// ownsLiveWithoutFactor reports an owner of a live application without an authenticator.
func ownsLiveWithoutFactor(req *site.Request) bool {
	return !req.HasFactor && req.Member.Role == tenancy.Owner && slices.ContainsFunc(req.Apps, func(a tenancy.Application) bool { return a.Live })
}

// setFactorRequirement turns the requirement on or off. Only a member with an
// authenticator may turn it on, so that at least one member can turn it off.
func (s *Pages) setFactorRequirement(req *site.Request) (site.Response, error) {
	f := req.Form
	required := f.Text("required") == "yes"
	if required && !req.HasFactor {
		return req.RedirectVia("/account/factor"), nil
	}
	if err := req.Organization().RequireFactor(req.Context, required); err != nil {
		return site.Response{}, err
	}
	if required {
		return req.Done(req.OrgPath("settings"), "Two-factor is now required for members.")
	}
	return req.Done(req.OrgPath("settings"), "Two-factor is now optional for members.")
}

func (s *Pages) renameOrganization(req *site.Request) (site.Response, error) {
	f := req.Form
	renamed, err := req.Org.Rename(f.Text("name"))
	f.Check("name", err)
	if !f.OK() {
		view := organizationSettings(req, f.Draft("name"))
		view.Version = f.Raw("version")
		return site.Invalid(orgpage.OrganizationSettingsPage(view)), nil
	}
	err = req.Organization().Rename(req.Context, renamed.Name, f.Raw("version"))
	if fault.Is(err, fault.RevisionConflict) {
		return organizationConflict(req)
	}
	if err != nil {
		return site.Response{}, err
	}
	return req.Done(req.OrgPath("settings"), "Name saved.")
}

// organizationConflict shows the submitted name beside the one stored in the meantime, with
// the current version.
func organizationConflict(req *site.Request) (site.Response, error) {
	stored, err := req.Organization().Organization(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	req.Org = stored
	view := organizationSettings(req, req.Form.Draft("name"))
	view.Clash = &component.Clash{Rows: []component.Difference{{Label: "Name", Yours: req.Form.Text("name"), Theirs: stored.Name}}}
	return site.Conflict(orgpage.OrganizationSettingsPage(view)), nil
}
