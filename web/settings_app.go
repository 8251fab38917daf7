package web

import (
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) settings(v *visit) (answer, error) {
	view, err := v.settingsPage(page.AppSettings{Name: v.app.Name, DeploymentURL: v.app.DeploymentURL})
	return show(page.Settings(view)), err
}

func (s *Site) updateSettings(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	// One at a time, so that each refusal stands at its own field.
	named, err := v.app.Change(f.text("name"), "")
	if err := f.check("name", err); err != nil {
		return answer{}, err
	}
	changed, err := v.app.Change(v.app.Name, f.text("deployment_url"))
	if err := f.check("deployment_url", err); err != nil {
		return answer{}, err
	}
	if !f.ok() {
		view, err := v.settingsPage(page.AppSettings{
			Name: f.text("name"), DeploymentURL: f.text("deployment_url"), Answered: page.Answered{Problems: f.problems},
		})
		return invalid(page.Settings(view)), err
	}
	changed.Name = named.Name
	if changed != v.app {
		if err := v.organization().UpdateApplication(v.context, changed); err != nil {
			return answer{}, err
		}
	}
	return v.done(v.appPath("settings"), "Settings saved.")
}

// revokeKeys stops the whole application's traffic, so a live one's name has to be
// typed.
func (s *Site) revokeKeys(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	if v.app.Live && f.text("confirm") != v.app.Name {
		view, err := v.settingsPage(page.AppSettings{Name: v.app.Name, DeploymentURL: v.app.DeploymentURL})
		view.TypedBad = "The name doesn't match. Enter it exactly as shown."
		return invalid(page.Settings(view)), err
	}
	revoked, err := v.tenant().RevokeKeys(v.context, v.site.now())
	if err != nil {
		return answer{}, err
	}
	return v.done(v.appPath("keys"), component.Counted(revoked, "key", "keys")+" revoked.")
}

// settingsPage adds what surrounds the values.
func (v *visit) settingsPage(view page.AppSettings) (page.AppSettings, error) {
	provider, err := v.provider()
	if err != nil {
		return view, err
	}
	plans, _, err := v.tenant().Plans(v.context, store.Page{Limit: 1})
	for _, plan := range plans {
		provider.PlanKey = plan.Key
	}
	view.Frame, view.Path, view.App = v.frame("Settings", "settings"), v.appPath("settings"), v.app
	view.Provider, view.MayRevoke = provider, v.may(tenancy.KeysWrite)
	return view, err
}
