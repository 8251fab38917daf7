package web

import (
	"slices"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) organizations(v *visit) (answer, error) {
	return show(page.OrganizationsPage(page.Organizations{Frame: v.frame("Organizations", ""), MayCreate: s.newOrganizations})), nil
}

// mayCreateOrganizations refuses a server on which only the operator creates them.
func (s *Site) mayCreateOrganizations(v *visit) error {
	if s.newOrganizations {
		return nil
	}
	v.logAccount("access refused", v.user.ID, "route", "/o/new", "needs", "PURSER_NEW_ORGANIZATIONS")
	return fault.Newf(fault.PermissionDenied, "Only the operator of this server can create organizations.")
}

func (s *Site) newOrganizationPage(v *visit) (answer, error) {
	if err := s.mayCreateOrganizations(v); err != nil {
		return answer{}, err
	}
	return show(page.OrganizationNewPage(page.OrganizationNew{Frame: v.frame("New organization", "")})), nil
}

func (s *Site) createOrganization(v *visit) (answer, error) {
	if err := s.mayCreateOrganizations(v); err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	org, err := tenancy.NewOrganization(ids.New(), f.text("name"), s.now())
	if err := f.check("name", err); err != nil {
		return answer{}, err
	}
	if !f.ok() {
		return invalid(page.OrganizationNewPage(page.OrganizationNew{Draft: f.draft("name"), Frame: v.frame("New organization", "")})), nil
	}
	if org, err = v.person().CreateOrganization(v.context, org, v.actor()); err != nil {
		return answer{}, err
	}
	return v.done(pathOf([]string{"o", org.Slug}), "Organization created.")
}

func (s *Site) organizationPage(v *visit) (answer, error) {
	o := page.Organization{Frame: v.frame(v.org.Name, "applications"), SuggestFactor: v.ownsLiveWithoutFactor()}
	if v.may(tenancy.AppsWrite) {
		o.NewHref = v.orgPath("a", "new")
	}
	for _, app := range v.apps {
		card := page.ApplicationCard{Application: v.place(app)}
		if v.may(tenancy.WalletsRead) {
			tenant := s.store.App(app.Scope())
			day, err := tenant.DayStats(v.context, s.now())
			if err != nil {
				return answer{}, err
			}
			if card.Ahead, err = tenant.ClockOffset(v.context); err != nil {
				return answer{}, err
			}
			card.Uses, card.Denials, card.SyncErrors = component.CountText(uint64(day.Uses)), component.CountText(uint64(day.Denials)), component.CountText(uint64(day.SyncErrors))
		}
		o.Cards = append(o.Cards, card)
	}
	return show(page.OrganizationPage(o)), nil
}

func (s *Site) newApplicationPage(v *visit) (answer, error) {
	return show(page.ApplicationNewPage(page.ApplicationNew{Frame: v.frame("New application", "applications"), Action: v.orgPath("a", "new")})), nil
}

func (s *Site) createApplication(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	mode := f.text("mode")
	if mode != "live" && mode != "development" {
		f.fail("mode", "Select an environment.")
	}
	app, err := tenancy.NewApplication(ids.New(), v.org, f.text("name"), mode == "live", s.now())
	if err := f.check("name", err); err != nil {
		return answer{}, err
	}
	if !f.ok() {
		return invalid(page.ApplicationNewPage(page.ApplicationNew{
			Draft: f.draft("name", "mode"), Frame: v.frame("New application", "applications"), Action: v.orgPath("a", "new"),
		})), nil
	}
	if app, err = v.organization().CreateApplication(v.context, app); err != nil {
		return answer{}, err
	}
	return v.done(v.orgPath("a", app.Slug, "quickstart"), "Application created.")
}

func (s *Site) organizationSettingsPage(v *visit) (answer, error) {
	return show(page.OrganizationSettingsPage(v.organizationSettings(page.Draft{Values: map[string]string{"name": v.org.Name}}))), nil
}

func (v *visit) organizationSettings(d page.Draft) page.OrganizationSettings {
	return page.OrganizationSettings{
		Draft: d, Frame: v.frame("Settings", "organization"), Action: v.orgPath("settings"), Slug: v.org.Slug, ID: v.org.ID.Format(ids.Organization),
		FactorAction: v.orgPath("settings", "second-factor"), RequiresFactor: v.org.RequiresFactor, RequiredHere: v.site.requireFactor, HasFactor: v.hasFactor,
	}
}

// ownsLiveWithoutFactor reports an owner whose password alone opens a live application.
func (v *visit) ownsLiveWithoutFactor() bool {
	return !v.hasFactor && v.member.Role == tenancy.Owner && slices.ContainsFunc(v.apps, func(a tenancy.Application) bool { return a.Live })
}

// setFactorRequirement turns the requirement on or off. Only a member with an authenticator
// turns it on, so that the organization keeps one who can turn it off.
func (s *Site) setFactorRequirement(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	required := f.text("required") == "yes"
	if required && !v.hasFactor {
		return v.lead("/account/factor"), nil
	}
	if err := v.organization().RequireFactor(v.context, required); err != nil {
		return answer{}, err
	}
	if required {
		return v.done(v.orgPath("settings"), "Two-factor is now required for members.")
	}
	return v.done(v.orgPath("settings"), "Two-factor is now optional for members.")
}

func (s *Site) renameOrganization(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	renamed, err := v.org.Rename(f.text("name"))
	if err := f.check("name", err); err != nil {
		return answer{}, err
	}
	if !f.ok() {
		return invalid(page.OrganizationSettingsPage(v.organizationSettings(f.draft("name")))), nil
	}
	if err := v.organization().Rename(v.context, renamed.Name); err != nil {
		return answer{}, err
	}
	return v.done(v.orgPath("settings"), "Name saved.")
}
