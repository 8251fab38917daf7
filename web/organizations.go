package web

import (
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
	orgpage "purser/views/page/org"
)

func (s *Site) organizations(req *request) (response, error) {
	return show(orgpage.OrganizationsPage(orgpage.Organizations{Frame: req.frame("Organizations", ""), MayCreate: s.newOrganizations})), nil
}

// mayCreateOrganizations refuses on a server where only the operator creates
// organizations.
func (s *Site) mayCreateOrganizations(req *request) error {
	if s.newOrganizations {
		return nil
	}
	req.logAccount("access refused", req.user.ID, "route", "/o/new", "needs", "PURSER_NEW_ORGANIZATIONS")
	return fault.Newf(fault.PermissionDenied, "Only the operator of this server can create organizations.")
}

func (s *Site) newOrganizationPage(req *request) (response, error) {
	if err := s.mayCreateOrganizations(req); err != nil {
		return response{}, err
	}
	return show(orgpage.OrganizationNewPage(orgpage.OrganizationNew{Frame: req.frame("New organization", "")})), nil
}

func (s *Site) createOrganization(req *request) (response, error) {
	if err := s.mayCreateOrganizations(req); err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	org, err := tenancy.NewOrganization(ids.New(), f.text("name"), s.now())
	if err := f.check("name", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		return invalid(orgpage.OrganizationNewPage(orgpage.OrganizationNew{Draft: f.draft("name"), Frame: req.frame("New organization", "")})), nil
	}
	if org, err = req.userStore().CreateOrganization(req.context, org, req.actor()); err != nil {
		return response{}, err
	}
	return req.done(pathOf([]string{"o", org.Slug}), "Organization created.")
}

func (s *Site) organizationPage(req *request) (response, error) {
	o := orgpage.Organization{Frame: req.frame(req.org.Name, "applications"), SuggestFactor: ownsLiveWithoutFactor(req)}
	if req.may(tenancy.AppsWrite) {
		o.NewHref = req.orgPath("a", "new")
	}
	for _, app := range req.apps {
		card := orgpage.ApplicationCard{Application: req.place(app)}
		if req.may(tenancy.WalletsRead) {
			tenant := s.store.App(app.Scope())
			day, err := s.store.Reports(app.Scope()).DayStats(req.context, s.now())
			if err != nil {
				return response{}, err
			}
			if card.Ahead, err = tenant.ClockOffset(req.context); err != nil {
				return response{}, err
			}
			card.Uses, card.Denials, card.SyncErrors = component.CountText(uint64(day.Uses)), component.CountText(uint64(day.Denials)), component.CountText(uint64(day.SyncErrors))
		}
		o.Cards = append(o.Cards, card)
	}
	return show(orgpage.OrganizationPage(o)), nil
}

func (s *Site) newApplicationPage(req *request) (response, error) {
	return show(orgpage.ApplicationNewPage(orgpage.ApplicationNew{Frame: req.frame("New application", "applications"), Action: req.orgPath("a", "new")})), nil
}

func (s *Site) createApplication(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	mode := f.text("mode")
	if mode != "live" && mode != "development" {
		f.fail("mode", "Select an environment.")
	}
	app, err := tenancy.NewApplication(ids.New(), req.org, f.text("name"), mode == "live", s.now())
	if err := f.check("name", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		return invalid(orgpage.ApplicationNewPage(orgpage.ApplicationNew{
			Draft: f.draft("name", "mode"), Frame: req.frame("New application", "applications"), Action: req.orgPath("a", "new"),
		})), nil
	}
	if app, err = req.organization().CreateApplication(req.context, app); err != nil {
		return response{}, err
	}
	return req.done(req.orgPath("a", app.Slug, "quickstart"), "Application created.")
}

func (s *Site) organizationSettingsPage(req *request) (response, error) {
	return show(orgpage.OrganizationSettingsPage(organizationSettings(req, component.Draft{Values: map[string]string{"name": req.org.Name}}))), nil
}

func organizationSettings(req *request, d component.Draft) orgpage.OrganizationSettings {
	return orgpage.OrganizationSettings{
		Draft: d, Frame: req.frame("Settings", "organization"), Action: req.orgPath("settings"), Slug: req.org.Slug, ID: req.org.ID.Format(ids.Organization),
		FactorAction: req.orgPath("settings", "second-factor"), RequiresFactor: req.org.RequiresFactor, RequiredHere: req.site.requireFactor, HasFactor: req.hasFactor,
	}
}

// ownsLiveWithoutFactor reports an owner of a live application without an authenticator.
func ownsLiveWithoutFactor(req *request) bool {
	return !req.hasFactor && req.member.Role == tenancy.Owner && slices.ContainsFunc(req.apps, func(a tenancy.Application) bool { return a.Live })
}

// setFactorRequirement turns the requirement on or off. Only a member with an
// authenticator may turn it on, so that at least one member can turn it off.
func (s *Site) setFactorRequirement(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	required := f.text("required") == "yes"
	if required && !req.hasFactor {
		return req.redirectVia("/account/factor"), nil
	}
	if err := req.organization().RequireFactor(req.context, required); err != nil {
		return response{}, err
	}
	if required {
		return req.done(req.orgPath("settings"), "Two-factor is now required for members.")
	}
	return req.done(req.orgPath("settings"), "Two-factor is now optional for members.")
}

func (s *Site) renameOrganization(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	renamed, err := req.org.Rename(f.text("name"))
	if err := f.check("name", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		return invalid(orgpage.OrganizationSettingsPage(organizationSettings(req, f.draft("name")))), nil
	}
	if err := req.organization().Rename(req.context, renamed.Name); err != nil {
		return response{}, err
	}
	return req.done(req.orgPath("settings"), "Name saved.")
}
