package stripe

import (
	"errors"
	"net/http"
	"strings"

	sdk "github.com/stripe/stripe-go/v79"
)

// Kind is what a failed call means for whoever made it.
type Kind string

// The kinds of problems.
const (
	Declined        Kind = "declined"          // the bank refused the money
	NoPaymentMethod Kind = "no_payment_method" // there is nothing to charge
	// CannotWait is for an update that may not wait for its payment: the subscription
	// is paid by bank debit or by invoices that are sent.
	CannotWait   Kind = "cannot_wait"
	NotFound     Kind = "not_found"    // the object that the call is about is not there
	Refused      Kind = "refused"      // the account will not do it, however often it is asked
	Unauthorized Kind = "unauthorized" // the key is not, or no longer, good for it
	Unavailable  Kind = "unavailable"  // no answer, or one that says that something broke: it may have been done
	KeyMisused   Kind = "key_misused"  // an idempotency key with another request: our mistake
)

// Problem is a call that did not do what it was for.
type Problem struct {
	Kind    Kind
	Message string // what the account says, for people
	// Saved says that the answer will be given again to the same idempotency key,
	// so that only another key can get a better one.
	Saved bool
	cause error
}

func (p *Problem) Error() string { return "stripe: " + string(p.Kind) + ": " + p.Message }

func (p *Problem) Unwrap() error { return p.cause }

// Is reports whether err is a problem of the kind.
func Is(err error, kind Kind) bool {
	var p *Problem
	return errors.As(err, &p) && p.Kind == kind
}

// problem tells an error of the library in our words.
func problem(err error) error {
	if err == nil {
		return nil
	}
	var apiErr *sdk.Error
	if !errors.As(err, &apiErr) {
		return &Problem{Kind: Unavailable, Message: "The payment provider did not answer.", cause: err}
	}
	return &Problem{
		Kind: kindOf(apiErr), Message: apiErr.Msg, cause: err,
		Saved: apiErr.HTTPStatusCode >= http.StatusInternalServerError || apiErr.HTTPStatusCode == http.StatusPaymentRequired,
	}
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
	// Another request holds the object or the key, or there were too many: nothing
	// was done, and it will be possible later.
	case status == http.StatusConflict, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return Unavailable
	// Only updates that may wait name the parameter, so this refuses the waiting.
	case apiErr.Param == "payment_behavior":
		return CannotWait
	// Stripe has no code of its own for this.
	case strings.Contains(apiErr.Msg, "no attached payment source"):
		return NoPaymentMethod
	default:
		return Refused
	}
}
