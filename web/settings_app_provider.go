package web

import (
	"purser/fault"
	"purser/payments/cashier"
	"purser/store/payments"
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
)

// loadProvider is the public part of the application's payment account.
func (s *Site) loadProvider(req *request) (settingspage.Provider, error) {
	if req.site.cashier == nil {
		return settingspage.Provider{}, nil
	}
	connected, err := req.site.cashier.Connection(req.context, req.scope())
	off := req.site.sandboxOff && !req.app.Live
	if fault.Is(err, fault.PaymentsNotConfigured) {
		// A test application is connected to the sandbox on first use.
		return settingspage.Provider{Known: true, Sandbox: !req.app.Live && !off, SandboxOff: off, API: s.sandboxAPI(req)}, nil
	}
	if connected.Mode == payments.SandboxConnection && off {
		return settingspage.Provider{Known: true, SandboxOff: true}, err
	}
	return settingspage.Provider{
		API:   s.sandboxAPI(req),
		Known: true, Sandbox: connected.Mode == payments.SandboxConnection, Stripe: connected.Mode == payments.StripeConnection,
		Account: connected.AccountID, LastFour: connected.KeyLastFour, WebhookURL: connected.WebhookURL, Hears: connected.Webhooks,
	}, err
}

// sandboxAPI is the API access to the application's sandbox account, for members who may
// connect an account: the key allows as much.
func (s *Site) sandboxAPI(req *request) settingspage.SandboxAPI {
	if s.sandbox == nil || req.site.sandboxOff || req.app.Live || !req.may(tenancy.SettingsWrite) {
		return settingspage.SandboxAPI{}
	}
	return s.sandbox(req.app.ID)
}

// connectProvider connects the application's Stripe account. The submitted key is not
// sent back with an error: even a wrong one is a secret.
func (s *Site) connectProvider(req *request) (response, error) {
	if s.cashier == nil {
		return response{}, fault.New(fault.PathNotFound)
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	message := "Stripe connected. Syncing plans."
	account := cashier.Account{APIKey: f.text("api_key"), WebhookSecret: f.text("webhook_secret"), By: req.actor()}
	if account.APIKey == "" {
		f.fail("api_key", "Enter the account's secret key.")
	} else if connected, err := s.cashier.Connect(req.context, req.scope(), account); connected.Former {
		message = "Key of the previous account " + connected.AccountID + " updated. The connected account is unchanged."
	} else if err != nil {
		if err := f.check("api_key", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		view, err := s.settingsPage(req, settingspage.AppSettings{
			Name: req.app.Name, DeploymentURL: req.app.DeploymentURL, Answered: component.Answered{Problems: f.problems},
		})
		return invalid(settingspage.Settings(view)), err
	}
	return req.done(req.appPath("settings"), message)
}
