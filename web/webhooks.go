package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
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
func ReceiveWebhooks(till *cashier.Cashier, log *slog.Logger) echo.HandlerFunc {
	return func(c echo.Context) error {
		// The bytes as they came: the proof is over them, before anything is read
		// into them.
		body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, cashier.MaxWebhook))
		if err != nil {
			return c.String(unreadable(err), "The body did not arrive whole, or is larger than 1 MiB.\n")
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), webhookTime)
		defer cancel()
		err = till.ReceiveWebhook(ctx, c.Param("connection"), c.Request().Header.Get("Stripe-Signature"), body)
		if err != nil && errors.Is(c.Request().Context().Err(), context.Canceled) {
			return err // the provider has closed the connection, and sends it again
		}
		status, said := received(err)
		if status == http.StatusInternalServerError {
			log.Error("a webhook was not taken in", "request", c.Response().Header().Get(echo.HeaderXRequestID), "cause", err)
		}
		return c.String(status, said)
	}
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
		return http.StatusBadRequest, "The signature does not fit. Compare the signing secret with the one of this endpoint.\n"
	case errors.Is(err, cashier.ErrNoSecret):
		return http.StatusServiceUnavailable, "This connection has no signing secret yet, so nothing can be verified.\n"
	case errors.As(err, &refusal) && refusal.Kind() == fault.NotFound:
		return http.StatusNotFound, "There is no such connection.\n"
	default:
		return http.StatusInternalServerError, "It could not be stored. Send it again later.\n"
	}
}
