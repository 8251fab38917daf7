package engine

import "fmt"

// Refusal is an error in the format of Stripe's API.
type Refusal struct {
	Status      int
	Type        string
	Code        string
	Param       string
	Message     string
	DeclineCode string
	Payment     Doc // the payment intent that the error is about

	// Kept commits the changes made before the refusal: a declined payment attempt
	// is recorded.
	Kept bool
}

func (r *Refusal) Error() string { return r.Message }

// HTTP status codes, spelled out because this package does not import net/http.
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

// invalid refuses a request with an invalid parameter or state.
func invalid(param, format string, args ...any) *Refusal {
	return &Refusal{Status: badRequest, Type: invalidRequest, Param: param, Message: fmt.Sprintf(format, args...)}
}

func (r *Refusal) withCode(code string) *Refusal {
	r.Code = code
	return r
}

// missing refuses a parameter with the id of no object.
func missing(kind, param, id string) *Refusal {
	return invalid(param, "No such %s: '%s'", kind, id).withCode("resource_missing")
}

// NotFound refuses a path with the id of no object.
func NotFound(kind, id string) *Refusal {
	r := missing(kind, "id", id)
	r.Status = notFound
	return r
}

func missingParam(param string) *Refusal {
	return invalid(param, "Missing required param: %s.", param).withCode("parameter_missing")
}

// declined is the error of a declined charge.
func declined(d Decline) *Refusal {
	return &Refusal{Status: paymentRequired, Type: cardError, Code: d.Code, DeclineCode: d.DeclineCode, Message: d.Message}
}

// keepAttempt marks the refusal as that of a payment attempt, which is recorded.
func (a *Account) keepAttempt(r *Refusal, intent *Intent) *Refusal {
	r.Kept, r.Payment = true, a.Render(intent)
	return r
}

// find returns the object that a parameter names.
func find[O any](t *Table[O], kind, param, id string) (*O, error) {
	found := t.Get(id)
	if found == nil {
		return nil, missing(kind, param, id)
	}
	return found, nil
}

// Get returns the object that a path names.
func Get[O any](t *Table[O], kind, id string) (*O, error) {
	found := t.Get(id)
	if found == nil {
		return nil, NotFound(kind, id)
	}
	return found, nil
}
