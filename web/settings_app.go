package web

import (
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
)

func (s *Site) settings(req *request) (response, error) {
	view, err := s.settingsPage(req, settingspage.AppSettings{Name: req.app.Name, DeploymentURL: req.app.DeploymentURL})
	return show(settingspage.Settings(view)), err
}

func (s *Site) updateSettings(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	// One at a time, so that each error is shown at its field.
	named, err := req.app.Change(f.text("name"), "")
	if err := f.check("name", err); err != nil {
		return response{}, err
	}
	changed, err := req.app.Change(req.app.Name, f.text("deployment_url"))
	if err := f.check("deployment_url", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		view, err := s.settingsPage(req, settingspage.AppSettings{
			Name: f.text("name"), DeploymentURL: f.text("deployment_url"), Answered: component.Answered{Problems: f.problems},
		})
		return invalid(settingspage.Settings(view)), err
	}
	changed.Name = named.Name
	if changed != req.app {
		if err := req.organization().UpdateApplication(req.context, changed); err != nil {
			return response{}, err
		}
	}
	return req.done(req.appPath("settings"), "Settings saved.")
}

// revokeKeys stops all traffic of the application, so a live application's name must be
// typed.
func (s *Site) revokeKeys(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if req.app.Live && f.text("confirm") != req.app.Name {
		view, err := s.settingsPage(req, settingspage.AppSettings{Name: req.app.Name, DeploymentURL: req.app.DeploymentURL})
		view.TypedBad = "The name doesn't match. Enter it exactly as shown."
		return invalid(settingspage.Settings(view)), err
	}
	revoked, err := req.tenant().RevokeKeys(req.context, req.site.now())
	if err != nil {
		return response{}, err
	}
	return req.done(req.appPath("keys"), component.Counted(revoked, "key", "keys")+" revoked.")
}

// settingsPage adds the frame and the provider.
func (s *Site) settingsPage(req *request, view settingspage.AppSettings) (settingspage.AppSettings, error) {
	provider, err := s.loadProvider(req)
	if err != nil {
		return view, err
	}
	if req.usesSandbox() {
		provider.Panel = req.appPath("sandbox")
	}
	view.Frame, view.Path, view.App = req.frame("Settings", "settings"), req.appPath("settings"), req.app
	view.Provider, view.MayRevoke = provider, req.may(tenancy.KeysWrite)
	return view, err
}
