package stripe

import (
	"errors"
	"net/http"
	"strings"

	sdk "github.com/stripe/stripe-go/v79"
)

// Kind classifies a failed call.
type Kind string

const (
	Declined        Kind = "declined"          // the bank declined the payment
	NoPaymentMethod Kind = "no_payment_method" // there is nothing to charge
	// CannotWait is for an update that cannot be pending until its payment: the
	// subscription is paid by bank debit or by sent invoices.
	CannotWait   Kind = "cannot_wait"
	NotFound     Kind = "not_found"    // the object does not exist
	Refused      Kind = "refused"      // refused for good
	Unauthorized Kind = "unauthorized" // the API key is invalid or lacks permission
	Unavailable  Kind = "unavailable"  // no response or a server error: the call may have taken effect
	KeyMisused   Kind = "key_misused"  // idempotency key reused for another request: a bug
)

// Problem is a failed call.
type Problem struct {
	Kind    Kind
	Message string // Stripe's message, for people
	// Saved says that this is the stored result of the idempotency key, so only another
	// key can succeed. An error alone is no proof: Stripe may still execute the request.
	Saved bool
	// Definite says that Stripe did nothing and has nothing under way.
	Definite bool
	gone     bool
	cause    error
}

func (p *Problem) Error() string { return "stripe: " + string(p.Kind) + ": " + p.Message }

func (p *Problem) Unwrap() error { return p.cause }

func Is(err error, kind Kind) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Kind == kind
}

// IsGone reports whether Stripe no longer has the object that was read, as after its
// test data was deleted. Neither an outage nor a wrong path or key is taken for that.
func IsGone(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.gone
}

// readProblem converts an error of a call that reads one object by its id.
func readProblem(err error) error {
	converted := problem(err)
	if p, ok := errors.AsType[*Problem](converted); ok {
		apiErr, answered := errors.AsType[*sdk.Error](err)
		p.gone = answered && apiErr.HTTPStatusCode == http.StatusNotFound && apiErr.Code == sdk.ErrorCodeResourceMissing
	}
	return converted
}

// CustomerGone reports whether a call failed because Stripe no longer has its customer.
func CustomerGone(err error) bool {
	apiErr, ok := errors.AsType[*sdk.Error](err)
	return ok && apiErr.Code == sdk.ErrorCodeResourceMissing && apiErr.Param == "customer"
}

// ConfigurationRefused reports whether a call failed because Stripe no longer has its
// configuration of the portal, or because it was deactivated there.
func ConfigurationRefused(err error) bool {
	apiErr, ok := errors.AsType[*sdk.Error](err)
	return ok && apiErr.Type == sdk.ErrorTypeInvalidRequest && apiErr.Param == "configuration"
}

// problem converts an error of the SDK.
func problem(err error) error {
	if err == nil {
		return nil
	}
	apiErr, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		return &Problem{Kind: Unavailable, Message: "The payment provider did not answer.", cause: err}
	}
	return &Problem{
		Kind: kindOf(apiErr), Message: apiErr.Msg, cause: err,
		Saved:    apiErr.HTTPStatusCode == http.StatusPaymentRequired || isReplayed(apiErr.LastResponse),
		Definite: isRefusal(apiErr.HTTPStatusCode) && apiErr.Code != sdk.ErrorCodeIdempotencyKeyInUse,
	}
}

// problemAfter converts an error of a call whose tries were watched.
func problemAfter(t *tries, err error) error {
	converted := problem(err)
	if p, ok := errors.AsType[*Problem](converted); ok && t.unknown {
		p.Definite = false
	}
	return converted
}

// isReplayed reports whether an answer is the stored result of an idempotency key.
func isReplayed(answer *sdk.APIResponse) bool {
	return answer != nil && answer.Header.Get("Idempotent-Replayed") != ""
}

// isRefusal reports whether a status says that nothing was done.
func isRefusal(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

func kindOf(apiErr *sdk.Error) Kind {
	switch status := apiErr.HTTPStatusCode; {
	case apiErr.Type == sdk.ErrorTypeIdempotency && status == http.StatusBadRequest:
		return KeyMisused
	case apiErr.Type == sdk.ErrorTypeCard, status == http.StatusPaymentRequired:
		return Declined
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Unauthorized
	case status == http.StatusNotFound:
		return NotFound
	// Lock conflict or rate limit: nothing was done, a retry can succeed.
	case status == http.StatusConflict, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return Unavailable
	// Only updates that may be pending send the parameter.
	case apiErr.Param == "payment_behavior":
		return CannotWait
	// Stripe has no error code for this.
	case strings.Contains(apiErr.Msg, "no attached payment source"):
		return NoPaymentMethod
	default:
		return Refused
	}
}
