package web

import (
	"context"
	"errors"
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
)

// SandboxControls operate the payments sandbox of test applications.
type SandboxControls struct {
	Advance  func(ctx context.Context, app ids.ID, to int64) (now int64, err error)
	Refund   func(ctx context.Context, app ids.ID, checkoutID string) (cents int64, err error)
	Dispute  func(ctx context.Context, app ids.ID, checkoutID, outcome string) error
	Webhooks func(ctx context.Context, app ids.ID) (held bool, waiting int, err error)
	Hold     func(ctx context.Context, app ids.ID, hold bool) error
	Replay   func(ctx context.Context, app ids.ID, events int) error
}

// requireSandbox refuses where there is no sandbox to operate.
func (s *Site) requireSandbox(req *request) (settingspage.Provider, error) {
	if !req.usesSandbox() || req.site.sandboxOff {
		return settingspage.Provider{}, fault.New(fault.PathNotFound)
	}
	return s.loadProvider(req)
}

// sandboxPayments is how many payments the panel lists.
const sandboxPayments = 12

func (s *Site) sandboxPanel(req *request) (response, error) {
	view, err := s.sandboxView(req)
	return show(settingspage.Sandbox(view)), err
}

func (s *Site) sandboxView(req *request) (settingspage.SandboxPanel, error) {
	provider, err := s.requireSandbox(req)
	if err != nil {
		return settingspage.SandboxPanel{}, err
	}
	view := settingspage.SandboxPanel{Path: req.appPath("sandbox"), Settings: req.linkIfPermitted(tenancy.SettingsWrite, "settings"), API: provider.API, Stripe: provider.Stripe, Now: req.now(), Ahead: req.clockOffset}
	if !provider.Stripe {
		if view.Held, view.Waiting, err = s.controls.Webhooks(req.context, req.app.ID); err != nil {
			return view, err
		}
		checkouts, _, err := req.payments().Checkouts(req.context, payments.CheckoutPage{Page: store.Page{Limit: sandboxPayments}})
		if err != nil {
			return view, err
		}
		for _, c := range checkouts {
			payment := settingspage.SandboxPayment{
				ID: c.ID.Format(ids.Checkout), Identity: c.Identity, WalletHref: listing{path: req.appPath("wallets")}.at("q", c.Identity), State: component.CheckoutBadge(c.State),
				Price: component.Sum{AmountCents: c.AmountCents, Currency: c.Currency}, CreatedAt: c.CreatedAt,
			}
			switch {
			case c.IsOpen():
				payment.URL = c.URL
			case c.State == "applied" || c.State == "paid":
				payment.Paid = true
			}
			view.Payments = append(view.Payments, payment)
		}
	}
	view.Frame = req.frame("Sandbox", "sandbox")
	return view, nil
}

// sandboxSteps are how far one press of a button advances the clock.
var sandboxSteps = map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 31 * 24 * time.Hour, "year": 365 * 24 * time.Hour}

// advanceSandbox moves the clock. The form says from which time, so that a form that is
// sent twice moves it once.
func (s *Site) advanceSandbox(req *request) (response, error) {
	return s.sandboxAction(req, func(f *form) (string, error) {
		from, err := strconv.ParseInt(f.text("from"), 10, 64)
		step, known := sandboxSteps[f.text("by")]
		to := from + step.Milliseconds()
		if text := f.text("to"); text != "" {
			var day time.Time
			if day, err = time.Parse("2006-01-02T15:04", text); err == nil {
				to, known = day.UnixMilli(), true
			}
		}
		if err != nil || !known || to < from {
			f.fail("to", "Enter a time after the current one.")
			return "", nil
		}
		now, err := s.controls.Advance(req.context, req.app.ID, to)
		if errors.Is(err, context.DeadlineExceeded) {
			return "Still advancing: the clock stopped on its way. Press the button again to continue.", nil
		}
		return "Sandbox time is now " + component.InstantText(now) + ".", f.check("to", err)
	})
}

func (s *Site) refundInSandbox(req *request) (response, error) {
	return s.sandboxAction(req, func(f *form) (string, error) {
		checkout, err := ids.Parse(ids.Checkout, f.text("checkout"))
		if err != nil {
			return "", fault.New(fault.PathNotFound)
		}
		sold, err := req.payments().CheckoutByID(req.context, checkout)
		if errors.Is(err, payments.ErrUnknown) {
			return "", fault.New(fault.PathNotFound)
		}
		if err == nil {
			var cents int64
			cents, err = s.controls.Refund(req.context, req.app.ID, f.text("checkout"))
			sold.AmountCents = cents
		}
		return "Refunded " + component.MoneyText(sold.AmountCents, sold.Currency) + ". Its credits are taken back.", f.check("", err)
	})
}

func (s *Site) disputeInSandbox(req *request) (response, error) {
	return s.sandboxAction(req, func(f *form) (string, error) {
		outcome := f.text("outcome")
		return "Dispute opened. Outcome: " + outcome + ".", f.check("", s.controls.Dispute(req.context, req.app.ID, f.text("checkout"), outcome))
	})
}

func (s *Site) sandboxWebhooks(req *request) (response, error) {
	return s.sandboxAction(req, func(f *form) (string, error) {
		switch f.text("do") {
		case "hold":
			return "Webhooks are held.", f.check("", s.controls.Hold(req.context, req.app.ID, true))
		case "release":
			return "Webhooks released and applied.", f.check("", s.controls.Hold(req.context, req.app.ID, false))
		case "replay":
			return "The last 10 webhooks were sent again. Nothing is credited twice.", f.check("", s.controls.Replay(req.context, req.app.ID, 10))
		}
		return "", fault.New(fault.PathNotFound)
	})
}

// sandboxAction runs an action of the panel and returns to it.
func (s *Site) sandboxAction(req *request, run func(*form) (message string, err error)) (response, error) {
	provider, err := s.requireSandbox(req)
	if err != nil {
		return response{}, err
	}
	if provider.Stripe {
		return response{}, fault.New(fault.PathNotFound)
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	message, err := run(f)
	if err != nil {
		return response{}, err
	}
	if f.ok() {
		return req.done(req.appPath("sandbox"), message)
	}
	view, err := s.sandboxView(req)
	view.Problems = f.problems
	return invalid(settingspage.Sandbox(view)), err
}
