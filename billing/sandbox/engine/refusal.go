package engine

import "fmt"

// Refusal is an error in the shape that Stripe's clients know.
type Refusal struct {
	Status      int
	Type        string
	Code        string
	Param       string
	Message     string
	DeclineCode string
	Payment     Doc // the payment intent that the error is about

	// Kept says that what happened up to the refusal stays: a payment that was
	// tried and declined has been tried.
	Kept bool
}

func (r *Refusal) Error() string { return r.Message }

// Status codes, written out: this package knows no HTTP.
const (
	badRequest      = 400
	paymentRequired = 402
	notFound        = 404
	conflict        = 409
)

const (
	invalidRequest   = "invalid_request_error"
	cardError        = "card_error"
	idempotencyError = "idempotency_error"
)

// invalid is a request that cannot be carried out as it is.
func invalid(param, format string, args ...any) *Refusal {
	return &Refusal{Status: badRequest, Type: invalidRequest, Param: param, Message: fmt.Sprintf(format, args...)}
}

func (r *Refusal) withCode(code string) *Refusal {
	r.Code = code
	return r
}

// missing is a parameter that names nothing.
func missing(kind, param, id string) *Refusal {
	return invalid(param, "No such %s: '%s'", kind, id).withCode("resource_missing")
}

// NotFound is a path that names nothing.
func NotFound(kind, id string) *Refusal {
	r := missing(kind, "id", id)
	r.Status = notFound
	return r
}

func absent(param string) *Refusal {
	return invalid(param, "Missing required param: %s.", param).withCode("parameter_missing")
}

// declined is what a caller gets for a charge that the card's bank refused.
func declined(d Decline) *Refusal {
	return &Refusal{Status: paymentRequired, Type: cardError, Code: d.Code, DeclineCode: d.DeclineCode, Message: d.Message}
}

// tried says that the refusal came of a payment that was tried: that stays.
func (w *Account) tried(r *Refusal, intent *Intent) *Refusal {
	r.Kept, r.Payment = true, w.Render(intent)
	return r
}

// find gives the object that a parameter names.
func find[O any](t *Table[O], kind, param, id string) (*O, error) {
	found := t.Get(id)
	if found == nil {
		return nil, missing(kind, param, id)
	}
	return found, nil
}

// Get gives the object that a path names.
func Get[O any](t *Table[O], kind, id string) (*O, error) {
	found := t.Get(id)
	if found == nil {
		return nil, NotFound(kind, id)
	}
	return found, nil
}
