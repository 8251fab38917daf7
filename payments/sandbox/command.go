package sandbox

import (
	"context"
	"errors"
	"net/http"

	"purser/fault"
	"purser/ids"
	"purser/payments/sandbox/engine"
)

// What the control API and the dashboard do with an application's account. The caller has
// checked that the application is its own and uses the sandbox.

// Refunded is a refund that was made.
type Refunded struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	AmountCents int64  `json:"amountCents"`
}

// Refund returns a paid checkout, or a part of it, and has the webhooks applied.
func (s *Server) Refund(ctx context.Context, app ids.ID, checkoutID string, amountCents *int64) (made Refunded, err error) {
	err = s.command(ctx, app, func(account *engine.Account, env engine.Env) error {
		charge, err := account.ChargeFor(checkoutID)
		if err != nil {
			return err
		}
		refund, err := account.CreateRefund(env, engine.NewRefund{Charge: charge.ID, Amount: amountCents})
		if err == nil {
			made = Refunded{refund.ID, refund.Status, refund.Amount}
		}
		return err
	})
	return made, err
}

// command changes an account and has the webhooks applied.
func (s *Server) command(ctx context.Context, app ids.ID, change func(*engine.Account, engine.Env) error) error {
	if err := s.update(ctx, app, change); err != nil {
		return publicRefusal(err)
	}
	return s.drainWebhooks(ctx, app)
}

// Disputed is a dispute that was opened.
type Disputed struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// Dispute has the customer of a paid checkout dispute it, and the webhooks applied.
func (s *Server) Dispute(ctx context.Context, app ids.ID, checkoutID, outcome string) (made Disputed, err error) {
	err = s.command(ctx, app, func(account *engine.Account, env engine.Env) error {
		charge, err := account.ChargeFor(checkoutID)
		if err != nil {
			return err
		}
		dispute, err := account.Dispute(env, charge, outcome)
		if err == nil {
			made = Disputed{dispute.ID, dispute.Status}
		}
		return err
	})
	return made, err
}

func (s *Server) OpenInvoices(ctx context.Context, app ids.ID, subscriptions []string) (list []engine.OpenInvoice, err error) {
	err = s.view(ctx, app, func(account *engine.Account, _ engine.Env) error {
		list = account.OpenInvoices(subscriptions)
		return nil
	})
	return list, err
}

// PayInvoice pays an open invoice, or has its payment declined, and has the webhooks
// applied. The reason says why a payment failed.
func (s *Server) PayInvoice(ctx context.Context, app ids.ID, invoiceID string, succeeds bool) (reason string, err error) {
	err = s.command(ctx, app, func(account *engine.Account, env engine.Env) (err error) {
		reason, err = account.PayOpen(env, invoiceID, succeeds)
		return err
	})
	return reason, err
}

// FailRenewals makes every later charge of a subscription fail.
func (s *Server) FailRenewals(ctx context.Context, app ids.ID, subscriptionID string) error {
	return s.command(ctx, app, func(account *engine.Account, env engine.Env) error { return account.FailRenewals(env, subscriptionID) })
}

// maxReplay is how many events one request can replay.
const maxReplay = 1000

// WebhookCommand is what to do with an application's webhooks.
type WebhookCommand struct {
	Hold    *bool   `json:"hold"`
	Replay  *int    `json:"replay"`
	Shuffle *uint64 `json:"shuffle"`
}

// WebhookState is how an application's webhooks are sent.
type WebhookState struct {
	Held    bool `json:"held"`
	Waiting int  `json:"waiting"`
}

// Webhooks holds, releases, replays or shuffles webhooks, and has those that are not held
// applied.
func (s *Server) Webhooks(ctx context.Context, app ids.ID, command WebhookCommand) (state WebhookState, err error) {
	if command.Replay != nil && (*command.Replay < 1 || *command.Replay > maxReplay) {
		return state, fault.Newf(fault.InvalidRequest, "You can replay between 1 and %d events.", maxReplay)
	}
	if command == (WebhookCommand{}) {
		return state, fault.Newf(fault.InvalidRequest, "Send hold, replay or shuffle.")
	}
	err = s.update(ctx, app, func(account *engine.Account, env engine.Env) error {
		if command.Replay != nil {
			account.Replay(env, *command.Replay)
		}
		if command.Shuffle != nil {
			account.Shuffle(*command.Shuffle)
		}
		if command.Hold != nil {
			account.Hold(*command.Hold)
		}
		return nil
	})
	if err != nil {
		return state, err
	}
	if err := s.drainWebhooks(ctx, app); err != nil {
		return state, err
	}
	return s.WebhookState(ctx, app)
}

// WebhookState reads how an application's webhooks are sent.
func (s *Server) WebhookState(ctx context.Context, app ids.ID) (state WebhookState, err error) {
	err = s.view(ctx, app, func(account *engine.Account, _ engine.Env) error {
		state = WebhookState{account.Held, account.Waiting()}
		return nil
	})
	return state, err
}

// publicRefusal converts a refusal of the engine into a fault.
func publicRefusal(err error) error {
	refused, ok := errors.AsType[*engine.Refusal](err)
	if !ok {
		return err
	}
	if refused.Status == http.StatusNotFound {
		return fault.Newf(fault.PathNotFound, "%s", refused.Message)
	}
	return fault.Newf(fault.InvalidRequest, "%s", refused.Message)
}
