package api

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"purser/fault"
)

const (
	// maxBody is the size of the largest body, unless the document gives another for the
	// operation; a larger one is a 413.
	maxBody = 16 << 10

	// maxDepth bounds the nesting of objects and arrays. The API needs three levels; 16
	// KiB of '[' would otherwise be a stack of sixteen thousand.
	maxDepth = 16
)

// decodeBody reads the JSON object of a request.
func decodeBody(body []byte, limit int) (input, error) {
	if len(body) > limit {
		return nil, fault.New(fault.BodyTooLarge)
	}
	value, err := decodeJSON(body)
	if err != nil {
		return nil, err
	}
	object, ok := value.(input)
	if !ok {
		return nil, invalid("The body must be a JSON object.")
	}
	return object, nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// decodeJSON reads one JSON value, as strictly as RFC 7493 and without NUL.
// Objects become input, arrays []any, strings string, and numbers int64, or
// number when no int64 holds them. No float is made on the way.
func decodeJSON(text []byte) (any, error) {
	if bytes.HasPrefix(text, byteOrderMark) {
		return nil, invalid("The body starts with a byte order mark. Send plain UTF-8.")
	}
	if !utf8.Valid(text) {
		return nil, invalid("The body is not valid UTF-8.")
	}
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(text), allowDuplicates)
	value, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, invalid("The body goes on after its JSON value ends.")
	}
	return value, nil
}

var (
	decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(new(bytes.Buffer)) }}

	// decodeObject refuses a name that it has already seen; the library's
	// own check would keep a second set of names.
	allowDuplicates = jsontext.AllowDuplicateNames(true)
)

func decodeValue(d *jsontext.Decoder) (any, error) {
	switch kind := d.PeekKind(); kind {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if d.StackDepth() == maxDepth {
			return nil, invalid("The body nests deeper than %d levels.", maxDepth)
		}
		if kind == jsontext.KindBeginObject {
			return decodeObject(d)
		}
		return decodeArray(d)
	case jsontext.KindNumber:
		digits, err := d.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		return parseNumber(digits), nil
	case jsontext.KindString:
		return decodeText(d)
	default:
		token, err := d.ReadToken()
		if err != nil {
			return nil, malformed(err)
		}
		if kind == jsontext.KindNull {
			return nil, nil
		}
		return token.Bool(), nil
	}
}

func decodeObject(d *jsontext.Decoder) (input, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	object := make(input)
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := decodeText(d)
		if err != nil {
			return nil, err
		}
		if object.Has(name) {
			return nil, invalid("The field %s is given twice.", quote(name))
		}
		if object[name], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return object, malformed(err)
}

func decodeArray(d *jsontext.Decoder) ([]any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	list := []any{}
	for d.PeekKind() != jsontext.KindEndArray {
		item, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err := d.ReadToken()
	return list, malformed(err)
}

// decodeText reads a string or a name. Postgres cannot store NUL, so it stops here.
func decodeText(d *jsontext.Decoder) (string, error) {
	if kind := d.PeekKind(); kind != jsontext.KindString {
		_, err := d.ReadToken()
		return "", malformed(err)
	}
	quoted, err := d.ReadValue()
	if err != nil {
		return "", malformed(err)
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return intern(quoted[1 : len(quoted)-1]), nil // NUL needs an escape
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return "", malformed(err)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", invalid("The body contains the character NUL.")
	}
	return string(text), nil
}

// intern is the text as a string. It does not allocate for the names of an event's fields.
func intern(text []byte) string {
	switch string(text) {
	case "id":
		return "id"
	case "identity":
		return "identity"
	case "feature":
		return "feature"
	case "quantity":
		return "quantity"
	case "entityId":
		return "entityId"
	case "occurredAt":
		return "occurredAt"
	case "amountNanocredits":
		return "amountNanocredits"
	}
	return string(text)
}

// malformed turns an error of the tokenizer into a fault, and nil into nil.
func malformed(err error) error {
	if err == nil {
		return nil
	}
	if err == io.EOF {
		return invalid("The body is empty. Send a JSON object.")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("The body ends before its JSON value does.")
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return invalid("The body is not valid JSON after byte %d.", syntax.ByteOffset)
	}
	return invalid("The body is not valid JSON.")
}
