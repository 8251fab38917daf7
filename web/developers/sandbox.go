package developers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/views/component"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

// SandboxControls operate the payments sandbox of test applications.
type SandboxControls struct {
	Advance  func(ctx context.Context, app ids.ID, to int64) (now int64, err error)
	Refund   func(ctx context.Context, app ids.ID, checkoutID string) (cents int64, err error)
	Dispute  func(ctx context.Context, app ids.ID, checkoutID, outcome string) error
	Webhooks func(ctx context.Context, app ids.ID) (held bool, waiting int, err error)
	Hold     func(ctx context.Context, app ids.ID, hold bool) error
	Replay   func(ctx context.Context, app ids.ID, events int) error

	OpenInvoices func(ctx context.Context, app ids.ID, subscriptions []string) ([]SandboxInvoice, error)
	PayInvoice   func(ctx context.Context, app ids.ID, invoiceID string, succeeds bool) (reason string, err error)
	FailRenewals func(ctx context.Context, app ids.ID, subscriptionID string) error
}

// requireSandbox refuses where there is no sandbox to operate.
func (s *Pages) requireSandbox(req *site.Request) (settingspage.Provider, error) {
	if !req.UsesSandbox() || req.Site.SandboxOff {
		return settingspage.Provider{}, fault.New(fault.PathNotFound)
	}
	return s.loadProvider(req)
}

// sandboxPayments is how many payments the panel lists.
const sandboxPayments = 12

func (s *Pages) sandboxPanel(req *site.Request) (site.Response, error) {
	view, err := s.sandboxView(req)
	return site.Show(settingspage.Sandbox(view)), err
}

func (s *Pages) sandboxView(req *site.Request) (settingspage.SandboxPanel, error) {
	provider, err := s.requireSandbox(req)
	if err != nil {
		return settingspage.SandboxPanel{}, err
	}
	view := settingspage.SandboxPanel{Path: req.AppPath("sandbox"), API: provider.API, Stripe: provider.Stripe, Now: req.Now(), Ahead: req.ClockOffset}
	if !provider.Stripe {
		if view.Held, view.Waiting, err = s.Controls.Webhooks(req.Context, req.App.ID); err != nil {
			return view, err
		}
		checkouts, _, err := req.Payments().Checkouts(req.Context, payments.CheckoutPage{Page: store.Page{Limit: sandboxPayments}})
		if err != nil {
			return view, err
		}
		for _, c := range checkouts {
			payment := settingspage.SandboxPayment{
				ID: c.ID.Format(ids.Checkout), Identity: c.Identity, WalletHref: req.CustomerLink(c.Identity), State: component.CheckoutBadge(c.State, c.IsOpen()),
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
		if view.Subscriptions, err = s.sandboxSubscriptions(req); err != nil {
			return view, err
		}
	}
	view.Frame = req.Frame("Sandbox", "sandbox")
	return view, nil
}

// sandboxSteps are how far one press of a button advances the clock.
var sandboxSteps = map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 31 * 24 * time.Hour, "year": 365 * 24 * time.Hour}

// advanceSandbox moves the clock. The form says from which time, so that a form that is
// sent twice moves it once.
func (s *Pages) advanceSandbox(req *site.Request) (site.Response, error) {
	return s.sandboxAction(req, func(f *site.Form) string {
		from, err := strconv.ParseInt(f.Text("from"), 10, 64)
		step, known := sandboxSteps[f.Text("by")]
		to := from + step.Milliseconds()
		if text := f.Text("to"); text != "" {
			var day time.Time
			if day, err = time.Parse("2006-01-02T15:04", text); err == nil {
				to, known = day.UnixMilli(), true
			}
		}
		if err != nil || !known || to < from {
			f.Fail("to", "Enter a time after the current one.")
			return ""
		}
		// Before the page's own deadline, by which the session with the message is saved.
		deadline, _ := req.Context.Deadline()
		ctx, cancel := context.WithDeadline(req.Context, deadline.Add(-req.Site.Timeout/3))
		defer cancel()
		now, err := s.Controls.Advance(ctx, req.App.ID, to)
		if errors.Is(err, context.DeadlineExceeded) {
			return "Still advancing: the clock stopped on its way. Press the button again to continue."
		}
		f.Check("to", err)
		return "Sandbox time is now " + component.InstantText(now) + "."
	})
}

func (s *Pages) refundInSandbox(req *site.Request) (site.Response, error) {
	return s.sandboxAction(req, func(f *site.Form) string {
		checkout, _ := ids.Parse(ids.Checkout, f.Text("checkout")) // zero is no checkout's
		sold, err := req.Payments().CheckoutByID(req.Context, checkout)
		if errors.Is(err, payments.ErrUnknown) {
			err = fault.New(fault.PathNotFound)
		}
		if err == nil {
			sold.AmountCents, err = s.Controls.Refund(req.Context, req.App.ID, f.Text("checkout"))
		}
		f.Check("", err)
		return "Refunded " + component.MoneyText(sold.AmountCents, sold.Currency) + ". Its credits are taken back."
	})
}

func (s *Pages) disputeInSandbox(req *site.Request) (site.Response, error) {
	return s.sandboxAction(req, func(f *site.Form) string {
		outcome := f.Text("outcome")
		f.Check("", s.Controls.Dispute(req.Context, req.App.ID, f.Text("checkout"), outcome))
		return "Dispute opened. Outcome: " + outcome + "."
	})
}

func (s *Pages) sandboxWebhooks(req *site.Request) (site.Response, error) {
	return s.sandboxAction(req, func(f *site.Form) string {
		switch f.Text("do") {
		case "hold":
			f.Check("", s.Controls.Hold(req.Context, req.App.ID, true))
			return "Webhooks are held."
		case "release":
			f.Check("", s.Controls.Hold(req.Context, req.App.ID, false))
			return "Webhooks released and applied."
		case "replay":
			f.Check("", s.Controls.Replay(req.Context, req.App.ID, 10))
			return "The last 10 webhooks were sent again. Nothing is credited twice."
		}
		f.Check("", fault.New(fault.PathNotFound))
		return ""
	})
}

// sandboxAction runs an action of the panel and returns to it.
func (s *Pages) sandboxAction(req *site.Request, run func(*site.Form) (message string)) (site.Response, error) {
	provider, err := s.requireSandbox(req)
	if err != nil {
		return site.Response{}, err
	}
	if provider.Stripe {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	f := req.Form
	message := run(f)
	if f.OK() {
		return req.Done(req.AppPath("sandbox"), message)
	}
	view, err := s.sandboxView(req)
	view.Problems = f.Problems
	return site.Invalid(settingspage.Sandbox(view)), err
}
