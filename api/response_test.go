package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// checkResponse holds an answer of the server against the document. Give it no
// operation for a path or a method that the document does not know.
func (d *document) checkResponse(op *operation, status int, header http.Header, body []byte) error {
	answer, err := d.expectedResponse(op, status)
	if err != nil {
		return err
	}
	if media := header.Get("Content-Type"); media != "application/json" {
		return fmt.Errorf("%d: the media type is %q", status, media)
	}
	given := input{}
	for _, p := range answer.headers.properties {
		if header.Get(p.name) == "" {
			continue
		}
		value, v := p.schema.read(header.Get(p.name))
		if v != nil {
			return fmt.Errorf("%d: the header %s %s", status, p.name, v.broken)
		}
		given[p.name] = value
	}
	if v := answer.headers.check(given); v != nil {
		return fmt.Errorf("%d: the header %s %s", status, v.path, v.broken)
	}
	value, err := decodeJSON(body, anything, false)
	if err != nil {
		return fmt.Errorf("%d: %w", status, err)
	}
	if v := answer.body.check(value); v != nil {
		return fmt.Errorf("%d: %s %s in %.200s", status, v.path, v.broken, body)
	}
	return nil
}

func (d *document) expectedResponse(op *operation, status int) (*response, error) {
	if op == nil {
		return d.unroutedResponse(status)
	}
	answer := op.responses[status]
	if answer == nil {
		return nil, fmt.Errorf("%s does not describe the status %d", op.id, status)
	}
	return answer, nil
}

// unroutedResponse is how the interface answers where there is no operation.
func (d *document) unroutedResponse(status int) (*response, error) {
	name := map[int]string{404: "NotFound", 405: "MethodNotAllowed"}[status]
	if name == "" {
		return nil, fmt.Errorf("nothing answers %d where there is no operation", status)
	}
	root, err := parseDocument("")
	if err != nil {
		return nil, err
	}
	c := newCompiler(root)
	answer := c.response(root.Object("components").Object("responses").Object(name), name)
	return answer, c.err()
}

func TestCheckResponse(t *testing.T) {
	doc := loaded(t)
	get, sub := doc.named(t, "getCredit"), doc.named(t, "getSubscription")
	credit := `{"revision":1,"id":"crd_1","key":"a","name":"A","unit":"a","createdAt":1}`
	refusal := `{"error":"rate_limited","message":"Wait."}`
	for name, c := range map[string]struct {
		op        *operation
		status    int
		header    string
		body      string
		complaint string
	}{
		"passes what is documented":         {get, 200, "X-Request-Id: r", credit, ""},
		"passes null where it may be":       {sub, 200, "X-Request-Id: r", `null`, ""},
		"passes a refusal with Retry-After": {get, 429, "X-Request-Id: r|Retry-After: 3", refusal, ""},
		"passes an unknown path":            {nil, 404, "X-Request-Id: r", refusal, ""},
		"passes an unknown method":          {nil, 405, "X-Request-Id: r|Allow: GET", refusal, ""},
		"fails on null elsewhere":           {get, 200, "X-Request-Id: r", `null`, "must be an object"},
		"fails on an undocumented status":   {get, 409, "X-Request-Id: r", refusal, "does not describe the status 409"},
		"fails without a request id":        {get, 200, "", credit, "X-Request-Id is required"},
		"fails without Retry-After":         {get, 429, "X-Request-Id: r", refusal, "Retry-After is required"},
		"fails on Retry-After in fractions": {get, 429, "X-Request-Id: r|Retry-After: 1.5", refusal, "must be a whole number"},
		"fails on an unknown field":         {get, 200, "X-Request-Id: r", credit[:len(credit)-1] + `,"x":1}`, "unknown field"},
		"fails on a missing field":          {get, 200, "X-Request-Id: r", `{"revision":1}`, "id is required"},
		"fails on a third field in errors":  {get, 404, "X-Request-Id: r", `{"error":"a","message":"b","c":1}`, "unknown field"},
		"fails on an amount as a number":    {doc.named(t, "trackUsage"), 201, "X-Request-Id: r", `{"status":"accepted","transactionId":"t","amountNanocredits":1}`, "must be a string"},
		"fails on what is not JSON":         {get, 200, "X-Request-Id: r", `<html>`, "not valid JSON"},
		"fails where nothing is routed":     {nil, 200, "X-Request-Id: r", credit, "nothing answers 200"},
		"fails on an error in another type": {get, 200, "X-Request-Id: r|Content-Type: text/html", credit, "the media type"},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Content-Type": {"application/json"}}
			for line := range strings.SplitSeq(c.header, "|") {
				if name, value, given := strings.Cut(line, ": "); given {
					header.Set(name, value)
				}
			}
			err := doc.checkResponse(c.op, c.status, header, []byte(c.body))
			if (err == nil) != (c.complaint == "") || err != nil && !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("the complaint is %v, want %q", err, c.complaint)
			}
		})
	}
}
