package developers

import (
	"cmp"

	"purser/fault"
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

func (s *Pages) settings(req *site.Request) (site.Response, error) {
	view, err := s.settingsPage(req, settingspage.AppSettings{Name: req.App.Name, DeploymentURL: req.App.DeploymentURL})
	return site.Show(settingspage.Settings(view)), err
}

func (s *Pages) updateSettings(req *site.Request) (site.Response, error) {
	f := req.Form
	// One at a time, so that each error is shown at its field.
	named, err := req.App.Change(f.Text("name"), "")
	f.Check("name", err)
	changed, err := req.App.Change(req.App.Name, f.Text("deployment_url"))
	f.Check("deployment_url", err)
	if !f.OK() {
		view, err := s.settingsPage(req, settingspage.AppSettings{
			Name: f.Text("name"), DeploymentURL: f.Text("deployment_url"), Version: f.Raw("version"), Answered: component.Answered{Problems: f.Problems},
		})
		return site.Invalid(settingspage.Settings(view)), err
	}
	changed.Name = named.Name
	if changed != req.App {
		err := req.Organization().UpdateApplication(req.Context, changed, f.Raw("version"))
		if fault.Is(err, fault.RevisionConflict) {
			return s.settingsConflict(req)
		}
		if err != nil {
			return site.Response{}, err
		}
	}
	return req.Done(req.AppPath("settings"), "Settings saved.")
}

// settingsConflict shows the submitted values beside those stored in the meantime, with
// the current version.
func (s *Pages) settingsConflict(req *site.Request) (site.Response, error) {
	stored, err := req.Organization().Application(req.Context, req.App.ID)
	if err != nil {
		return site.Response{}, err
	}
	req.App = stored
	yours := settingspage.AppSettings{Name: req.Form.Text("name"), DeploymentURL: req.Form.Text("deployment_url")}
	yours.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "Name", Yours: yours.Name, Theirs: stored.Name},
		{Label: "Deployment URL", Yours: yours.DeploymentURL, Theirs: stored.DeploymentURL},
	}}
	view, err := s.settingsPage(req, yours)
	return site.Conflict(settingspage.Settings(view)), err
}

// revokeKeys stops all traffic of the application, so a live application's name must be
// typed.
func (s *Pages) revokeKeys(req *site.Request) (site.Response, error) {
	f := req.Form
	if req.App.Live && !f.Confirms("confirm", req.App.Name) {
		if !req.Member.May(tenancy.SettingsWrite) {
			return req.Done(req.AppPath("keys"), "The name doesn't match. No key was revoked.")
		}
		view, err := s.settingsPage(req, settingspage.AppSettings{Name: req.App.Name, DeploymentURL: req.App.DeploymentURL})
		f.Fail("confirm", "The name doesn't match. Enter it exactly as shown.")
		view.Problems = f.Problems
		return site.Invalid(settingspage.Settings(view)), err
	}
	revoked, err := req.Tenant().RevokeKeys(req.Context, req.Site.Now())
	if err != nil {
		return site.Response{}, err
	}
	return req.Done(req.AppPath("keys"), component.Counted(revoked, "key", "keys")+" revoked.")
}

// settingsPage adds the frame and the provider, and the stored version to a form that was not
// opened with another.
func (s *Pages) settingsPage(req *site.Request, view settingspage.AppSettings) (settingspage.AppSettings, error) {
	provider, err := s.loadProvider(req)
	if err != nil {
		return view, err
	}
	if req.UsesSandbox() {
		provider.Panel = req.AppPath("sandbox")
	}
	view.Frame, view.Path, view.App = req.Frame("Settings", "settings"), req.AppPath("settings"), req.App
	view.Version = cmp.Or(view.Version, req.App.Version())
	view.Provider, view.MayRevoke = provider, req.Member.May(tenancy.KeysWrite)
	view.Archive = req.LinkIfPermitted(tenancy.AppsWrite, "settings", "archive")
	return view, err
}
