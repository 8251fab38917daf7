package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"purser/api/openapi"
	"purser/fault"
)

// expandDocument adds the server's URL and the error codes of the catalogue to the
// document. x-errors of a response lists the codes of all operations that refer to it;
// x-errors of an operation lists its own. Each code becomes an example of the response
// with its status.
func expandDocument(root *openapi.Object, baseURL string) error {
	responses := root.Object("components").Object("responses")
	e := expansion{shared: responses, used: map[string]bool{"MethodNotAllowed": true, "NotFound": true}} // of paths without an operation
	if baseURL != "" {
		root.Set("servers", []any{openapi.New("url", baseURL)})
	}
	root.Object("components").Object("schemas").Object("ErrorCode").Set("enum", textsOf(fault.Codes()))
	for path, methods := range root.Object("paths").Objects() {
		for method, operation := range methods.Objects() {
			e.operation(method+" "+path, operation)
		}
	}
	for _, name := range responses.Names() {
		if e.used[name] {
			shared := responses.Object(name)
			responses.Set(name, withExamples(shared, e.codes(shared, name)))
		} else {
			responses.Delete(name) // each operation has codes of its own for it
		}
	}
	return errors.Join(e.errs...)
}

type expansion struct {
	shared *openapi.Object // responses of several operations, not yet expanded
	used   map[string]bool // those that are still referred to
	errs   []error
}

// operation expands the error responses of one operation.
func (e *expansion) operation(at string, node *openapi.Object) {
	own := e.codes(node, at)
	placed := map[fault.Code]bool{}
	var all []fault.Code
	responses := node.Object("responses")
	for status, response := range responses.Objects() {
		number, _ := strconv.Atoi(status)
		if number < 400 {
			continue
		}
		name := strings.TrimPrefix(response.Text("$ref"), "#/components/responses/")
		codes := e.codes(e.shared.Object(name), name)
		general := len(codes)
		for _, each := range own {
			if fault.New(each).Kind().Status() == number {
				codes = append(codes, each)
				placed[each] = true
			}
		}
		if len(codes) == 0 {
			e.fail(at, "no code is given for %s", status)
		}
		if len(codes) > general {
			responses.Set(status, withExamples(e.shared.Object(name), codes))
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
	node.Set("x-errors", textsOf(all))
}

// codes reads x-errors.
func (e *expansion) codes(node *openapi.Object, at string) (codes []fault.Code) {
	if _, given := node.Get("x-errors").([]any); !given {
		e.fail(at, "x-errors is missing")
	}
	for _, item := range node.List("x-errors") {
		code, _ := item.(string)
		if !fault.Known(fault.Code(code)) {
			e.fail(at, "%q is not in the catalogue", code)
			continue
		}
		codes = append(codes, fault.Code(code))
	}
	return codes
}

func (e *expansion) fail(at, format string, args ...any) {
	e.errs = append(e.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

// withExamples returns an error response with one example per code.
func withExamples(response *openapi.Object, codes []fault.Code) *openapi.Object {
	examples := openapi.New()
	for _, code := range slices.Sorted(slices.Values(codes)) {
		examples.Set(string(code), openapi.New("value", openapi.New("error", string(code), "message", fault.New(code).Message)))
	}
	media := response.Object("content").Object("application/json").Clone()
	media.Set("examples", examples)
	expanded := response.Clone()
	expanded.Delete("x-errors")
	expanded.Set("content", openapi.New("application/json", media))
	return expanded
}

func textsOf(codes []fault.Code) []any {
	all := make([]any, len(codes))
	for i, code := range codes {
		all[i] = string(code)
	}
	return all
}
