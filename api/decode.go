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
func (op *operation) decodeBody(body []byte) (input, error) {
	if len(body) > op.maxBody {
		return nil, fault.New(fault.BodyTooLarge)
	}
	value, err := decodeJSON(body, op.body, op.items != nil)
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
//
// Of what the schema refuses, only so much is kept that its check says so: one unknown
// field, one item too many, nothing inside of a value of another type. A small object
// takes 40 times its text. No request has an open object, as a test checks.
//
// With a result per item, a text with NUL or half a surrogate pair and a repeated field
// become a flaw. Otherwise nothing is kept of the items behind one that refuses the body.
func decodeJSON(text []byte, s *schema, perItem bool) (any, error) {
	if bytes.HasPrefix(text, byteOrderMark) {
		return nil, invalid("The body starts with a byte order mark. Send plain UTF-8.")
	}
	if !utf8.Valid(text) {
		return nil, invalid("The body is not valid UTF-8.")
	}
	d := decoder{decoders.Get().(*jsontext.Decoder), perItem}
	defer decoders.Put(d.Decoder)
	if perItem {
		d.Reset(bytes.NewBuffer(text), allowDuplicates, allowSurrogates)
	} else {
		d.Reset(bytes.NewBuffer(text), allowDuplicates)
	}
	value, err := decodeValue(d, s)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, invalid("The body has extra data after the JSON object.")
	}
	return value, nil
}

var (
	decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(new(bytes.Buffer)) }}

	// decodeObject refuses a name that it has already seen; the library's
	// own check would keep a second set of names.
	allowDuplicates = jsontext.AllowDuplicateNames(true)
	// The text itself is valid UTF-8, so this is about escapes.
	allowSurrogates = jsontext.AllowInvalidUTF8(true)
)

// decoder reads the tokens of one body.
type decoder struct {
	*jsontext.Decoder
	perItem bool
}

// flaw replaces a value in an item that no schema accepts. It completes the sentence that
// begins with its path, and refuses the item, not the whole body.
type flaw string

func decodeValue(d decoder, s *schema) (any, error) {
	switch kind := d.PeekKind(); kind {
	case jsontext.KindBeginObject:
		if s = s.accepting(kindObject); s == nil {
			return input(nil), skip(d)
		}
		return decodeObject(d, s)
	case jsontext.KindBeginArray:
		if s = s.accepting(kindArray); s == nil {
			return []any(nil), skip(d)
		}
		return decodeArray(d, s)
	case jsontext.KindNumber:
		digits, err := d.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		return parseNumber(digits), nil
	case jsontext.KindString:
		quoted, err := d.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		text, bad, err := d.unquote(quoted)
		if bad != "" {
			return bad, err
		}
		return text, err
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

// skip reads a value and keeps nothing of it.
func skip(d decoder) error {
	for outside := d.StackDepth(); ; {
		kind := d.PeekKind()
		if kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
			if err := open(d); err != nil {
				return err
			}
		} else if _, err := d.ReadToken(); err != nil {
			return malformed(err)
		}
		if d.StackDepth() == outside {
			return nil
		}
	}
}

// open reads the bracket that begins an object or an array.
func open(d decoder) error {
	if d.StackDepth() == maxDepth {
		return invalid("The body nests deeper than %d levels.", maxDepth)
	}
	_, err := d.ReadToken()
	return malformed(err)
}

func decodeObject(d decoder, s *schema) (input, error) {
	if err := open(d); err != nil {
		return nil, err
	}
	object := make(input)
	unknown, refused := "", false
	for d.PeekKind() != jsontext.KindEndObject {
		name, p, bad, err := decodeName(d, s)
		if err != nil {
			return nil, err
		}
		if object.Has(name) {
			if bad = "appears twice"; !d.perItem {
				return nil, invalid("The field %s appears twice.", quote(name))
			}
		}
		below := s.values
		if p != nil {
			below = p.schema
		}
		switch {
		case below != nil && bad == "" && len(object) <= s.maxProperties:
			object[name], err = decodeValue(d, below)
		case below != nil && len(object) <= s.maxProperties:
			object[name], err = bad, skip(d)
		default:
			err = skip(d)
			if below == nil && (!refused || name < unknown) { // the check names the alphabetically first
				delete(object, unknown)
				object[name], unknown, refused = nil, name, true
			}
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return object, malformed(err)
}

func decodeArray(d decoder, s *schema) ([]any, error) {
	if err := open(d); err != nil {
		return nil, err
	}
	list, refused := []any{}, false
	for d.PeekKind() != jsontext.KindEndArray {
		if refused || len(list) > s.maxItems {
			if err := skip(d); err != nil {
				return nil, err
			}
			if len(list) <= s.maxItems {
				list = append(list, nil)
			}
			continue
		}
		item, err := decodeValue(d, s.items)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
		refused = !d.perItem && s.items.types == kindObject && s.items.check(item) != nil // others are small
	}
	_, err := d.ReadToken()
	return list, malformed(err)
}

// decodeName reads the name of a field, and finds its property. The name of a property
// takes no memory.
func decodeName(d decoder, s *schema) (name string, p *property, bad flaw, err error) {
	if kind := d.PeekKind(); kind != jsontext.KindString {
		_, err := d.ReadToken()
		return "", nil, "", malformed(err)
	}
	quoted, err := d.ReadValue()
	if err != nil {
		return "", nil, "", malformed(err)
	}
	for i := range s.properties {
		if p := &s.properties[i]; p.name == string(quoted[1:len(quoted)-1]) {
			return p.name, p, "", nil
		}
	}
	name, bad, err = d.unquote(quoted)
	return name, s.property(name), bad, err
}

// unquote reads a string or a name. Postgres cannot store NUL, so it stops here.
func (d decoder) unquote(quoted []byte) (string, flaw, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), "", nil // NUL needs an escape
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	switch {
	case err != nil && d.perItem:
		return string(text), "must not contain half a surrogate pair", nil
	case err != nil:
		return "", "", malformed(err)
	case bytes.IndexByte(text, 0) < 0:
		return string(text), "", nil
	case d.perItem:
		return string(text), "must not contain the character NUL", nil
	default:
		return "", "", invalid("The body contains the character NUL.")
	}
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
		return invalid("The body is truncated: the JSON is not complete.")
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return invalid("The body is not valid JSON after byte %d.", syntax.ByteOffset)
	}
	return invalid("The body is not valid JSON.")
}
