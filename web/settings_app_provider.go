package web

import (
	"purser/billing/cashier"
	"purser/fault"
	"purser/store"
	"purser/tenancy"
	"purser/views/page"
)

// provider is what may be shown of the application's payment account.
func (v *visit) provider() (page.Provider, error) {
	if v.site.cashier == nil {
		return page.Provider{}, nil
	}
	connected, err := v.site.cashier.Connection(v.context, v.scope())
	off := v.site.sandboxOff && !v.app.Live
	if fault.Is(err, fault.PaymentsNotConfigured) {
		// An application in development gets the sandbox once it needs an account.
		return page.Provider{Known: true, Sandbox: !v.app.Live && !off, SandboxOff: off, Address: v.site.server.Address, API: v.sandboxAPI()}, nil
	}
	if connected.Mode == store.SandboxConnection && off {
		return page.Provider{Known: true, SandboxOff: true, Address: v.site.server.Address}, err
	}
	return page.Provider{
		API:   v.sandboxAPI(),
		Known: true, Address: v.site.server.Address, Sandbox: connected.Mode == store.SandboxConnection, Stripe: connected.Mode == store.StripeConnection,
		Account: connected.AccountID, LastFour: connected.KeyLastFour, WebhookURL: connected.WebhookURL, Hears: connected.Webhooks,
	}, err
}

// sandboxAPI is how a program reaches the application's account in the sandbox, for
// those who may connect an account of their own: the key can do as much.
func (v *visit) sandboxAPI() page.SandboxAPI {
	if v.site.sandbox == nil || v.site.sandboxOff || v.app.Live || !v.may(tenancy.SettingsWrite) {
		return page.SandboxAPI{}
	}
	return v.site.sandbox(v.app.ID)
}

// connectProvider makes an account at Stripe the application's own. What was typed
// is not sent back with a refusal: it is a secret, also when it is a wrong one.
func (s *Site) connectProvider(v *visit) (answer, error) {
	if s.cashier == nil {
		return answer{}, fault.New(fault.PathNotFound)
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	said := "Stripe connected. Syncing plans."
	account := cashier.Account{APIKey: f.text("api_key"), WebhookSecret: f.text("webhook_secret"), By: v.actor()}
	if account.APIKey == "" {
		f.fail("api_key", "Enter the account's secret key.")
	} else if connected, err := s.cashier.Connect(v.context, v.scope(), account); connected.Former {
		said = "Key of the previous account " + connected.AccountID + " updated. The connected account is unchanged."
	} else if err != nil {
		if err := f.check("api_key", err); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		view, err := v.settingsPage(page.AppSettings{
			Name: v.app.Name, DeploymentURL: v.app.DeploymentURL, Answered: page.Answered{Problems: f.problems},
		})
		return invalid(page.Settings(view)), err
	}
	return v.done(v.appPath("settings"), said)
}

// retrySync has the provider told of a plan once more.
func (s *Site) retrySync(v *visit) (answer, error) {
	plan, err := v.plan()
	if err != nil {
		return answer{}, err
	}
	if s.cashier == nil {
		return answer{}, fault.New(fault.PaymentsNotConfigured)
	}
	if err := s.cashier.RetrySync(v.context, v.scope(), plan.Key); err != nil {
		return answer{}, err
	}
	return v.done(v.appPath("plans", plan.Key, "edit"), "Retrying sync with the payment provider.")
}

// wakeCashier has the plan that was just saved told to the provider at once, and
// not with the next round.
func (v *visit) wakeCashier() {
	if v.site.cashier != nil {
		v.site.cashier.Notify(v.scope())
	}
}
