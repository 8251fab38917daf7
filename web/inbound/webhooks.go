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
	lookups := newLookups()
	return func(c echo.Context) error {
		if err := checkConnection(c, lookups, networkOf, payments); err != nil {
			c.Response().Header().Set(echo.HeaderConnection, "close") // the body stays unread
			return respondWebhook(c, log, err)
		}
		// The raw bytes: they are what is signed.
		body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, cashier.MaxWebhook))
		if err != nil {
			return c.String(bodyErrorStatus(err), "The body is incomplete or larger than 256 KiB.\n")
		}
		// The deadline starts after the body arrived.
		ctx, cancel := webhookContext(c)
		defer cancel()
		return respondWebhook(c, log, payments.ReceiveWebhook(ctx, c.Param("connection"), c.Request().Header.Get("Stripe-Signature"), body))
	}
}

// webhookContext is not cancelled when the sender disconnects: that would close a pooled
// database connection.
func webhookContext(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), webhookTimeout)
}

// checkConnection refuses a connection that does not exist.
func checkConnection(c echo.Context, lookups *lookups, networkOf func(*http.Request) netip.Prefix, payments *cashier.Cashier) error {
	ctx, cancel := webhookContext(c)
	defer cancel()
	leave, err := lookups.enter(ctx, networkOf(c.Request()))
	if err != nil {
		return err
	}
	defer leave()
	return payments.CheckConnection(ctx, c.Param("connection"))
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
	var large *http.MaxBytesError
	if errors.As(err, &large) {
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
