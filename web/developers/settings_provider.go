package developers

import (
	"purser/fault"
	"purser/payments/cashier"
	"purser/store/payments"
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

// loadProvider is the public part of the application's payment account.
func (s *Pages) loadProvider(req *site.Request) (settingspage.Provider, error) {
	connected, err := req.Site.Cashier.Connection(req.Context, req.Scope())
	off := req.Site.SandboxOff && !req.App.Live
	if fault.Is(err, fault.PaymentsNotConfigured) {
		// A test application is connected to the sandbox on first use.
		return settingspage.Provider{Sandbox: !req.App.Live && !off, SandboxOff: off, API: s.sandboxAPI(req)}, nil
	}
	if connected.Mode == payments.SandboxConnection && off {
		return settingspage.Provider{SandboxOff: true}, err
	}
	return settingspage.Provider{
		API:     s.sandboxAPI(req),
		Sandbox: connected.Mode == payments.SandboxConnection, Stripe: connected.Mode == payments.StripeConnection,
		Account: connected.AccountID, LastFour: connected.KeyLastFour, WebhookURL: connected.WebhookURL, Verifies: connected.Webhooks,
	}, err
}

// sandboxAPI is the API access to the application's sandbox account, for members who may
// connect an account: the key allows as much.
func (s *Pages) sandboxAPI(req *site.Request) settingspage.SandboxAPI {
	if s.Sandbox == nil || req.Site.SandboxOff || req.App.Live || !req.May(tenancy.SettingsWrite) {
		return settingspage.SandboxAPI{}
	}
	return s.Sandbox(req.App.ID)
}

// connectProvider connects the application's Stripe account. The submitted key is not
// sent back with an error: even a wrong one is a secret.
func (s *Pages) connectProvider(req *site.Request) (site.Response, error) {
	f := req.Form
	message := "Stripe connected. Syncing plans."
	account := cashier.Account{APIKey: f.Text("api_key"), WebhookSecret: f.Text("webhook_secret"), By: req.Actor()}
	if account.APIKey == "" {
		f.Fail("api_key", "Enter the account's secret key.")
	} else if connected, err := s.Cashier.Connect(req.Context, req.Scope(), account); connected.Former {
		message = "Key of the previous account " + connected.AccountID + " updated. The connected account is unchanged."
	} else if err != nil {
		f.Check("api_key", err)
	}
	if !f.OK() {
		view, err := s.settingsPage(req, settingspage.AppSettings{
			Name: req.App.Name, DeploymentURL: req.App.DeploymentURL, Answered: component.Answered{Problems: f.Problems},
		})
		return site.Invalid(settingspage.Settings(view)), err
	}
	return req.Done(req.AppPath("settings"), message)
}
