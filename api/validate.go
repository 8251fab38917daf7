package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"purser/fault"
)

// validateBody decodes and validates a JSON body, and fills in defaults.
func (op *operation) validateBody(header http.Header, body []byte) (input, error) {
	object, err := op.decodeBody(body)
	if err != nil {
		return nil, err
	}
	if op.idempotency != nil {
		if err := op.readIdempotencyKey(header, object); err != nil {
			return nil, err
		}
	}
	if v := op.envelope.check(object); v != nil {
		return nil, v.fault("The body")
	}
	op.envelope.fill(object)
	return object, nil
}

// Both name a request for its retries, and either is enough.
const (
	idempotencyHeader = "Idempotency-Key"
	idempotencyField  = "idempotencyKey"
)

// readIdempotencyKey copies the header into the body's field. Two different keys are
// refused: a retry could then be executed twice.
func (op *operation) readIdempotencyKey(header http.Header, object input) error {
	values := header[idempotencyHeader]
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return invalid("The header %s appears twice.", idempotencyHeader)
	}
	value, v := op.idempotency.read(values[0])
	if v == nil {
		v = op.idempotency.check(value)
	}
	if v != nil {
		return v.under(idempotencyHeader).fault("")
	}
	if given, ok := object[idempotencyField]; ok && given != value {
		return invalid("The header %s differs from %s in the body. Send one of them, or the same in both.", idempotencyHeader, idempotencyField)
	}
	object[idempotencyField] = value
	return nil
}

// readQuery validates the query parameters and fills in defaults. It parses the raw
// query because url.Values drops malformed pairs.
func (op *operation) readQuery(raw string) (input, error) {
	if raw == "" && len(op.query.properties) == 0 {
		return nil, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("The query is malformed. Percent-encode its names and values.")
	}
	given := make(input, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p := op.query.property(name)
		if p == nil {
			given[name] = nil // unknown, as the check will say
			continue
		}
		if len(values[name]) > 1 {
			return nil, broken("appears twice").under(name).fault("")
		}
		value, v := p.schema.read(values[name][0])
		if v != nil {
			return nil, v.under(name).fault("")
		}
		given[name] = value
	}
	if v := op.query.check(given); v != nil {
		return nil, v.fault("The query")
	}
	op.query.fill(given)
	return given, nil
}

// checkPath validates the decoded path parameters.
func (op *operation) checkPath(params map[string]string) error {
	if len(params) == 0 && len(op.params.properties) == 0 {
		return nil
	}
	given := make(input, len(params))
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p := op.params.property(name)
		if p == nil {
			return fmt.Errorf("the document has no parameter %s in the path of %s", name, op.id)
		}
		value, v := p.schema.read(params[name])
		if v != nil {
			return v.under(name).fault("")
		}
		given[name] = value
	}
	if v := op.params.check(given); v != nil {
		return v.fault("The path")
	}
	return nil
}

// read converts the text of a parameter. An integer has one spelling: digits, an
// optional minus, no leading zero.
func (s *schema) read(text string) (any, *violation) {
	if !utf8.ValidString(text) {
		return nil, broken("must be valid UTF-8")
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, broken("must not contain the character NUL")
	}
	if s.types == kindString {
		return text, nil
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' && text != "0" {
		return nil, broken("must be %s", s.types)
	}
	return parseNumber([]byte(text)), nil
}

// fault formats the violation as a sentence. The subject is used where the path is
// empty.
func (v *violation) fault(subject string) *fault.Fault {
	if v.path != "" {
		subject = v.path
	}
	end := "."
	if strings.HasSuffix(v.broken, "?") {
		end = ""
	}
	return invalid("%s %s%s", subject, v.broken, end)
}

func invalid(format string, args ...any) *fault.Fault {
	return fault.Newf(fault.InvalidRequest, format, args...)
}
