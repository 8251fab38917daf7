package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"purser/billing/cashier"
	"purser/fault"
)

// WebhookPath is where a payment provider reports what happened at a connection.
const WebhookPath = "/webhooks/stripe/:connection"

// webhookTime is how long taking one in may take: less than any provider waits.
const webhookTime = 10 * time.Second

// ReceiveWebhooks takes the reports of payment providers in. They come from
// programs with a proof of their own, so nothing of the site stands before it: no
// session, no form token. What the status says decides whether it is sent again.
func ReceiveWebhooks(till *cashier.Cashier, networkOf func(*http.Request) netip.Prefix, log *slog.Logger) echo.HandlerFunc {
	lookups := newWebhookLookups()
	return func(c echo.Context) error {
		if err := lookUp(c, lookups, networkOf, till); err != nil {
			c.Response().Header().Set(echo.HeaderConnection, "close") // the body stays unread
			return answerWebhook(c, log, err)
		}
		// The bytes as they came: the signature is over them.
		body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, cashier.MaxWebhook))
		if err != nil {
			return c.String(unreadable(err), "The body is incomplete or larger than 256 KiB.\n")
		}
		// A body that arrives slowly takes nothing of the time to store it.
		ctx, cancel := webhookContext(c)
		defer cancel()
		return answerWebhook(c, log, till.ReceiveWebhook(ctx, c.Param("connection"), c.Request().Header.Get("Stripe-Signature"), body))
	}
}

// webhookContext is not cancelled by a sender that hangs up: that would close a
// pooled database connection.
func webhookContext(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), webhookTime)
}

// lookUp refuses a connection that does not exist.
func lookUp(c echo.Context, lookups *webhookLookups, networkOf func(*http.Request) netip.Prefix, till *cashier.Cashier) error {
	ctx, cancel := webhookContext(c)
	defer cancel()
	leave, err := lookups.enter(ctx, networkOf(c.Request()))
	if err != nil {
		return err
	}
	defer leave()
	return till.HasConnection(ctx, c.Param("connection"))
}

func answerWebhook(c echo.Context, log *slog.Logger, err error) error {
	status, said := received(err)
	if status == http.StatusTooManyRequests {
		c.Response().Header().Set(echo.HeaderRetryAfter, "1")
	}
	if status == http.StatusInternalServerError {
		log.Error("webhook not stored", "request", c.Response().Header().Get(echo.HeaderXRequestID), "cause", err)
	}
	return c.String(status, said)
}

func unreadable(err error) int {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// received is what the provider is told, for the people who look at its log.
func received(err error) (status int, said string) {
	var refusal *fault.Fault
	switch {
	case err == nil:
		return http.StatusOK, "Received.\n"
	case errors.Is(err, cashier.ErrBadSignature):
		return http.StatusBadRequest, "Invalid signature. Check the endpoint's signing secret.\n"
	case errors.Is(err, cashier.ErrNoSecret):
		return http.StatusServiceUnavailable, "This connection has no signing secret yet.\n"
	case errors.As(err, &refusal) && refusal.Kind() == fault.NotFound:
		return http.StatusNotFound, "Unknown connection.\n"
	case fault.Is(err, fault.Overloaded):
		return http.StatusTooManyRequests, "Too many webhooks from this network. Retry later.\n"
	default:
		return http.StatusInternalServerError, "The webhook couldn't be stored. Retry later.\n"
	}
}
