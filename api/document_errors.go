package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"purser/fault"
	"purser/httpd"
)

// expandDocument adds the server's URL and the error codes of the catalogue to the
// document. x-errors of a response lists the codes of all operations that refer to it;
// x-errors of an operation lists its own. Each code becomes an example of the response
// with its status.
func expandDocument(encoded []byte, root input, baseURL string) ([]byte, error) {
	e := expansion{root: root, replaced: map[jsontext.Pointer]any{}, used: map[string]bool{"MethodNotAllowed": true, "NotFound": true}} // of paths without an operation
	if baseURL != "" {
		e.replaced["/servers"] = []any{map[string]any{"url": baseURL}}
	}
	codes := maps.Clone(root.Object("components").Object("schemas").Object("ErrorCode"))
	codes["enum"] = fault.Codes()
	e.replaced["/components/schemas/ErrorCode"] = codes
	for path, methods := range root.Object("paths") {
		methods, _ := methods.(input)
		for method, operation := range methods {
			operation, _ := operation.(input)
			e.operation(jsontext.Pointer("/paths").AppendToken(path).AppendToken(method), operation)
		}
	}
	for name, response := range root.Object("components").Object("responses") {
		at := jsontext.Pointer("/components/responses").AppendToken(name)
		if response, _ := response.(input); e.used[name] {
			e.replaced[at] = withExamples(response, e.codes(response, string(at)))
		} else {
			e.replaced[at] = nil // each operation has codes of its own for it
		}
	}
	if err := errors.Join(e.errs...); err != nil {
		return nil, err
	}
	return replaceValues(encoded, e.replaced)
}

type expansion struct {
	root     input
	replaced map[jsontext.Pointer]any // nil removes
	used     map[string]bool          // responses that are still referred to
	errs     []error
}

// operation expands the error responses of one operation.
func (e *expansion) operation(at jsontext.Pointer, node input) {
	own := e.codes(node, string(at))
	placed := map[fault.Code]bool{}
	var all []fault.Code
	for code, response := range node.Object("responses") {
		number, _ := strconv.Atoi(code)
		if number < 400 {
			continue
		}
		response, _ := response.(input)
		name := strings.TrimPrefix(response.Text("$ref"), "#/components/responses/")
		shared := e.root.Object("components").Object("responses").Object(name)
		codes := e.codes(shared, name)
		general := len(codes)
		for _, each := range own {
			if fault.New(each).Kind().Status() == number {
				codes = append(codes, each)
				placed[each] = true
			}
		}
		if len(codes) == 0 {
			e.fail(at, "no code is given for %s", code)
		}
		if len(codes) > general {
			e.replaced[at.AppendToken("responses").AppendToken(code)] = withExamples(shared, codes)
		} else {
			e.used[name] = true
		}
		all = append(all, codes...)
	}
	for _, each := range own {
		if !placed[each] {
			e.fail(at, "%s has a status that is not described", each)
		}
	}
	slices.Sort(all)
	e.replaced[at.AppendToken("x-errors")] = all
}

// codes reads x-errors.
func (e *expansion) codes(node input, at string) (codes []fault.Code) {
	list, given := node["x-errors"].([]any)
	if !given {
		e.fail(jsontext.Pointer(at), "x-errors is missing")
	}
	for _, item := range list {
		code, _ := item.(string)
		if !fault.Known(fault.Code(code)) {
			e.fail(jsontext.Pointer(at), "%q is not in the catalogue", code)
			continue
		}
		codes = append(codes, fault.Code(code))
	}
	return codes
}

func (e *expansion) fail(at jsontext.Pointer, format string, args ...any) {
	e.errs = append(e.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

// withExamples returns an error response with one example per code.
func withExamples(response input, codes []fault.Code) input {
	examples := map[fault.Code]any{}
	for _, code := range codes {
		examples[code] = map[string]any{"value": httpd.ErrorBody{Error: code, Message: fault.New(code).Message}}
	}
	media := maps.Clone(response.Object("content").Object("application/json"))
	media["examples"] = examples
	expanded := maps.Clone(response)
	delete(expanded, "x-errors")
	expanded["content"] = map[string]any{"application/json": media}
	return expanded
}

// replaceValues copies a JSON text, keeping its order, and replaces the values of some
// members.
func replaceValues(encoded []byte, replaced map[jsontext.Pointer]any) ([]byte, error) {
	var out bytes.Buffer
	from, to := jsontext.NewDecoder(bytes.NewReader(encoded)), jsontext.NewEncoder(&out)
	for {
		token, err := from.ReadToken()
		if err == io.EOF {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err != nil {
			return nil, err
		}
		kind, length := from.StackIndex(from.StackDepth())
		isName := kind == jsontext.KindBeginObject && length%2 == 1
		value, found := replaced[from.StackPointer()]
		if !isName || !found {
			if err := to.WriteToken(token); err != nil {
				return nil, err
			}
			continue
		}
		if value != nil {
			if err := errors.Join(to.WriteToken(token), json.MarshalEncode(to, value, json.Deterministic(true))); err != nil {
				return nil, err
			}
		}
		if err := from.SkipValue(); err != nil {
			return nil, err
		}
	}
}
