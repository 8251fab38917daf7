package inbound

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/payments/cashier"
)

// Path is the endpoint for a provider's webhooks of one connection.
const Path = cashier.WebhookPath + ":connection"

// webhookTimeout bounds storing one webhook: less than any provider waits.
const webhookTimeout = 10 * time.Second

// Receive stores webhooks of payment providers. They are authenticated by their
// signature, so no session or form token is checked. The status decides whether the
// provider retries.
func Receive(payments *cashier.Cashier, networkOf func(*http.Request) netip.Prefix, log *slog.Logger) echo.HandlerFunc {
	return receive(payments, newLookups(), networkOf, log)
}

func receive(payments *cashier.Cashier, lookups *lookups, networkOf func(*http.Request) netip.Prefix, log *slog.Logger) echo.HandlerFunc {
	return func(c echo.Context) error {
		signature := c.Request().Header.Get("Stripe-Signature")
		if signature == "" {
			return refuseUnread(c, log, cashier.ErrBadSignature)
		}
		if c.Request().ContentLength == 0 {
			return c.String(http.StatusBadRequest, emptyBody)
		}
		connection, network := c.Param("connection"), networkOf(c.Request())
		ctx, cancel := webhookContext(c)
		defer cancel()
		if err := lookups.bound(ctx, network, func() error { return payments.CheckConnection(ctx, connection) }); err != nil {
			return refuseUnread(c, log, err)
		}
		// The raw bytes: they are what is signed.
		body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, cashier.MaxWebhook))
		if err != nil {
			return c.String(bodyErrorStatus(err), "The body is incomplete or larger than 256 KiB.\n")
		}
		if len(body) == 0 {
			return c.String(http.StatusBadRequest, emptyBody)
		}
		ctx, cancel = webhookContext(c) // the deadline starts after the body arrived
		defer cancel()
		var webhook cashier.Webhook
		err = lookups.bound(ctx, network, func() (err error) {
			webhook, err = payments.VerifyWebhook(ctx, connection, signature, body)
			return err
		})
		if err != nil {
			return respondWebhook(c, log, err)
		}
		return respondWebhook(c, log, payments.StoreWebhook(ctx, webhook))
	}
}

const emptyBody = "The body is empty.\n"

// webhookContext is not cancelled when the sender disconnects: that would close a pooled
// database connection.
func webhookContext(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), webhookTimeout)
}

// bound runs a read that anyone can cause in a slot of the sender's network. No slot is
// held while a body arrives: it may be sent slowly.
func (l *lookups) bound(ctx context.Context, network netip.Prefix, read func() error) error {
	leave, err := l.enter(ctx, network)
	if err != nil {
		return err
	}
	defer leave()
	return read()
}

// refuseUnread responds before the body is read.
func refuseUnread(c echo.Context, log *slog.Logger, err error) error {
	c.Response().Header().Set(echo.HeaderConnection, "close")
	return respondWebhook(c, log, err)
}

func respondWebhook(c echo.Context, log *slog.Logger, err error) error {
	status, message := webhookStatus(err)
	if status == http.StatusTooManyRequests {
		c.Response().Header().Set(echo.HeaderRetryAfter, "1")
	}
	if status == http.StatusInternalServerError {
		log.Error("webhook not stored", "request", c.Response().Header().Get(echo.HeaderXRequestID), "cause", err)
	}
	return c.String(status, message)
}

func bodyErrorStatus(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// webhookStatus is the response, for people who read the provider's log.
func webhookStatus(err error) (status int, message string) {
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
