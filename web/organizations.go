package web

import (
	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) organizations(v *visit) (answer, error) {
	return show(page.OrganizationsPage(page.Organizations{Frame: v.frame("Organizations", "")})), nil
}

func (s *Site) newOrganizationPage(v *visit) (answer, error) {
	return show(page.OrganizationNewPage(page.OrganizationNew{Frame: v.frame("New organization", "")})), nil
}

func (s *Site) createOrganization(v *visit) (answer, error) {
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
	if org, err = v.person().FoundOrganization(v.context, org, v.actor()); err != nil {
		return answer{}, err
	}
	return v.done(pathOf([]string{"o", org.Slug}), "The organization is there.")
}

func (s *Site) organizationPage(v *visit) (answer, error) {
	o := page.Organization{Frame: v.frame(v.org.Name, "applications")}
	if v.may(tenancy.AppsWrite) {
		o.NewHref = v.orgPath("a", "new")
	}
	for _, app := range v.apps {
		card := page.ApplicationCard{Application: v.place(app)}
		if v.may(tenancy.WalletsRead) {
			tenant := s.store.App(app.Scope())
			day, err := tenant.DayFigures(v.context, s.now())
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
		f.fail("mode", "Choose what the application is for.")
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
	return v.done(v.orgPath("a", app.Slug, "quickstart"), "The application is there.")
}

func (s *Site) organizationSettingsPage(v *visit) (answer, error) {
	return show(page.OrganizationSettingsPage(v.organizationSettings(page.Draft{Values: map[string]string{"name": v.org.Name}}))), nil
}

func (v *visit) organizationSettings(d page.Draft) page.OrganizationSettings {
	return page.OrganizationSettings{Draft: d, Frame: v.frame("Settings", "organization"), Action: v.orgPath("settings"), Slug: v.org.Slug}
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
	return v.done(v.orgPath("settings"), "The name is saved.")
}
